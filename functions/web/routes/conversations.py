"""Conversations with their messages and attached documents; exports a conversation, saves an answer as a note."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import AfterValidator

from functions.adapters.postgres import cited_sources, conversations, messages
from functions.core import errors, models
from functions.core.answering import export
from functions.core.text import languages, titles
from functions.core.text.storable import clean_text
from functions.runtime.services import Services
from functions.web.deps import CurrentUser, ServicesDep, read_id
from functions.web.schemas import library, requests
from functions.web.schemas.messages import Message, MessagePage, RatedAnswer, RatedAnswerPage

router = APIRouter(prefix="/api/rag/conversations")

Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query(max_length=500)]


SearchText = Annotated[str, Query(max_length=200), AfterValidator(clean_text)]


class MarkdownFile(Response):
    media_type = "text/markdown; charset=utf-8"


@router.get("")
def list_conversations(
    user: CurrentUser, services: ServicesDep, limit: Limit = 30, cursor: Cursor = None, q: SearchText = ""
) -> requests.ConversationPage:
    """The last used first; with `q`, those whose title or messages have each of its words."""
    with services.database.as_user(user) as connection:
        rows, next_cursor = conversations.list_page(connection, limit, cursor, q)
    items = [requests.Conversation.model_validate(row) for row in rows]
    return requests.ConversationPage(items=items, next_cursor=next_cursor)


@router.get("/ratings")
def list_ratings(user: CurrentUser, services: ServicesDep, limit: Limit = 50, cursor: Cursor = None) -> RatedAnswerPage:
    """The answers that the caller has rated, each with its question, the last rated first."""
    with services.database.as_user(user) as connection:
        rows, next_cursor = messages.list_rated(connection, limit, cursor)
    return RatedAnswerPage(items=[RatedAnswer.of(row) for row in rows], next_cursor=next_cursor)


@router.get("/{conversation_id}/messages")
def list_messages(
    conversation_id: str, user: CurrentUser, services: ServicesDep, limit: Limit = 50, cursor: Cursor = None
) -> MessagePage:
    """Each source has its present `state`, and its `place` says whether the quoted words are still there."""
    with services.database.as_user(user) as connection:
        rows, next_cursor = messages.list_messages(connection, read_id(conversation_id, "conversation"), limit, cursor)
        rows = cited_sources.describe(connection, rows)
    items = [Message.model_validate(row) for row in rows]
    return MessagePage(items=items, next_cursor=next_cursor)


@router.patch("/{conversation_id}")
def rename_conversation(
    conversation_id: str, body: requests.ConversationTitle, user: CurrentUser, services: ServicesDep
) -> requests.Conversation:
    with services.database.as_user(user) as connection:
        row = conversations.rename(connection, read_id(conversation_id, "conversation"), body.title)
    return requests.Conversation.model_validate(row)


@router.delete("/{conversation_id}", status_code=204)
def delete_conversation(conversation_id: str, user: CurrentUser, services: ServicesDep) -> None:
    with services.database.as_user(user) as connection:
        conversations.delete(connection, read_id(conversation_id, "conversation"))


@router.get("/{conversation_id}/documents")
def list_documents(conversation_id: str, user: CurrentUser, services: ServicesDep) -> requests.AttachedDocumentList:
    with services.database.as_user(user) as connection:
        rows = conversations.list_documents(connection, read_id(conversation_id, "conversation"))
    return _describe_documents(rows)


@router.put("/{conversation_id}/documents")
def replace_documents(
    conversation_id: str, body: requests.AttachedDocuments, user: CurrentUser, services: ServicesDep
) -> requests.AttachedDocumentList:
    """Makes these documents the scope of the conversation; an empty list restores its original scope."""
    return _attach(conversation_id, body, user, services, replace=True)


@router.post("/{conversation_id}/documents")
def attach_documents(
    conversation_id: str, body: requests.AttachedDocuments, user: CurrentUser, services: ServicesDep
) -> requests.AttachedDocumentList:
    return _attach(conversation_id, body, user, services, replace=False)


@router.delete("/{conversation_id}/documents/{document_id}", status_code=204)
def detach_document(conversation_id: str, document_id: str, user: CurrentUser, services: ServicesDep) -> None:
    """Detaches a document; for one that is not attached, this changes nothing."""
    with services.database.as_user(user) as connection:
        conversations.detach_document(
            connection, read_id(conversation_id, "conversation"), read_id(document_id, "document")
        )


@router.get("/{conversation_id}/export", response_class=MarkdownFile)
def export_conversation(
    conversation_id: str, user: CurrentUser, services: ServicesDep, lang: export.Language = "en"
) -> Response:
    """The conversation as a Markdown file, with headings in `lang`."""
    checked_id = read_id(conversation_id, "conversation")
    with services.database.as_user(user) as connection:
        conversation = conversations.find(connection, checked_id)
        rows = cited_sources.describe(connection, messages.read_all_messages(connection, checked_id))
    text = export.write_conversation(
        conversation["title"],
        [_read_message(row) for row in rows],
        begun_at=conversation["created_at"],
        exported_at=datetime.now(UTC),
        states=cited_sources.read_states(rows),
        lang=lang,
    )
    name = export.name_file(conversation["title"])
    disposition = f"attachment; filename=\"conversation.md\"; filename*=UTF-8''{quote(name, safe='')}"
    return MarkdownFile(text, headers={"Content-Disposition": disposition})


@router.put("/{conversation_id}/messages/{message_id}/rating", status_code=204)
def rate_answer(
    conversation_id: str, message_id: str, body: requests.AnswerRating, user: CurrentUser, services: ServicesDep
) -> None:
    """Keeps what the reader thinks of an answer; a second rating replaces the first."""
    _rate(user, services, conversation_id, message_id, body.rating, body.reason)


@router.delete("/{conversation_id}/messages/{message_id}/rating", status_code=204)
def withdraw_rating(conversation_id: str, message_id: str, user: CurrentUser, services: ServicesDep) -> None:
    _rate(user, services, conversation_id, message_id, None)


@router.post("/{conversation_id}/messages/{message_id}/note", status_code=201, responses={409: {}})
def save_answer_as_note(
    conversation_id: str, message_id: str, body: requests.AnswerNote, user: CurrentUser, services: ServicesDep
) -> library.Note:
    """Saves an answer with its sources, whose links open the cited pages even after the conversation is deleted."""
    from functions.web.routes import notes  # loaded only here: it would lengthen the cold start of this function

    checked_id = read_id(conversation_id, "conversation")
    with services.database.as_user(user) as connection:
        answer = messages.find_answer(connection, checked_id, read_id(message_id, "answer"))
        (row,) = cited_sources.describe(connection, [answer])
    lang: export.Language = "fr" if languages.detect_language(row["question"] or "") == "fr" else "en"
    states = cited_sources.read_states([row])
    content = export.write_answer(_read_message(row), address="/", states=states, lang=lang)
    if len(content) > library.MAX_CONTENT:
        raise errors.InvalidInputError("The answer is too long for a note. Export the conversation instead.")
    title = body.title or titles.make_title(row["question"] or "")
    note = library.NewNote(title=title, content=content, notebook_id=body.notebook_id)
    return notes.create_note(note, user, services)


def _rate(
    user: models.User,
    services: Services,
    conversation_id: str,
    message_id: str,
    rating: str | None,
    reason: str = "",
) -> None:
    checked_id = read_id(conversation_id, "conversation")
    with services.database.as_user(user) as connection:
        conversations.find(connection, checked_id)
        messages.rate_answer(connection, checked_id, read_id(message_id, "answer"), rating, reason)


def _attach(
    conversation_id: str, body: requests.AttachedDocuments, user: CurrentUser, services: ServicesDep, *, replace: bool
) -> requests.AttachedDocumentList:
    checked_id = read_id(conversation_id, "conversation")
    document_ids = [str(document_id) for document_id in dict.fromkeys(body.document_ids)]
    with services.database.as_user(user) as connection:
        conversations.attach_documents(connection, user, checked_id, document_ids, replace=replace)
        return _describe_documents(conversations.list_documents(connection, checked_id))


def _describe_documents(rows: list[conversations.Row]) -> requests.AttachedDocumentList:
    return requests.AttachedDocumentList(items=[requests.Document.of(row) for row in rows])


def _read_message(row: conversations.Row) -> export.Message:
    names = ("role", "content", "created_at", "status", "mode", "sources", "sections")
    return export.Message(**{name: row[name] for name in names})
