"""Conversations and their messages, as one user sees them."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from functions.adapters.postgres import cursors
from functions.adapters.postgres.connection import Connection
from functions.adapters.postgres.documents import cut_page
from functions.core import errors, models

Row = dict[str, Any]

_BAD_CURSOR = "The cursor is not valid: use next_cursor of the page before, unchanged."


def create(connection: Connection, user: models.User, title: str, scope: models.Scope) -> Row:
    row = connection.execute(
        "insert into rag.conversations (owner_id, title, notebook_id, note_id) values (%s, %s, %s, %s) returning *",
        (user.id, title, scope.notebook_id, scope.note_id),
    ).fetchone()
    assert row is not None
    return row


def find(connection: Connection, conversation_id: str) -> Row:
    """Raises NotFoundError for another user's conversation as for none."""
    row = connection.execute("select * from rag.conversations where id = %s", (conversation_id,)).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such conversation.")
    return row


def list_page(connection: Connection, limit: int, cursor: str | None) -> tuple[list[Row], str | None]:
    """Last used first."""
    updated_at, last_id = cursors.decode(cursor, 2) if cursor else (None, None)
    try:
        rows = connection.execute(
            """
            select c.*, (select count(*) from rag.messages m where m.conversation_id = c.id) as message_count
            from rag.conversations c
            where %(updated_at)s::timestamptz is null
                or (c.updated_at, c.id) < (%(updated_at)s::timestamptz, %(last_id)s::uuid)
            order by c.updated_at desc, c.id desc
            limit %(limit)s + 1
            """,
            {"updated_at": updated_at, "last_id": last_id, "limit": limit},
        ).fetchall()
    except psycopg.DataError as exc:
        raise errors.InvalidInputError(_BAD_CURSOR) from exc
    return cut_page(rows, limit, "updated_at", "id")


def rename(connection: Connection, conversation_id: str, title: str) -> Row:
    row = connection.execute(
        "update rag.conversations c set title = %s where id = %s"
        " returning *, (select count(*) from rag.messages m where m.conversation_id = c.id) as message_count",
        (title, conversation_id),
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such conversation.")
    return row


def delete(connection: Connection, conversation_id: str) -> None:
    if connection.execute("delete from rag.conversations where id = %s", (conversation_id,)).rowcount == 0:
        raise errors.NotFoundError("There is no such conversation.")


def list_messages(
    connection: Connection, conversation_id: str, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """Oldest first."""
    find(connection, conversation_id)
    (after,) = cursors.decode(cursor, 1) if cursor else (None,)
    try:
        rows = connection.execute(
            "select * from rag.messages where conversation_id = %(id)s"
            " and (%(after)s::bigint is null or position > %(after)s::bigint) order by position limit %(limit)s + 1",
            {"id": conversation_id, "after": after, "limit": limit},
        ).fetchall()
    except psycopg.DataError as exc:
        raise errors.InvalidInputError(_BAD_CURSOR) from exc
    return cut_page(rows, limit, "position")


def list_turns(connection: Connection, conversation_id: str, turns: int) -> list[models.Turn]:
    """The last `turns` questions with their answers, oldest first; unanswered questions are left out."""
    rows = connection.execute(
        """
        with numbered as (
            select role, content, position, status, lead(status) over (order by position) as answer,
                lead(role) over (order by position) as next_role
            from rag.messages where conversation_id = %s
        ), latest as (
            select * from numbered
            where (role = 'assistant' and status in ('complete', 'interrupted'))
                or (role = 'user' and next_role = 'assistant' and answer in ('complete', 'interrupted'))
            order by position desc limit %s
        )
        select role, content from latest order by position
        """,
        (conversation_id, turns * 2),
    ).fetchall()
    return [models.Turn(row["role"], row["content"]) for row in rows]


def attached_documents(connection: Connection, conversation_id: str) -> tuple[str, ...]:
    rows = connection.execute(
        "select document_id from rag.conversation_documents where conversation_id = %s"
        " order by created_at, document_id",
        (conversation_id,),
    ).fetchall()
    return tuple(str(row["document_id"]) for row in rows)


def add_message(
    connection: Connection,
    user: models.User,
    conversation_id: str,
    role: str,
    content: str,
    *,
    status: models.MessageStatus = "complete",
    mode: str | None = None,
    sections: list[Row] | None = None,
    sources: list[Row] | None = None,
    scope: Row | None = None,
    usage: Row | None = None,
) -> Row:
    """Saves a message and moves its conversation to the top. Raises NotFoundError when the conversation is gone."""
    row = connection.execute(
        """
        with moved as (
            update rag.conversations set updated_at = clock_timestamp() where id = %(conversation_id)s returning id
        )
        insert into rag.messages
            (conversation_id, owner_id, role, content, status, mode, sections, sources, scope, usage)
        select id, %(owner_id)s, %(role)s, %(content)s, %(status)s, %(mode)s, %(sections)s, %(sources)s, %(scope)s,
            %(usage)s
        from moved
        returning *
        """,
        {
            "conversation_id": conversation_id,
            "owner_id": user.id,
            "role": role,
            "content": content,
            "status": status,
            "mode": mode,
            "sections": json.dumps(sections or []),
            "sources": json.dumps(sources or []),
            "scope": None if scope is None else json.dumps(scope),
            "usage": None if usage is None else json.dumps(usage),
        },
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such conversation.")
    return row
