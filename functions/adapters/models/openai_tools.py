"""Tools in the OpenAI protocol: offers them, puts streamed calls together, and writes their results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from functions.core import ports
from functions.core.ports import Tool

MAX_CALLS = 32
MAX_ARGUMENT_CHARS = 20_000
"""Some models repeat calls or arguments without end: anything beyond these limits is ignored."""

_REFUSAL = re.compile(r"\btool|function[ _-]?call", re.IGNORECASE)


def refuses_tools(refusal: str) -> bool:
    """Whether a refusal is about tools: the server or the model has none, or none with a response format."""
    return _REFUSAL.search(refusal) is not None


def describe_tools(tools: Sequence[Tool]) -> dict[str, Any]:
    """The request field that offers `tools`; without tools there is none, because servers refuse an empty list."""
    described = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]
    return {"tools": described} if described else {}


def write_messages(messages: Sequence[ports.ChatMessage], *, with_tools: bool) -> list[dict[str, Any]]:
    """The messages in the form of the protocol.

    Some servers refuse calls and results in a request that offers no tools. Without tools, results are therefore added
    to the last message before them, because many prompt templates require questions and answers to alternate.
    """
    written: list[dict[str, Any]] = []
    calls_by_id: dict[str | None, ports.ToolCall] = {}
    for message in messages:
        plain: dict[str, Any] = {"role": message.role, "content": message.content}
        calls_by_id |= {call.id: call for call in message.tool_calls}
        if with_tools and message.tool_calls:
            calls = [_write_call(call) for call in message.tool_calls]
            written.append(plain | {"content": message.content or None, "tool_calls": calls})
        elif with_tools and message.tool_call_id is not None:
            written.append(plain | {"tool_call_id": message.tool_call_id})
        elif message.tool_call_id is not None:
            call = calls_by_id[message.tool_call_id]
            written[-1]["content"] += f"\n\nResult of {call.name} {call.arguments}:\n{message.content}"
        elif not message.tool_calls:
            written.append(plain)
    return written


def _write_call(call: ports.ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


@dataclass(slots=True)
class _Draft:
    """A call that is still arriving; later pieces name it by `index` or `id`."""

    index: int | None
    id: str
    name: str = ""
    arguments: str = ""


class CallReader:
    """Puts tool calls together from the pieces of a stream, for servers that send an index, an id, both or neither."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []

    @property
    def calls(self) -> tuple[ports.ToolCall, ...]:
        """The calls in their order, each with a unique id."""
        ids: list[str] = []
        for at, draft in enumerate(self._drafts):
            ids.append(draft.id if draft.id and draft.id not in ids else f"call_{at}")
        return tuple(
            ports.ToolCall(call_id, draft.name, draft.arguments)
            for call_id, draft in zip(ids, self._drafts, strict=True)
        )

    def read(self, pieces: Iterable[dict[str, Any]]) -> None:
        for piece in pieces:
            draft, function = self._find(piece), piece.get("function")
            if draft is None or function is None:
                continue
            draft.name = draft.name or function.get("name") or ""
            arguments = function.get("arguments") or ""
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            draft.arguments += text[: MAX_ARGUMENT_CHARS - len(draft.arguments)]

    def _find(self, piece: dict[str, Any]) -> _Draft | None:
        """The draft that a piece belongs to, or a new one; None beyond MAX_CALLS."""
        for draft in reversed(self._drafts):
            if _belongs(piece, draft):
                draft.id = draft.id or piece.get("id") or ""
                return draft
        if len(self._drafts) == MAX_CALLS:
            return None
        self._drafts.append(_Draft(piece.get("index"), piece.get("id") or ""))
        return self._drafts[-1]


def _belongs(piece: dict[str, Any], draft: _Draft) -> bool:
    """Compares index and id as far as they exist: some servers send index 0 for every call, no index, or neither."""
    index, call_id = piece.get("index"), piece.get("id")
    if index is not None:
        return bool(index == draft.index and (not call_id or draft.id in ("", call_id)))
    if call_id:
        return bool(call_id == draft.id)
    return not (draft.name and (piece.get("function") or {}).get("name"))
