"""Messages of a conversation as they are read: what was said, and what has become of what it cites."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from functions.core.citations import relocation


class Source(BaseModel):
    """A citation as it was saved (the fields of `models.Citation`), and its source as it is now.

    `place` is None where the source is gone; where the quotation has `moved`, page, offsets and quote are those of now.
    """

    model_config = ConfigDict(extra="allow")

    source_id: UUID
    document_id: UUID
    state: relocation.State
    superseded_by: UUID | None
    place: relocation.Place | None


class Message(BaseModel):
    """A question, or an answer; `search_query` is what was searched in place of the question."""

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
    created_at: datetime


class MessagePage(BaseModel):
    items: list[Message]
    next_cursor: str | None
