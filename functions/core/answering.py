"""From a question and its passages to a cited answer, streamed: by a language model, or by quotation alone."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from functions.core import citations, errors, extractive, models, ports, prompts
from functions.core.answer_text import SECTION_BREAK
from functions.core.sections import AnswerReader

MAX_ANSWER_CHARS = 60_000
MAX_ANSWER_SECONDS = 240.0
"""Models can fall into endless repetition or endless white space: what they write is cut here."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text, without marks."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerReady:
    """The whole answer, checked and marked; always the last item."""

    answer: models.Answer


def answer_question(
    question: str,
    hits: Sequence[models.SearchHit],
    *,
    lang: str,
    history: Sequence[models.Turn],
    chat_model: ports.ChatModel | None,
) -> Generator[TextDelta | AnswerReady, None, None]:
    """Text as it is written, then one AnswerReady; the texts joined are the sections' texts joined.

    `hits` are the passages the answer may rest on, best first. If the model fails after some text, an AnswerReady of
    status `interrupted` with what came is yielded **before** the error is raised; if it fails before, only the error.
    An answer that was cut short without an error is `interrupted` too. Closing the generator closes the model's stream.
    """
    if chat_model is None or not hits:
        yield from _quote(question, hits, lang)
        return
    reader = AnswerReader()
    messages = prompts.build_messages(question, hits, lang=lang, history=history)
    stream = chat_model.stream(messages, json_schema=prompts.ANSWER_SCHEMA)
    try:
        reading = yield from _read(stream, reader)
    finally:
        stream.close()
    if not reader.sections and (reading.whole or reading.failure is None):
        yield from _say_not_enough(lang, stream.usage) if reader.insufficient else _quote(question, hits, lang)
        return
    if reader.sections:
        status: models.MessageStatus = "complete" if reading.whole else "interrupted"
        yield AnswerReady(_model_answer(reader, hits, status, stream.usage))
    if reading.failure is not None and not reading.whole:
        raise reading.failure


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the reading of a model's answer ended; an answer whose JSON is closed is whole whatever came after."""

    whole: bool
    failure: errors.UnavailableError | None


def _read(stream: ports.ChatStream, reader: AnswerReader) -> Generator[TextDelta, None, _Reading]:
    failure: errors.UnavailableError | None = None
    overlong = False
    written = 0
    deadline = time.monotonic() + MAX_ANSWER_SECONDS
    try:
        for piece in stream:
            written += len(piece)
            overlong = written > MAX_ANSWER_CHARS or time.monotonic() > deadline
            if text := reader.feed(piece):
                yield TextDelta(text)
            if overlong:
                break
    except errors.UnavailableError as exc:
        failure = exc
    if text := reader.finish():
        yield TextDelta(text)
    cut = failure is not None or overlong
    return _Reading(whole=reader.ended or (reader.complete and not cut), failure=failure)


def _model_answer(
    reader: AnswerReader, hits: Sequence[models.SearchHit], status: models.MessageStatus, usage: models.Usage
) -> models.Answer:
    sections, sources = citations.cite(reader.sections, hits)
    return models.Answer(citations.mark_answer(sections), sections, sources, status, "model", usage)


def _say_not_enough(lang: str, usage: models.Usage) -> Iterator[TextDelta | AnswerReady]:
    text = prompts.NOT_ENOUGH.get(lang, prompts.NOT_ENOUGH["en"])
    section = models.CitedSection(text, (), ())
    yield TextDelta(text)
    yield AnswerReady(models.Answer(text, (section,), (), "guarded", "guard", usage))


def _quote(question: str, hits: Sequence[models.SearchHit], lang: str) -> Iterator[TextDelta | AnswerReady]:
    """The extractive answer; also what the reader gets when a model writes nothing at all."""
    extracts = extractive.extract_answer(question, hits)
    sections, sources = citations.cite_extracts((item.hit, item.start, item.end) for item in extracts)
    if not sections:
        sections = (models.CitedSection(prompts.NOT_ENOUGH.get(lang, prompts.NOT_ENOUGH["en"]), (), ()),)
    for at, section in enumerate(sections):
        yield TextDelta((SECTION_BREAK if at else "") + section.text)
    yield AnswerReady(models.Answer(citations.mark_answer(sections), sections, sources, "complete", "extractive"))
