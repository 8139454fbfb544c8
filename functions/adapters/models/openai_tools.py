"""Tools in the OpenAI protocol: how they are offered, how calls arrive in pieces, how results are handed back."""

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
"""Models can fall into endless calls, and into endless arguments: more is not read."""

_REFUSAL = re.compile(r"\btool|function[ _-]?call", re.IGNORECASE)


def refuses_tools(refusal: str) -> bool:
    """Whether a server's refusal is about tools: unknown to it, to its model, or beside a response format."""
    return _REFUSAL.search(refusal) is not None


def describe_tools(tools: Sequence[Tool]) -> dict[str, Any]:
    """The field of a request that offers `tools`; no field for none, since an empty list is refused."""
    described = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]
    return {"tools": described} if described else {}


def write_messages(messages: Sequence[ports.ChatMessage], *, with_tools: bool) -> list[dict[str, Any]]:
    """The messages as a server takes them.

    Not every server takes calls and results in a request that offers no tools. There, what the tools gave is told by
    the last message before them: many prompt templates want questions and answers to alternate.
    """
    written: list[dict[str, Any]] = []
    called: dict[str | None, ports.ToolCall] = {}
    for message in messages:
        plain: dict[str, Any] = {"role": message.role, "content": message.content}
        called |= {call.id: call for call in message.tool_calls}
        if with_tools and message.tool_calls:
            calls = [_write_call(call) for call in message.tool_calls]
            written.append(plain | {"content": message.content or None, "tool_calls": calls})
        elif with_tools and message.tool_call_id is not None:
            written.append(plain | {"tool_call_id": message.tool_call_id})
        elif message.tool_call_id is not None:
            call = called[message.tool_call_id]
            written[-1]["content"] += f"\n\nResult of {call.name} {call.arguments}:\n{message.content}"
        elif not message.tool_calls:
            written.append(plain)
    return written


def _write_call(call: ports.ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


@dataclass(slots=True)
class _Draft:
    """A call of which more may come; `index` and `id` are what later pieces may know it by."""

    index: int | None
    id: str
    name: str = ""
    arguments: str = ""


class CallReader:
    """Puts the calls together that a stream brings in pieces, whichever of index and id a server sends along."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []

    @property
    def calls(self) -> tuple[ports.ToolCall, ...]:
        """The calls in their order, each with an id of its own."""
        ids: list[str] = []
        for at, draft in enumerate(self._drafts):
            ids.append(draft.id if draft.id and draft.id not in ids else f"call_{at}")
        return tuple(
            ports.ToolCall(own, draft.name, draft.arguments) for own, draft in zip(ids, self._drafts, strict=True)
        )

    def read(self, pieces: Iterable[Any]) -> None:
        for piece in pieces:
            draft = self._find(piece)
            if draft is None or piece.function is None:
                continue
            draft.name = draft.name or piece.function.name or ""
            arguments = piece.function.arguments or ""
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            draft.arguments += text[: MAX_ARGUMENT_CHARS - len(draft.arguments)]

    def _find(self, piece: Any) -> _Draft | None:
        """The draft that a piece belongs to, or a new one; None when there are too many."""
        for draft in reversed(self._drafts):
            if _belongs(piece, draft):
                draft.id = draft.id or piece.id or ""
                return draft
        if len(self._drafts) == MAX_CALLS:
            return None
        self._drafts.append(_Draft(piece.index, piece.id or ""))
        return self._drafts[-1]


def _belongs(piece: Any, draft: _Draft) -> bool:
    """Some servers number every call 0, some send no number, some neither number nor id."""
    if piece.index is not None:
        return bool(piece.index == draft.index and (not piece.id or draft.id in ("", piece.id)))
    if piece.id:
        return bool(piece.id == draft.id)
    return not (draft.name and piece.function and piece.function.name)
