"""Response bodies of messages, with the present state of each cited source."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from functions.core.citations import relocation

Rating = Literal["up", "down"]


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
    searched as well. `replaces` is the question whose place a question takes; `rating` is the reader's judgement.
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
    replaces: UUID | None
    rating: Rating | None
    rating_reason: str
    created_at: datetime


class RatedAnswer(BaseModel):
    """An answer that its reader has judged, as the evaluation needs it."""

    id: UUID
    conversation_id: UUID
    question: str
    answer: str
    rating: Rating
    reason: str
    mode: str | None
    sources: list[dict[str, Any]]
    usage: dict[str, Any] | None
    rated_at: datetime

    @classmethod
    def of(cls, row: dict[str, Any]) -> RatedAnswer:
        """Reads a row of rag.messages with its question."""
        return cls.model_validate(row | {"answer": row["content"], "reason": row["rating_reason"]})


class RatedAnswerPage(BaseModel):
    items: list[RatedAnswer]
    next_cursor: str | None


class MessagePage(BaseModel):
    items: list[Message]
    next_cursor: str | None
