"""Lets a chat model write one answer within limits of time and length, and yields its text as it can be shown."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from functions.core import errors, models, ports
from functions.core.answering.reply_reader import AnswerReader
from functions.core.answering.tool_rounds import ToolRounds
from functions.core.citations.sections import SECTION_BREAK
from functions.core.ports import Schema, Tool

MAX_ANSWER_CHARS = 60_000
MAX_ANSWER_SECONDS = 240.0
"""Limits for everything that a model writes for one answer, because models can repeat themselves endlessly."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next part of the answer's text, without citation marks."""

    text: str


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long the first word may take, in seconds, and the `time.monotonic()` at which the answer must have ended."""

    first_word_seconds: float = MAX_ANSWER_SECONDS
    deadline: float = math.inf


NO_LIMITS = TimeLimits()


@dataclass(frozen=True, slots=True)
class Prompt:
    """How the model is asked: its messages, the schema of its reply (None for text), and the ids of its numbers."""

    build_messages: Callable[..., list[ports.ChatMessage]]
    json_schema: Schema | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ModelWriter:
    """Lets a model write one answer, in one reply or after replies that call tools, and keeps how it ended."""

    model: ports.ChatModel
    prompt: Prompt
    rounds: ToolRounds
    limits: TimeLimits = NO_LIMITS
    reader: AnswerReader = field(init=False)
    tool_messages: list[ports.ChatMessage] = field(default_factory=list)
    usage: models.Usage = field(default_factory=models.Usage)
    failure: errors.UnavailableError | None = None
    is_overlong: bool = False
    has_shown: bool = False
    written_chars: int = 0
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self.reader = AnswerReader(self.prompt.labels)
        self.deadline = min(self.limits.deadline, time.monotonic() + self.limits.first_word_seconds)

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
                self.reader = AnswerReader(self.prompt.labels)  # "Let me look that up." does not belong to the answer
        yield from self._show(self.reader.finish())

    @property
    def _has_answered(self) -> bool:
        """Whether text of a JSON answer was shown: calls in the same reply would make the model write it twice."""
        return self.has_shown and (self.reader.is_closed or not self.reader.is_complete)

    def _read_reply(self, tools: Sequence[Tool]) -> Generator[TextDelta, None, tuple[Sequence[ports.ToolCall], str]]:
        """Reads one reply of the model: yields the text to show, returns its calls and its raw text."""
        pieces: list[str] = []
        stream: ports.ChatStream | None = None

        def open_stream() -> ports.ChatStream:
            nonlocal stream
            stream = self.model.stream(messages, json_schema=self.prompt.json_schema, tools=tools)
            return stream

        messages = self.prompt.build_messages(with_tools=bool(tools)) + self.tool_messages
        reading = _TimedReader(open_stream)
        try:
            while not self.is_overlong and (piece := reading.read(self.deadline)) is not None:
                pieces.append(piece)
                self.written_chars += len(piece)
                self.is_overlong = self.written_chars > MAX_ANSWER_CHARS
                yield from self._show(self.reader.feed(piece))
        except errors.UnavailableError as exc:
            self.failure = exc
        except TimeoutError:
            self.failure = errors.ModelTooSlowError()
        finally:
            reading.close()
        if stream is None:
            return (), ""
        self.usage += stream.usage
        return stream.tool_calls, "".join(pieces)

    def _show(self, text: str) -> Iterator[TextDelta]:
        if text and not self.has_shown:
            self.has_shown = True
            self.deadline = min(self.limits.deadline, time.monotonic() + MAX_ANSWER_SECONDS)
        if text:
            yield TextDelta(text)


class _TimedReader:
    """Opens and reads a stream in a thread, because a server that sends nothing, or too slowly, blocks its reader."""

    def __init__(self, open_stream: Callable[[], ports.ChatStream]) -> None:
        self._open_stream = open_stream
        self._pieces: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
        self._is_closed = False
        threading.Thread(target=self._read_all, name="model-stream", daemon=True).start()

    def read(self, deadline: float) -> str | None:
        """The next piece, or None at the end.

        Raises TimeoutError once `time.monotonic()` has reached `deadline`, and the error of the stream.
        """
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        try:
            piece = self._pieces.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def close(self) -> None:
        """Does not wait: the thread closes the stream as soon as it is opened, sends a piece, or fails."""
        self._is_closed = True

    def _read_all(self) -> None:
        try:
            with closing(self._open_stream()) as stream:
                for piece in stream:
                    if self._is_closed:
                        return
                    self._pieces.put(piece)
            self._pieces.put(None)
        except BaseException as exc:
            self._pieces.put(exc)
