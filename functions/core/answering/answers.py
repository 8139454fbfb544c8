"""Answers a question from its passages and streams the cited answer, written by a language model or made of quotes."""

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
"""Limits for everything that a model writes for one answer, because models can repeat themselves endlessly."""

_UNUSED = models.Usage()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next part of the answer's text, without citation marks."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerReady:
    """The whole answer with checked citations and their marks; always the last item."""

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
    """Yields text as it is written, then one AnswerReady; the joined texts equal the sections joined by SECTION_BREAK.

    `hits` are the passages that the answer may cite, best first; the model may find more with `tools`, in at most
    `tool_rounds` rounds. If the model fails after some text, an AnswerReady of status `interrupted` with that text is
    yielded **before** the error is raised; if it fails earlier, only the error is raised. An answer that ends too early
    without an error is `interrupted` too. Closing the generator closes the model's stream.
    """
    if chat_model is None or not hits:
        yield from _write_quotations(question, hits, lang)
        return
    rounds = ToolRounds(tools, tool_rounds if chat_model.takes_tools else 0, hits)
    passages = order_for_reading(hits)
    build_messages = partial(prompts.build_messages, question, passages, lang=lang, history=history)
    writer = _ModelWriter(chat_model, build_messages, rounds)
    yield from writer.run()
    reader, citable_hits = writer.reader, rounds.hits
    if not reader.sections and (writer.is_finished or writer.failure is None):
        if reader.says_no_answer:
            yield from _write_refusal(lang, writer.usage)
        else:
            yield from _write_quotations(question, citable_hits, lang, writer.usage)
        return
    if reader.sections:
        status: models.MessageStatus = "complete" if writer.is_finished else "interrupted"
        yield AnswerReady(_cite_answer(question, reader, citable_hits, status, writer.usage))
    if writer.failure is not None and not writer.is_finished:
        raise writer.failure


@dataclass(slots=True)
class _ModelWriter:
    """Lets a model write one answer, in one reply or after replies that call tools, and keeps how it ended."""

    model: ports.ChatModel
    build_messages: Callable[..., list[ports.ChatMessage]]
    rounds: ToolRounds
    tool_messages: list[ports.ChatMessage] = field(default_factory=list)
    reader: AnswerReader = field(default_factory=AnswerReader)
    usage: models.Usage = field(default_factory=models.Usage)
    failure: errors.UnavailableError | None = None
    is_overlong: bool = False
    has_shown: bool = False
    written_chars: int = 0
    deadline: float = field(default_factory=lambda: time.monotonic() + MAX_ANSWER_SECONDS)

    @property
    def is_finished(self) -> bool:
        """Whether the model finished its answer; once its JSON is closed, a later failure does not matter."""
        return self.reader.is_closed or (self.reader.is_complete and self.failure is None and not self.is_overlong)

    def run(self) -> Generator[TextDelta, None, None]:
        """Asks the model until it answers without calling tools, and yields the text to show."""
        while True:
            tools = self.rounds.offered_tools
            calls, text = yield from self._read_reply(tools)
            if not tools or self._has_answered or self.failure is not None or self.is_overlong:
                break
            if calls:
                self.tool_messages += self.rounds.run_calls(text, calls)
            elif not self.has_shown and any(tool.name in text for tool in tools):
                self.rounds.close()  # the model writes its calls as text, so it is asked once more without tools
            else:
                break
            if self.has_shown:
                yield from self._show(self.reader.feed(SECTION_BREAK))
            else:
                self.reader = AnswerReader()  # "Let me look that up." does not belong to the answer
        yield from self._show(self.reader.finish())

    @property
    def _has_answered(self) -> bool:
        """Whether text of a JSON answer was shown: calls in the same reply would make the model write it twice."""
        return self.has_shown and (self.reader.is_closed or not self.reader.is_complete)

    def _read_reply(self, tools: Sequence[Tool]) -> Generator[TextDelta, None, tuple[Sequence[ports.ToolCall], str]]:
        """Reads one reply of the model: yields the text to show, returns its calls and its raw text."""
        pieces: list[str] = []
        stream: ports.ChatStream | None = None
        try:
            messages = self.build_messages(with_tools=bool(tools)) + self.tool_messages
            stream = self.model.stream(messages, json_schema=prompts.ANSWER_SCHEMA, tools=tools)
            for piece in stream:
                pieces.append(piece)
                self.written_chars += len(piece)
                self.is_overlong = self.written_chars > MAX_ANSWER_CHARS or time.monotonic() > self.deadline
                yield from self._show(self.reader.feed(piece))
                if self.is_overlong:
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


def _cite_answer(
    question: str,
    reader: AnswerReader,
    hits: Sequence[models.SearchHit],
    status: models.MessageStatus,
    usage: models.Usage,
) -> models.Answer:
    sections, sources = cite_sections(reader.sections, hits, question)
    return models.Answer(mark_answer(sections), sections, sources, status, "model", usage)


def _write_refusal(lang: str, usage: models.Usage) -> Iterator[TextDelta | AnswerReady]:
    """The fixed text that replaces a model's NO_ANSWER."""
    text = prompts.NOT_ENOUGH.get(lang, prompts.NOT_ENOUGH["en"])
    section = models.CitedSection(text, (), ())
    yield TextDelta(text)
    yield AnswerReady(models.Answer(text, (section,), (), "guarded", "guard", usage))


def _write_quotations(
    question: str, hits: Sequence[models.SearchHit], lang: str, usage: models.Usage = _UNUSED
) -> Iterator[TextDelta | AnswerReady]:
    """The extractive answer, also used if a model writes nothing; `usage` then counts the tokens of its empty reply."""
    extracts = extractive.extract_answer(question, hits, lang=lang)
    sections, sources = cite_extracts((item.hit, item.start, item.end) for item in extracts)
    if not sections:
        sections = (models.CitedSection(prompts.NOT_ENOUGH.get(lang, prompts.NOT_ENOUGH["en"]), (), ()),)
    are_foreign = [extractive.is_foreign(item.hit, lang) for item in extracts]
    if any(are_foreign):
        all_foreign, some_foreign = prompts.FOREIGN_QUOTES[lang]
        sections = (models.CitedSection(all_foreign if all(are_foreign) else some_foreign, (), ()), *sections)
    for at, section in enumerate(sections):
        yield TextDelta((SECTION_BREAK if at else "") + section.text)
    answer = mark_answer(sections)
    yield AnswerReady(models.Answer(answer, sections, sources, "complete", "extractive", usage))
