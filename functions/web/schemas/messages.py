"""Response bodies of messages, with the present state of each cited source."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from functions.core.citations import relocation


class Source(BaseModel):
    """A saved citation (the fields of `models.Citation`) and the present state of its source.

    `place` is None if the source was deleted; if the quotation has `moved`, page, offsets and quote are up to date.
    """

    model_config = ConfigDict(extra="allow")

    source_id: UUID
    document_id: UUID
    state: relocation.State
    superseded_by: UUID | None
    place: relocation.Place | None


class Message(BaseModel):
    """A question or an answer.

    `search_query` is the rewritten question that was searched instead, `translated_query` its translation that was
    searched as well.
    """

    id: UUID
    role: Literal["user", "assistant"]
    content: str
    status: str
    mode: str | None
    sections: list[dict[str, Any]]
    sources: list[Source]
    scope: dict[str, Any] | None
    usage: dict[str, Any] | None
    search_query: str | None
    translated_query: str | None
    created_at: datetime


class MessagePage(BaseModel):
    items: list[Message]
    next_cursor: str | None
