"""From a question and its passages to a cited answer, streamed: by a language model, or by quotation alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from functions.core import errors, models, ports
from functions.core.answering import extractive, prompts
from functions.core.answering.reply_reader import AnswerReader
from functions.core.answering.tool_rounds import ToolRounds
from functions.core.citations.cite import cite_extracts, cite_sections, mark_answer
from functions.core.citations.sections import SECTION_BREAK
from functions.core.ports import Tool
from functions.core.retrieval.context import order_for_reading

MAX_ANSWER_CHARS = 60_000
MAX_ANSWER_SECONDS = 240.0
"""Models can fall into endless repetition or endless white space: what they write is cut here."""

_UNUSED = models.Usage()


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
    tools: ports.ToolRunner | None = None,
    tool_rounds: int = 0,
) -> Generator[TextDelta | AnswerReady, None, None]:
    """Text as it is written, then one AnswerReady; the texts joined are the sections' texts joined.

    `hits` are the passages the answer may rest on, best first, beside those that the model finds with `tools`, in
    `tool_rounds` at most. If the model fails after some text, an AnswerReady of status `interrupted` with what came is
    yielded **before** the error is raised; if it fails before, only the error. An answer that was cut short without an
    error is `interrupted` too. Closing the generator closes the model's stream.
    """
    if chat_model is None or not hits:
        yield from _quote(question, hits, lang)
        return
    rounds = ToolRounds(tools, tool_rounds if chat_model.takes_tools else 0, hits)
    passages = order_for_reading(hits)
    build_messages = partial(prompts.build_messages, question, passages, lang=lang, history=history)
    writing = _Writing(chat_model, build_messages, rounds)
    yield from writing.run()
    reader, found = writing.reader, rounds.hits
    if not reader.sections and (writing.whole or writing.failure is None):
        if reader.insufficient:
            yield from _say_not_enough(lang, writing.usage)
        else:
            yield from _quote(question, found, lang, writing.usage)
        return
    if reader.sections:
        status: models.MessageStatus = "complete" if writing.whole else "interrupted"
        yield AnswerReady(_model_answer(question, reader, found, status, writing.usage))
    if writing.failure is not None and not writing.whole:
        raise writing.failure


@dataclass(slots=True)
class _Writing:
    """A model at work on one answer: its reply, or first the replies that call tools, and how that ended."""

    model: ports.ChatModel
    build_messages: Callable[..., list[ports.ChatMessage]]
    rounds: ToolRounds
    exchange: list[ports.ChatMessage] = field(default_factory=list)
    reader: AnswerReader = field(default_factory=AnswerReader)
    usage: models.Usage = field(default_factory=models.Usage)
    failure: errors.UnavailableError | None = None
    overlong: bool = False
    has_shown: bool = False
    written: int = 0
    deadline: float = field(default_factory=lambda: time.monotonic() + MAX_ANSWER_SECONDS)

    @property
    def whole(self) -> bool:
        """An answer whose JSON is closed is whole whatever came after."""
        return self.reader.ended or (self.reader.complete and self.failure is None and not self.overlong)

    def run(self) -> Generator[TextDelta, None, None]:
        while True:
            tools = self.rounds.offered
            calls, text = yield from self._read_reply(tools)
            if not tools or self._has_answered or self.failure is not None or self.overlong:
                break
            if calls:
                self.exchange += self.rounds.play(text, calls)
            elif not self.has_shown and any(tool.name in text for tool in tools):
                self.rounds.close()  # it writes calls as if they were answers
            else:
                break
            if self.has_shown:
                yield from self._show(self.reader.feed(SECTION_BREAK))
            else:
                self.reader = AnswerReader()  # "Let me look that up." is no part of the answer
        yield from self._show(self.reader.finish())

    @property
    def _has_answered(self) -> bool:
        """JSON whose text a reader has seen is the answer: calls that come beside it would tell it twice."""
        return self.has_shown and (self.reader.ended or not self.reader.complete)

    def _read_reply(self, tools: Sequence[Tool]) -> Generator[TextDelta, None, tuple[Sequence[ports.ToolCall], str]]:
        """One reply of the model: shows what becomes readable of it, returns its calls and its text as it was."""
        pieces: list[str] = []
        stream: ports.ChatStream | None = None
        try:
            messages = self.build_messages(with_tools=bool(tools)) + self.exchange
            stream = self.model.stream(messages, json_schema=prompts.ANSWER_SCHEMA, tools=tools)
            for piece in stream:
                pieces.append(piece)
                self.written += len(piece)
                self.overlong = self.written > MAX_ANSWER_CHARS or time.monotonic() > self.deadline
                yield from self._show(self.reader.feed(piece))
                if self.overlong:
                    break
        except errors.UnavailableError as exc:
            self.failure = exc
        finally:
            if stream is not None:
                stream.close()
        if stream is None:
            return (), ""
        self.usage += stream.usage
        return stream.tool_calls, "".join(pieces)

    def _show(self, text: str) -> Iterator[TextDelta]:
        if text:
            self.has_shown = True
            yield TextDelta(text)


def _model_answer(
    question: str,
    reader: AnswerReader,
    hits: Sequence[models.SearchHit],
    status: models.MessageStatus,
    usage: models.Usage,
) -> models.Answer:
    sections, sources = cite_sections(reader.sections, hits, question)
    return models.Answer(mark_answer(sections), sections, sources, status, "model", usage)


def _say_not_enough(lang: str, usage: models.Usage) -> Iterator[TextDelta | AnswerReady]:
    text = prompts.NOT_ENOUGH.get(lang, prompts.NOT_ENOUGH["en"])
    section = models.CitedSection(text, (), ())
    yield TextDelta(text)
    yield AnswerReady(models.Answer(text, (section,), (), "guarded", "guard", usage))


def _quote(
    question: str, hits: Sequence[models.SearchHit], lang: str, usage: models.Usage = _UNUSED
) -> Iterator[TextDelta | AnswerReady]:
    """The extractive answer; also what the reader gets when a model writes nothing at all, which costs all the same."""
    extracts = extractive.extract_answer(question, hits)
    sections, sources = cite_extracts((item.hit, item.start, item.end) for item in extracts)
    if not sections:
        sections = (models.CitedSection(prompts.NOT_ENOUGH.get(lang, prompts.NOT_ENOUGH["en"]), (), ()),)
    for at, section in enumerate(sections):
        yield TextDelta((SECTION_BREAK if at else "") + section.text)
    answer = mark_answer(sections)
    yield AnswerReady(models.Answer(answer, sections, sources, "complete", "extractive", usage))
