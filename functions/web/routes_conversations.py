"""Conversations and their messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from functions.adapters.postgres import conversations
from functions.web import schemas
from functions.web.deps import CurrentUser, ServicesDep, read_id

router = APIRouter(prefix="/api/rag/conversations")

Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query(max_length=500)]


@router.get("")
def list_conversations(
    user: CurrentUser, services: ServicesDep, limit: Limit = 30, cursor: Cursor = None
) -> schemas.ConversationPage:
    with services.database.as_user(user) as connection:
        rows, next_cursor = conversations.list_page(connection, limit, cursor)
    items = [schemas.Conversation.model_validate(row) for row in rows]
    return schemas.ConversationPage(items=items, next_cursor=next_cursor)


@router.get("/{conversation_id}/messages")
def list_messages(
    conversation_id: str, user: CurrentUser, services: ServicesDep, limit: Limit = 50, cursor: Cursor = None
) -> schemas.MessagePage:
    with services.database.as_user(user) as connection:
        rows, next_cursor = conversations.list_messages(
            connection, read_id(conversation_id, "conversation"), limit, cursor
        )
    return schemas.MessagePage(items=[schemas.Message.model_validate(row) for row in rows], next_cursor=next_cursor)


@router.patch("/{conversation_id}")
def rename_conversation(
    conversation_id: str, body: schemas.ConversationTitle, user: CurrentUser, services: ServicesDep
) -> schemas.Conversation:
    with services.database.as_user(user) as connection:
        row = conversations.rename(connection, read_id(conversation_id, "conversation"), body.title)
    return schemas.Conversation.model_validate(row)


@router.delete("/{conversation_id}", status_code=204)
def delete_conversation(conversation_id: str, user: CurrentUser, services: ServicesDep) -> None:
    with services.database.as_user(user) as connection:
        conversations.delete(connection, read_id(conversation_id, "conversation"))
