"""Chat models behind any server that speaks the OpenAI protocol.

Servers differ in what they take: a field that a server refuses by name is left out and not sent to it again by the
same object.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from functions.adapters.models import openai_connection as connection
from functions.adapters.models import openai_tools
from functions.core import errors, models, ports
from functions.core.ports import Tool

if TYPE_CHECKING:
    import openai

TOTAL_SECONDS = 240.0
"""For one reply: more than any answer takes that somebody still waits for."""

_HALF = re.compile("[\ud800-\udfff]")
_FORMAT_WORDS = re.compile(r"response_?format|json_(schema|object|mode)|structured.output|grammar", re.IGNORECASE)


class OpenAIChatModel:
    """A chat model over `/chat/completions`, always streamed."""

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        patience: connection.Patience | None = None,
        read_seconds: float = connection.READ_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        """`read_seconds` is the longest silence of the server, also before its first word.

        After `total_seconds` an answer is given up at the next thing that the server says, thoughts and comments
        included.
        """
        self.model = model
        self._server = connection.Connection(
            base_url, api_key, patience or connection.Patience(), read_seconds, total_seconds
        )
        self._total_seconds = total_seconds
        self._optional: dict[str, Any] = {"stream_options": {"include_usage": True}}
        if temperature is not None:
            self._optional["temperature"] = temperature
        if max_tokens is not None:
            self._optional["max_tokens"] = max_tokens
        self._formats = ["json_schema", "json_object"]
        self._takes_tools = True

    @property
    def takes_tools(self) -> bool:
        return self._takes_tools

    def stream(
        self,
        messages: Sequence[ports.ChatMessage],
        *,
        json_schema: dict[str, Any] | None = None,
        tools: Sequence[Tool] = (),
    ) -> _OpenAIStream:
        """Opens the completion and waits for its first words; up to there, failures are tried again."""

        def request() -> _OpenAIStream:
            offered = tools if self._takes_tools else ()
            fields = self._optional | self._response_format(json_schema) | openai_tools.describe_tools(offered)
            written: Any = openai_tools.write_messages(messages, with_tools=bool(offered))
            return _OpenAIStream(
                self._server.client.chat.completions.create(model=self.model, messages=written, stream=True, **fields),
                self.model,
                self._server,
                time.monotonic() + self._total_seconds,
            )

        return self._server.ask(request, partial(self._give_up_field, with_tools=bool(tools)))

    def _response_format(self, schema: dict[str, Any] | None) -> dict[str, Any]:
        if schema is None or not self._formats:
            return {}
        if self._formats[0] == "json_object":
            return {"response_format": {"type": "json_object"}}
        named = {"name": "cited_answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def _give_up_field(self, refusal: str, *, with_tools: bool) -> bool:
        """Tools go first: servers that cannot have them beside a response format name both in their refusal."""
        if with_tools and self._takes_tools and openai_tools.refuses_tools(refusal):
            self._takes_tools = False
            return True
        for name in list(self._optional):
            if connection.names(refusal, name):
                self._rename_or_drop(name)
                return True
        if self._formats and _FORMAT_WORDS.search(refusal):
            self._formats = self._formats[1:]
            return True
        return False

    def _rename_or_drop(self, name: str) -> None:
        value = self._optional.pop(name)
        if name == "max_tokens":  # newer models of the original vendor know the limit by another name only
            self._optional["max_completion_tokens"] = value


class _OpenAIStream:
    """A running completion; made with its first piece already read."""

    def __init__(self, stream: openai.Stream[Any], model: str, server: connection.Connection, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline
        self._server = server  # it must outlive the stream
        self._finished = False
        self._usage = models.Usage(model=model)
        self._calls = openai_tools.CallReader()
        self._texts = self._read()
        try:
            self._first = next(self._texts, "")
            self._check_finished(bool(self._first))
        except BaseException:
            self.close()
            raise

    @property
    def usage(self) -> models.Usage:
        return self._usage

    @property
    def tool_calls(self) -> tuple[ports.ToolCall, ...]:
        return self._calls.calls

    def __iter__(self) -> Iterator[str]:
        """Raises ModelUnavailableError when the server goes away before it has said that it is done."""
        first, self._first = self._first, ""
        if first:
            yield first
        with connection.vendor_errors():
            yield from self._texts
        self._check_finished()

    def close(self) -> None:
        self._stream.close()

    def _check_finished(self, goes_on: bool = False) -> None:
        if not (self._finished or goes_on):
            raise errors.ModelUnavailableError("The model server broke off its answer. Ask again in a moment.")

    def _read(self) -> Iterator[str]:
        halves = _Halves()
        with _odd_replies():
            for chunk in self._stream:
                if time.monotonic() > self._deadline:
                    raise errors.ModelUnavailableError("The model server took too long.")
                if chunk.usage is not None:
                    self._usage = models.Usage(
                        prompt_tokens=chunk.usage.prompt_tokens,
                        completion_tokens=chunk.usage.completion_tokens,
                        model=chunk.model or self._usage.model,
                    )
                for choice in chunk.choices or ():
                    self._finished = self._finished or choice.finish_reason is not None
                    if choice.delta and choice.delta.tool_calls:
                        self._calls.read(choice.delta.tool_calls)
                    text = choice.delta and (choice.delta.content or choice.delta.refusal)
                    if text and (whole := halves.join(str(text))):
                        yield whole


class _Halves:
    """Joins characters whose two UTF-16 halves come in two pieces, as servers cut them that count in UTF-16."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, piece: str) -> str:
        """What can be read of the pieces so far; a last half waits for the other."""
        piece, self._held = self._held + piece, ""
        if "\ud800" <= piece[-1] < "\udc00":
            piece, self._held = piece[:-1], piece[-1]
        return piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _HALF.search(piece) else piece


@contextmanager
def _odd_replies() -> Iterator[None]:
    """A chunk of another shape than the protocol's is the server's fault; the client does not check what it parses."""
    try:
        yield
    except (AttributeError, TypeError, KeyError) as exc:
        raise errors.ModelUnavailableError("The model server answered with something else than a completion.") from exc
