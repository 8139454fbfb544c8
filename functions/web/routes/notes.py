"""Write, read, trash, restore and delete notes; what is saved is searchable as soon as a worker has indexed it."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query

from functions.adapters.postgres import notes
from functions.core import errors
from functions.core.text.storable import clean_text
from functions.web.deps import CurrentUser, ServicesDep, read_id
from functions.web.routes.notebooks import Cursor, Limit, TitleFilter
from functions.web.schemas import library as schemas

router = APIRouter(prefix="/api/rag/notes")

POLL_SECONDS = 0.2
MAX_WAIT_SECONDS = 25  # an API gateway gives up after 30
TEXT_PARTS = 20


@router.post("", status_code=201)
def create_note(body: schemas.NewNote, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    with services.database.as_user(user) as connection:
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
    """Newest change first: the notes that are not in the trash, or with `trashed` those that are."""
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
def get_note(
    note_id: str,
    user: CurrentUser,
    services: ServicesDep,
    wait: Annotated[int, Query(ge=0, le=MAX_WAIT_SECONDS)] = 0,
) -> schemas.Note:
    """With `wait`, answers as soon as the note is no longer `queued`, after `wait` s at most."""
    found = read_id(note_id, "note")
    deadline = time.monotonic() + wait
    while True:
        with services.database.as_user(user) as connection:
            if time.monotonic() >= deadline or notes.read_status(connection, found) != "queued":
                return schemas.Note.model_validate(notes.find(connection, found))
        time.sleep(POLL_SECONDS)


@router.patch("/{note_id}")
def update_note(note_id: str, body: schemas.NoteChanges, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    """Another title or content queues the note again; its old text answers until the new one replaces it."""
    found = read_id(note_id, "note")
    changes = body.model_dump(exclude_unset=True, exclude={"expected_updated_at"})
    with services.database.as_user(user) as connection:
        row = notes.update(connection, found, changes, body.expected_updated_at)
        job_id = notes.find_queued_job(connection, found)
    if job_id is not None:
        services.nudge_note_worker(job_id)
    return schemas.Note.model_validate(row)


@router.post("/{note_id}/trash")
def trash_note(note_id: str, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    """Hides the note and its attachments from search at once; doing it again changes nothing."""
    with services.database.as_user(user) as connection:
        return schemas.Note.model_validate(notes.set_trashed(connection, read_id(note_id, "note"), True))


@router.post("/{note_id}/restore")
def restore_note(note_id: str, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    """Brings the note and its attachments back as they were indexed; doing it again changes nothing."""
    with services.database.as_user(user) as connection:
        return schemas.Note.model_validate(notes.set_trashed(connection, read_id(note_id, "note"), False))


@router.post("/{note_id}/reindex")
def reindex_note(note_id: str, user: CurrentUser, services: ServicesDep) -> schemas.Note:
    """Indexes the note again, as after a failure; what is indexed answers until the new passages replace it."""
    found = read_id(note_id, "note")
    with services.database.as_user(user) as connection:
        notes.lock(connection, found)
        job_id = notes.request_job(connection, found)
        row = notes.find(connection, found)
    if job_id is None:
        raise errors.ConflictError("The note has no text: write some first.")
    services.nudge_note_worker(job_id)
    return schemas.Note.model_validate(row)


@router.delete("/{note_id}")
def delete_note(
    note_id: str, user: CurrentUser, services: ServicesDep, attachments: Literal["delete", "keep"] = "delete"
) -> dict[str, Any]:
    """Deletes the note and its attachments, or keeps these in its notebook: rows first, stored files after."""
    found = read_id(note_id, "note")
    with services.database.as_user(user) as connection:
        removed, kept = notes.delete(connection, found, keep_attachments=attachments == "keep")
    removed["objects"] = services.objects.remove(removed.pop("object_paths"))
    return {"note_id": found, "removed": removed, "moved": {"documents": kept}}


@router.get("/{note_id}/text")
def get_text(
    note_id: str, user: CurrentUser, services: ServicesDep, page: Annotated[int | None, Query(ge=1)] = None
) -> dict[str, Any]:
    """The text as it is indexed, what citations point into: one part, or the first TEXT_PARTS."""
    with services.database.as_user(user) as connection:
        page_count, pages = notes.read_pages(connection, read_id(note_id, "note"), page or 1, page or TEXT_PARTS)
    if page is not None and not pages:
        raise errors.NotFoundError("There is no such page.")
    items = [
        {"page": p["page_number"], "text": p["text"], "warnings": p["warnings"], "ocr_confidence": p["ocr_confidence"]}
        for p in pages
    ]
    return {"note_id": read_id(note_id, "note"), "page_count": page_count, "pages": items}
