"""Notebooks; row level security limits every function to the user's own rows."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from psycopg import sql

from functions.adapters.postgres import notes, paging
from functions.adapters.postgres.connection import Connection
from functions.core import errors, models

Row = dict[str, Any]

# The counts are of what the lists of notes and documents show: nothing in the trash, no older versions.
_FACTS: Final = """
    b.id, b.title, b.instructions, b.chat_model, b.created_at, b.updated_at, (
        select count(*) from rag.notes n where n.notebook_id = b.id and n.trashed_at is null
    ) as note_count, (
        select count(*) from rag.live_documents d
        where d.notebook_id = b.id or exists (select from rag.notes n where n.id = d.note_id and n.notebook_id = b.id)
    ) as document_count
"""


def insert(connection: Connection, user: models.User, title: str) -> Row:
    row = connection.execute(
        f"insert into rag.notebooks as b (owner_id, title) values (%s, %s) returning {_FACTS}", (user.id, title)
    ).fetchone()
    return _check_found(row)


def find(connection: Connection, notebook_id: str) -> Row:
    """Raises NotFoundError, also for another user's notebook."""
    return _check_found(
        connection.execute(f"select {_FACTS} from rag.notebooks b where b.id = %s", (notebook_id,)).fetchone()
    )


def list_page(
    connection: Connection, *, title: str | None, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """One page, the newest change first, and the cursor of the next."""
    updated_at, last_id = paging.read_time_cursor(cursor)
    rows = connection.execute(
        f"""
        select {_FACTS} from rag.notebooks b
        where (%(title)s::text is null or strpos(lower(b.title), lower(%(title)s)) > 0)
            and (%(updated_at)s::timestamptz is null
                or (b.updated_at, b.id) < (%(updated_at)s::timestamptz, %(last_id)s::uuid))
        order by b.updated_at desc, b.id desc
        limit %(limit)s + 1
        """,
        {"title": title, "updated_at": updated_at, "last_id": last_id, "limit": limit},
    ).fetchall()
    return paging.cut_page(rows, limit, "updated_at", "id")


def update(connection: Connection, notebook_id: str, changes: Row) -> Row:
    """Sets `title`, `instructions` and `chat_model`, if given; raises NotFoundError."""
    columns = [name for name in ("title", "instructions", "chat_model") if name in changes]
    if not columns:
        return find(connection, notebook_id)
    row = connection.execute(
        sql.SQL("update rag.notebooks b set {} where b.id = %(id)s returning " + _FACTS).format(
            sql.SQL(", ").join(sql.SQL("{} = {}").format(sql.Identifier(c), sql.Placeholder(c)) for c in columns)
        ),
        {"id": notebook_id, **changes},
    ).fetchone()
    return _check_found(row)


def move_contents_out(connection: Connection, notebook_id: str) -> Row:
    """Takes all notes and documents out of a notebook, trashed ones included; returns how many of each."""
    counts = {}
    for name in ("notes", "documents"):
        moved = connection.execute(f"update rag.{name} set notebook_id = null where notebook_id = %s", (notebook_id,))
        counts[name] = moved.rowcount
    return counts


def delete_contents(connection: Connection, notebook_id: str) -> Row:
    """Deletes a notebook's documents, notes and their attachments; returns the receipt of `notes.delete_sources`."""
    note_ids = _list_ids(connection, "select id from rag.notes where notebook_id = %s", notebook_id)
    document_ids = _list_ids(
        connection,
        "select d.id from rag.documents d left join rag.notes n on n.id = d.note_id"
        " where %s in (d.notebook_id, n.notebook_id)",
        notebook_id,
    )
    return notes.delete_sources(connection, note_ids, document_ids)


def delete(connection: Connection, notebook_id: str) -> None:
    connection.execute("delete from rag.notebooks where id = %s", (notebook_id,))


def lock(connection: Connection, notebook_id: str) -> None:
    """Locks the notebook until the end of the transaction, so nothing can be added to it; raises NotFoundError."""
    _check_found(connection.execute("select from rag.notebooks where id = %s for update", (notebook_id,)).fetchone())


def _list_ids(connection: Connection, query: str, notebook_id: str) -> list[UUID]:
    return [row["id"] for row in connection.execute(query.encode(), (notebook_id,)).fetchall()]


def _check_found(row: Row | None) -> Row:
    if row is None:
        raise errors.NotFoundError("There is no such notebook.")
    return row
