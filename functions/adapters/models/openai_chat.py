"""Chat models behind any server that speaks the OpenAI protocol.

Servers differ in the fields that they accept: when a refusal names a field, the same object does not send it again.
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
"""The limit of one reply: no reader waits longer."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_FORMAT_FIELD = re.compile(r"response_?format|json_(schema|object|mode)|structured.output|grammar", re.IGNORECASE)


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
        retry_policy: connection.RetryPolicy | None = None,
        read_seconds: float = connection.READ_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        """`read_seconds` limits each silence of the server, including the one before its first word.

        After `total_seconds` the next data from the server, even a comment or reasoning, ends the reply with an error.
        """
        self.model = model
        self._server = connection.Connection(
            base_url, api_key, retry_policy or connection.RetryPolicy(), read_seconds, total_seconds
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
        """Opens the completion and waits for its first words; failures before them are retried."""

        def request() -> _OpenAIStream:
            offered_tools = tools if self._takes_tools else ()
            fields = self._optional | self._response_format(json_schema) | openai_tools.describe_tools(offered_tools)
            written = openai_tools.write_messages(messages, with_tools=bool(offered_tools))
            body = {"model": self.model, "messages": written, "stream": True} | fields
            return _OpenAIStream(
                # client.chat.completions.create() would go through every node of the request, which takes 1 ms for our
                # schemas, and make an object of each field of each piece, half of what reading a piece takes.
                self._server.client.post(
                    "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=_stream_class()
                ),
                self.model,
                self._server,
                time.monotonic() + self._total_seconds,
            )

        return self._server.send(request, partial(self._drop_field, with_tools=bool(tools)))

    def _response_format(self, schema: dict[str, Any] | None) -> dict[str, Any]:
        if schema is None or not self._formats:
            return {}
        if self._formats[0] == "json_object":
            return {"response_format": {"type": "json_object"}}
        named_schema = {"name": "cited_answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named_schema}}

    def _drop_field(self, refusal: str, *, with_tools: bool) -> bool:
        """Drops tools first: a server that refuses them together with a response format names both."""
        if with_tools and self._takes_tools and openai_tools.refuses_tools(refusal):
            self._takes_tools = False
            return True
        for name in list(self._optional):
            if connection.mentions(refusal, name):
                self._rename_or_drop(name)
                return True
        if self._formats and _FORMAT_FIELD.search(refusal):
            self._formats = self._formats[1:]
            return True
        return False

    def _rename_or_drop(self, name: str) -> None:
        value = self._optional.pop(name)
        if name == "max_tokens":  # OpenAI's newer models accept the limit only under this name
            self._optional["max_completion_tokens"] = value


def _stream_class() -> type[openai.Stream[Any]]:
    import openai  # takes 0.5 s

    return openai.Stream[object]


class _OpenAIStream:
    """A running completion whose first piece has been read."""

    def __init__(self, stream: openai.Stream[Any], model: str, server: connection.Connection, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline
        self._server = server  # keeps the HTTP client open as long as the stream
        self._finished = False
        self._usage = models.Usage(model=model)
        self._calls = openai_tools.CallReader()
        self._texts = self._read()
        try:
            self._first = next(self._texts, "")
            self._check_finished(has_more=bool(self._first))
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
        """Raises ModelUnavailableError when the stream ends without a finish reason."""
        first, self._first = self._first, ""
        if first:
            yield first
        with connection.vendor_errors():
            yield from self._texts
        self._check_finished()

    def close(self) -> None:
        self._stream.close()

    def _check_finished(self, *, has_more: bool = False) -> None:
        if not (self._finished or has_more):
            raise errors.ModelUnavailableError(
                "The model server stopped in the middle of its answer. Ask again in a moment."
            )

    def _read(self) -> Iterator[str]:
        joiner = _SurrogateJoiner()
        with _protocol_errors():
            for chunk in self._stream:
                if time.monotonic() > self._deadline:
                    raise errors.ModelUnavailableError("The model server took too long. Ask again in a moment.")
                if (usage := chunk.get("usage")) is not None:
                    self._usage = models.Usage(
                        prompt_tokens=_count(usage.get("prompt_tokens")),
                        completion_tokens=_count(usage.get("completion_tokens")),
                        model=chunk.get("model") or self._usage.model,
                    )
                for choice in chunk.get("choices") or ():
                    self._finished = self._finished or choice.get("finish_reason") is not None
                    delta = choice.get("delta") or {}
                    if calls := delta.get("tool_calls"):
                        self._calls.read(calls)
                    text = delta.get("content") or delta.get("refusal")
                    if text and (whole := joiner.join(str(text))):
                        yield whole


def _count(value: object) -> int | None:
    """A count that a server reports; one that is missing or no number costs no answer."""
    return value if isinstance(value, int) else None


class _SurrogateJoiner:
    """Joins surrogate pairs that arrive in two pieces, from servers that cut text by UTF-16 units."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, piece: str) -> str:
        """The complete characters so far; a trailing high surrogate is held until the next piece."""
        piece, self._held = self._held + piece, ""
        if "\ud800" <= piece[-1] < "\udc00":
            piece, self._held = piece[:-1], piece[-1]
        return (
            piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _SURROGATE.search(piece) else piece
        )


@contextmanager
def _protocol_errors() -> Iterator[None]:
    """Reports a chunk of the wrong shape as the server's error, because the client library does not check shapes."""
    try:
        yield
    except (AttributeError, TypeError, KeyError) as exc:
        raise errors.ModelUnavailableError(
            "The model server sent something other than a completion. Ask again in a moment."
        ) from exc
