"""Creates, reads, changes, trashes, restores and deletes notes. A worker indexes each saved note."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Query

from functions.adapters.postgres import notes, users
from functions.core import errors
from functions.core.text.storable import clean_text
from functions.web.deps import CurrentUser, ServicesDep, read_id
from functions.web.discarding import discard
from functions.web.polling import MAX_WAIT_SECONDS, read_until
from functions.web.routes.notebooks import Cursor, Limit, TitleFilter
from functions.web.schemas import library as schemas
from functions.web.schemas.operations import NoteReceipt, NoteText

router = APIRouter(prefix="/api/rag/notes")

TEXT_PARTS = 20


@router.post("", status_code=201, responses={404: {}})
def create_note(body: schemas.NewNote, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    settings = services.policy().settings
    with services.database.as_user(user) as connection:
        users.take_upload(connection, settings, len(body.content.encode()))
        row = notes.insert(connection, user, body.model_dump())
        job_id = notes.find_queued_job(connection, row["id"])
    if job_id is not None:
        services.nudge_note_worker(job_id)
    return schemas.Note.model_validate(row)


@router.get("")
def list_notes(
    user: CurrentUser,
    services: ServicesDep,
    notebook_id: UUID | None = None,
    trashed: bool = False,
    title: TitleFilter = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> schemas.NotePage:
    """Notes, the newest change first; with `trashed` those in the trash instead of the others."""
    with services.database.as_user(user) as connection:
        rows, next_cursor = notes.list_page(
            connection,
            notebook_id=str(notebook_id) if notebook_id else None,
            trashed=trashed,
            title=clean_text(title) if title else None,
            limit=limit,
            cursor=cursor,
        )
    return schemas.NotePage(items=[schemas.NoteItem.model_validate(row) for row in rows], next_cursor=next_cursor)


@router.get("/{note_id}")
async def get_note(
    note_id: str,
    user: CurrentUser,
    services: ServicesDep,
    wait: Annotated[int, Query(ge=0, le=MAX_WAIT_SECONDS)] = 0,
) -> schemas.Note:
    """With `wait`, responds when the note is no longer `queued`, or after `wait` seconds."""
    checked_id = read_id(note_id, "note")

    def read_status() -> str:
        with services.database.as_user(user) as connection:
            return notes.read_status(connection, checked_id)

    def find() -> schemas.Note:
        with services.database.as_user(user) as connection:
            return schemas.Note.model_validate(notes.find(connection, checked_id))

    if wait:
        await read_until(read_status, lambda status: status != "queued", wait)
    return await anyio.to_thread.run_sync(find)


@router.patch("/{note_id}", responses={409: {}})
def update_note(note_id: str, body: schemas.NoteChanges, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    """Changes a note. A new title or content is indexed; the old text remains searchable until then."""
    checked_id = read_id(note_id, "note")
    changes = body.model_dump(exclude_unset=True, exclude={"expected_updated_at"})
    settings = services.policy().settings
    with services.database.as_user(user) as connection:
        if changes.keys() & {"title", "content"}:
            users.take_note_change(connection, settings, checked_id, changes.get("content"))
        row = notes.update(connection, checked_id, changes, body.expected_updated_at)
        job_id = notes.find_queued_job(connection, checked_id)
    if job_id is not None:
        services.nudge_note_worker(job_id)
    return schemas.Note.model_validate(row)


@router.post("/{note_id}/trash")
def trash_note(note_id: str, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    """Moves a note to the trash, which hides it and its attachments from search; repeating this changes nothing."""
    with services.database.as_user(user) as connection:
        return schemas.Note.model_validate(notes.set_trashed(connection, read_id(note_id, "note"), True))


@router.post("/{note_id}/restore")
def restore_note(note_id: str, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    """Takes a note and its attachments out of the trash, still indexed; repeating this changes nothing."""
    with services.database.as_user(user) as connection:
        return schemas.Note.model_validate(notes.set_trashed(connection, read_id(note_id, "note"), False))


@router.post("/{note_id}/reindex", responses={409: {}})
def reindex_note(note_id: str, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    """Indexes a note again, for instance after a failure; the old passages remain searchable until then."""
    checked_id = read_id(note_id, "note")
    settings = services.policy().settings
    with services.database.as_user(user) as connection:
        users.take_indexing(connection, settings)
        notes.lock(connection, checked_id)
        job_id = notes.request_job(connection, checked_id)
        row = notes.find(connection, checked_id)
    if job_id is None:
        raise errors.ConflictError("The note has no text. Write some first.")
    services.nudge_note_worker(job_id)
    return schemas.Note.model_validate(row)


@router.delete("/{note_id}", response_model=NoteReceipt)
def delete_note(
    note_id: str, user: CurrentUser, services: ServicesDep, attachments: Literal["delete", "keep"] = "delete"
) -> dict[str, Any]:
    """Deletes a note and its attachments, or with `attachments=keep` the note alone; rows before stored files."""
    checked_id = read_id(note_id, "note")
    with services.database.as_user(user) as connection:
        removed, kept = notes.delete(connection, checked_id, keep_attachments=attachments == "keep")
    objects = discard(services.objects, removed.pop("object_paths"))
    removed["objects"] = objects or 0
    return {
        "note_id": checked_id,
        "removed": removed,
        "moved": {"documents": kept},
        "files_pending": objects is None,
    }


@router.get("/{note_id}/text", response_model=NoteText)
def get_text(
    note_id: str, user: CurrentUser, services: ServicesDep, page: Annotated[int | None, Query(ge=1)] = None
) -> dict[str, Any]:
    """The indexed text to which the offsets of citations refer: one part, or the first TEXT_PARTS parts."""
    with services.database.as_user(user) as connection:
        page_count, pages = notes.read_pages(connection, read_id(note_id, "note"), page or 1, page or TEXT_PARTS)
    if page is not None and not pages:
        raise errors.NotFoundError("There is no such page.")
    items = [
        {"page": p["page_number"], "text": p["text"], "warnings": p["warnings"], "ocr_confidence": p["ocr_confidence"]}
        for p in pages
    ]
    return {"note_id": read_id(note_id, "note"), "page_count": page_count, "pages": items}
