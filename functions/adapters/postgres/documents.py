"""Documents and their pages, as one user sees them."""

from __future__ import annotations

from typing import Any

import psycopg

from functions.adapters.postgres import cursors
from functions.adapters.postgres.connection import Connection
from functions.core import errors

Row = dict[str, Any]


def insert(connection: Connection, values: Row) -> Row:
    """`values` has every column that the statement names. Raises NotFoundError for a notebook or note of others."""
    row = connection.execute(
        """
        insert into rag.documents
            (id, owner_id, notebook_id, note_id, file_name, file_type, mime_type, size_bytes, sha256, object_path)
        select %(id)s, %(owner_id)s, %(notebook_id)s, %(note_id)s, %(file_name)s, %(file_type)s, %(mime_type)s,
            %(size_bytes)s, %(sha256)s, %(object_path)s
        -- A foreign key does not look at row level security: somebody else's notebook must be "not found" here.
        where (%(notebook_id)s::uuid is null or exists (select from rag.notebooks b where b.id = %(notebook_id)s::uuid))
            and (%(note_id)s::uuid is null or exists (select from rag.notes n where n.id = %(note_id)s::uuid))
        returning *
        """,
        values,
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such notebook or note.")
    return row


def find(connection: Connection, document_id: str) -> Row:
    """Raises NotFoundError for another user's document as for none."""
    row = connection.execute("select * from rag.documents where id = %s", (document_id,)).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such document.")
    return row


def check_place(connection: Connection, notebook_id: str | None, note_id: str | None) -> None:
    """Raises NotFoundError for another user's notebook or note as for none; None is not looked at."""
    row = connection.execute(
        "select (%(notebook)s::uuid is null or exists (select from rag.notebooks b where b.id = %(notebook)s::uuid))"
        " and (%(note)s::uuid is null or exists (select from rag.notes n where n.id = %(note)s::uuid)) as known",
        {"notebook": notebook_id, "note": note_id},
    ).fetchone()
    if row is None or not row["known"]:
        raise errors.NotFoundError("There is no such notebook or note.")


def find_duplicate(connection: Connection, sha256: str, size_bytes: int) -> Row | None:
    """The user's document with the same bytes whose upload has arrived and did not fail."""
    return connection.execute(
        "select * from rag.documents where sha256 = %s and size_bytes = %s and superseded_by is null"
        " and status not in ('awaiting_upload', 'failed') order by created_at limit 1",
        (sha256, size_bytes),
    ).fetchone()


def list_page(
    connection: Connection,
    *,
    status: str | None,
    notebook_id: str | None,
    note_id: str | None,
    title: str | None,
    limit: int,
    cursor: str | None,
) -> tuple[list[Row], str | None]:
    """Newest first, with the cursor of the next page."""
    created_at, last_id = cursors.decode(cursor, 2) if cursor else (None, None)
    try:
        rows = connection.execute(
            """
            select * from rag.documents d
            where (%(status)s::text is null or d.status = %(status)s)
                and (%(notebook_id)s::uuid is null or d.notebook_id = %(notebook_id)s::uuid)
                and (%(note_id)s::uuid is null or d.note_id = %(note_id)s::uuid)
                and (%(title)s::text is null
                    or strpos(lower(coalesce(d.title, '') || ' ' || d.file_name), lower(%(title)s)) > 0)
                and (%(created_at)s::timestamptz is null
                    or (d.created_at, d.id) < (%(created_at)s::timestamptz, %(last_id)s::uuid))
            order by d.created_at desc, d.id desc
            limit %(limit)s + 1
            """,
            {
                "status": status,
                "notebook_id": notebook_id,
                "note_id": note_id,
                "title": title,
                "limit": limit,
                "created_at": created_at,
                "last_id": last_id,
            },
        ).fetchall()
    except psycopg.DataError as exc:
        raise errors.InvalidInputError(
            "The cursor is not valid: use next_cursor of the page before, unchanged."
        ) from exc
    return cut_page(rows, limit, "created_at", "id")


def cut_page(rows: list[Row], limit: int, *keys: str) -> tuple[list[Row], str | None]:
    """The first `limit` of `limit` + 1 rows, and the cursor when there are more."""
    page = rows[:limit]
    return page, cursors.encode(*(page[-1][key] for key in keys)) if len(rows) > limit else None


def list_pending(connection: Connection, limit: int = 5) -> list[str]:
    """Names of documents that are on their way but cannot be searched yet."""
    rows = connection.execute(
        "select file_name from rag.documents where status in ('uploaded', 'processing')"
        " order by created_at desc limit %s",
        (limit,),
    ).fetchall()
    return [row["file_name"] for row in rows]


def read_pages(connection: Connection, document: Row, first: int, last: int) -> list[Row]:
    """Page texts, as stored."""
    return connection.execute(
        "select page_number, text, warnings from rag.pages where generation = %s and page_number between %s and %s"
        " order by page_number",
        (document["generation"], first, last),
    ).fetchall()


def request_ingest_job(connection: Connection, document_id: str) -> int | None:
    """See sql/46_request_ingest_job.sql; None when there is no such document or no stored file."""
    row = connection.execute("select rag.request_ingest_job(%s) as id", (document_id,)).fetchone()
    assert row is not None
    job_id: int | None = row["id"]
    return job_id


def delete_document(connection: Connection, document_id: str) -> Row:
    """Raises NotFoundError; see sql/47_delete_document.sql."""
    row = connection.execute("select rag.delete_document(%s) as receipt", (document_id,)).fetchone()
    assert row is not None
    if row["receipt"] is None:
        raise errors.NotFoundError("There is no such document.")
    return dict(row["receipt"])
