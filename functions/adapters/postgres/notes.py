"""Notes; row level security limits every function to the user's own rows.

Triggers queue a saved note for indexing, and remove the index of an emptied one, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import sql

from functions.adapters.postgres import documents, paging
from functions.adapters.postgres.connection import Connection
from functions.core import errors, models

Row = dict[str, Any]

# Every column but the content, which may be long.
_FACTS: Final = """
    n.id, n.notebook_id, n.title, n.status, n.error_code, n.error, n.chunk_count, n.lang, n.trashed_at, n.created_at,
    n.updated_at, n.indexed_at, (
        select count(*) from rag.documents d
        where d.note_id = n.id and d.superseded_by is null and d.duplicate_of is null
    ) as attachment_count
"""
SNIPPET_LENGTH: Final = 200


def insert(connection: Connection, user: models.User, values: Row) -> Row:
    """`values` has notebook_id, title and content. Raises NotFoundError, also for another user's notebook."""
    documents.check_place(connection, values["notebook_id"], None)
    row = connection.execute(
        "insert into rag.notes (owner_id, notebook_id, title, content)"
        " values (%(owner_id)s, %(notebook_id)s, %(title)s, %(content)s) returning id",
        {"owner_id": user.id, **values},
    ).fetchone()
    assert row is not None
    return find(connection, row["id"])


def find(connection: Connection, note_id: str | UUID) -> Row:
    """Raises NotFoundError, also for another user's note."""
    row = connection.execute(f"select {_FACTS}, n.content from rag.notes n where n.id = %s", (note_id,)).fetchone()
    return _check_found(row)


def read_status(connection: Connection, note_id: str) -> str:
    """The status without the rest of the note, for callers that poll; raises NotFoundError."""
    row = connection.execute("select status from rag.notes where id = %s", (note_id,)).fetchone()
    return str(_check_found(row)["status"])


def list_page(
    connection: Connection,
    *,
    notebook_id: str | None,
    trashed: bool,
    title: str | None,
    limit: int,
    cursor: str | None,
) -> tuple[list[Row], str | None]:
    """One page, the newest change first, and the cursor of the next; `snippet` is the beginning of the content."""
    updated_at, last_id = paging.read_time_cursor(cursor)
    rows = connection.execute(
        f"""
        select {_FACTS},
            left(btrim(regexp_replace(left(n.content, 1000), '\\s+', ' ', 'g')), {SNIPPET_LENGTH}) as snippet
        from rag.notes n
        where (n.trashed_at is not null) = %(trashed)s
            and (%(notebook_id)s::uuid is null or n.notebook_id = %(notebook_id)s::uuid)
            and (%(title)s::text is null or strpos(lower(n.title), lower(%(title)s)) > 0)
            and (%(updated_at)s::timestamptz is null
                or (n.updated_at, n.id) < (%(updated_at)s::timestamptz, %(last_id)s::uuid))
        order by n.updated_at desc, n.id desc
        limit %(limit)s + 1
        """,
        {
            "trashed": trashed,
            "notebook_id": notebook_id,
            "title": title,
            "updated_at": updated_at,
            "last_id": last_id,
            "limit": limit,
        },
    ).fetchall()
    return paging.cut_page(rows, limit, "updated_at", "id")


def update(connection: Connection, note_id: str, changes: Row, expected_updated_at: datetime | None) -> Row:
    """Sets those of title, content and notebook_id that are in `changes` and differ from the stored values.

    Raises NotFoundError, also for another user's notebook, and ConflictError for a note that is in the trash or has
    changed since `expected_updated_at`.
    """
    documents.check_place(connection, changes.get("notebook_id"), None)
    note = lock(connection, note_id)
    if note["trashed_at"] is not None:
        raise errors.ConflictError("The note is in the trash. Restore it first.")
    if expected_updated_at not in (None, note["updated_at"]):
        raise errors.ConflictError("The note has changed since you read it. Read it again before you change it.")
    columns = [name for name in ("title", "content", "notebook_id") if name in changes and changes[name] != note[name]]
    if columns:
        assignments = (sql.SQL("{} = {}").format(sql.Identifier(c), sql.Placeholder(c)) for c in columns)
        connection.execute(
            sql.SQL("update rag.notes set {} where id = %(id)s").format(sql.SQL(", ").join(assignments)),
            {"id": note_id, **changes},
        )
    return find(connection, note_id)


def set_trashed(connection: Connection, note_id: str, trashed: bool) -> Row:
    """Moves a note into the trash or out of it; repeating this changes nothing. Raises NotFoundError."""
    connection.execute(
        "update rag.notes set trashed_at = case when %(trashed)s then clock_timestamp() end"
        " where id = %(id)s and (trashed_at is not null) <> %(trashed)s",
        {"id": note_id, "trashed": trashed},
    )
    return find(connection, note_id)


def lock(connection: Connection, note_id: str) -> Row:
    """The whole row, locked until the end of the transaction; raises NotFoundError."""
    return _check_found(connection.execute("select * from rag.notes where id = %s for update", (note_id,)).fetchone())


def find_queued_job(connection: Connection, note_id: str) -> int | None:
    """The id of the job that a save in this transaction has queued, if it has."""
    row = connection.execute(
        "select id from rag.ingest_jobs where note_id = %s and status = 'queued'", (note_id,)
    ).fetchone()
    return None if row is None else int(row["id"])


def request_job(connection: Connection, note_id: str) -> int | None:
    """Queues a note and returns the job id, or None without text to index; see sql/52_request_note_job.sql."""
    row = connection.execute("select rag.request_note_job(%s) as id", (note_id,)).fetchone()
    assert row is not None
    return None if row["id"] is None else int(row["id"])


def read_pages(connection: Connection, note_id: str, first: int, last: int) -> tuple[int, list[Row]]:
    """The number of indexed parts, and the texts of parts `first` to `last`; raises NotFoundError."""
    row = connection.execute(
        "select generation, (select count(*) from rag.pages p where p.generation = n.generation) as page_count"
        " from rag.notes n where n.id = %s",
        (note_id,),
    ).fetchone()
    note = _check_found(row)
    return note["page_count"], documents.read_pages(connection, note, first, last)


def delete(connection: Connection, note_id: str, *, keep_attachments: bool) -> tuple[Row, int]:
    """Deletes a note and its attachments, or with `keep_attachments` moves these into its notebook.

    Returns the receipt (see sql/51_delete_sources.sql) and how many attachments were kept. Raises NotFoundError.
    """
    note = lock(connection, note_id)
    if keep_attachments:
        kept = connection.execute(
            "update rag.documents set note_id = null, notebook_id = coalesce(notebook_id, %s) where note_id = %s",
            (note["notebook_id"], note_id),
        ).rowcount
        return delete_sources(connection, [note["id"]], []), kept
    rows = connection.execute("select id from rag.documents where note_id = %s", (note_id,)).fetchall()
    return delete_sources(connection, [note["id"]], [row["id"] for row in rows]), 0


def delete_sources(connection: Connection, note_ids: Sequence[UUID], document_ids: Sequence[UUID]) -> Row:
    """Deletes notes and documents; returns the receipt of sql/51_delete_sources.sql.

    It has counts, and the `object_paths` that the caller removes from storage after the commit.
    """
    row = connection.execute(
        "select rag.delete_sources(%s::uuid[], %s::uuid[]) as receipt", (list(note_ids), list(document_ids))
    ).fetchone()
    assert row is not None
    return dict(row["receipt"])


def _check_found(row: Row | None) -> Row:
    if row is None:
        raise errors.NotFoundError("There is no such note.")
    return row
