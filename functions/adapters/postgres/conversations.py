"""Conversations and their messages, as one user sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import psycopg

from functions.adapters.postgres import cursors, documents
from functions.adapters.postgres.connection import Connection
from functions.adapters.postgres.documents import cut_page
from functions.core import errors, models

Row = dict[str, Any]

MAX_ATTACHED: Final = 100

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
    """Oldest question first, each with its answer."""
    find(connection, conversation_id)
    turn, position = cursors.decode(cursor, 2) if cursor else (None, None)
    try:
        rows = connection.execute(
            """
            select m.* from (
                select *, coalesce(question_position, position) as turn from rag.messages where conversation_id = %(id)s
            ) m
            where %(turn)s::bigint is null or (m.turn, m.position) > (%(turn)s::bigint, %(position)s::bigint)
            order by m.turn, m.position
            limit %(limit)s + 1
            """,
            {"id": conversation_id, "turn": turn, "position": position, "limit": limit},
        ).fetchall()
    except psycopg.DataError as exc:
        raise errors.InvalidInputError(_BAD_CURSOR) from exc
    return cut_page(rows, limit, "turn", "position")


def list_turns(connection: Connection, conversation_id: str, turns: int) -> list[models.Turn]:
    """The last `turns` questions with their answers, oldest first; unanswered questions are left out."""
    rows = connection.execute(
        """
        with numbered as (
            select role, content, status, row_number() over following as place, lead(status) over following as answer,
                lead(role) over following as next_role, lead(search_query) over following as searched
            from rag.messages where conversation_id = %s
            window following as (order by coalesce(question_position, position), position)
        ), latest as (
            select * from numbered
            where (role = 'assistant' and status in ('complete', 'interrupted'))
                or (role = 'user' and next_role = 'assistant' and answer in ('complete', 'interrupted'))
            order by place desc limit %s
        )
        select role, content, case role when 'user' then searched end as search_query
        from latest order by place
        """,
        (conversation_id, turns * 2),
    ).fetchall()
    return [models.Turn(row["role"], row["content"], row["search_query"]) for row in rows]


def attached_documents(connection: Connection, conversation_id: str) -> tuple[str, ...]:
    rows = connection.execute(
        "select document_id from rag.conversation_documents where conversation_id = %s"
        " order by created_at, document_id",
        (conversation_id,),
    ).fetchall()
    return tuple(str(row["document_id"]) for row in rows)


def list_documents(connection: Connection, conversation_id: str) -> list[Row]:
    """The documents attached, first the first; a duplicate as the document that it is one of. Raises NotFoundError."""
    find(connection, conversation_id)
    return connection.execute(
        """
        select d.*
        from (
            select coalesce(o.duplicate_of, o.id) as id, min(a.created_at) as attached_at
            from rag.conversation_documents a join rag.documents o on o.id = a.document_id
            where a.conversation_id = %s
            group by 1
        ) attached join rag.documents d using (id)
        order by attached.attached_at, d.id
        """,
        (conversation_id,),
    ).fetchall()


def attach_documents(
    connection: Connection, user: models.User, conversation_id: str, document_ids: Sequence[str], *, replace: bool
) -> None:
    """Adds documents to those attached, or with `replace` puts them in their place.

    A duplicate stands for the document that it is one of. Raises NotFoundError for another user's conversation or
    document as for none, and InvalidInputError for more than MAX_ATTACHED in all.
    """
    lock = connection.execute("select from rag.conversations where id = %s for update", (conversation_id,)).fetchone()
    if lock is None:
        raise errors.NotFoundError("There is no such conversation.")
    found = documents.find_all(connection, document_ids)
    if replace:
        connection.execute(
            "delete from rag.conversation_documents where conversation_id = %s and not document_id = any (%s::uuid[])",
            (conversation_id, found),
        )
    connection.execute(
        "insert into rag.conversation_documents (conversation_id, document_id, owner_id)"
        " select %s, unnest(%s::uuid[]), %s on conflict do nothing",
        (conversation_id, found, user.id),
    )
    if len(attached_documents(connection, conversation_id)) > MAX_ATTACHED:
        raise errors.InvalidInputError(f"At most {MAX_ATTACHED} documents can be attached to a conversation.")


def detach_document(connection: Connection, conversation_id: str, document_id: str) -> None:
    """Leaves everything as it is when the document is not attached. Raises NotFoundError for the conversation."""
    find(connection, conversation_id)
    connection.execute(
        """
        delete from rag.conversation_documents a
        using rag.documents o, rag.documents d
        where a.conversation_id = %s and o.id = a.document_id and d.id = %s
            and coalesce(o.duplicate_of, o.id) = coalesce(d.duplicate_of, d.id)
        """,
        (conversation_id, document_id),
    )


def read_all_messages(connection: Connection, conversation_id: str) -> list[Row]:
    """The whole conversation, oldest question first, each with its answer."""
    return connection.execute(
        "select * from rag.messages where conversation_id = %s"
        " order by coalesce(question_position, position), position",
        (conversation_id,),
    ).fetchall()


def find_answer(connection: Connection, conversation_id: str, message_id: str) -> Row:
    """An answer, with the text of its `question`; raises NotFoundError, also for a question."""
    row = connection.execute(
        """
        select m.*, (
            select q.content from rag.messages q
            where q.conversation_id = m.conversation_id and q.role = 'user'
                and q.position <= coalesce(m.question_position, m.position)
            order by q.position desc limit 1
        ) as question
        from rag.messages m
        where m.conversation_id = %s and m.id = %s and m.role = 'assistant'
        """,
        (conversation_id, message_id),
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such answer.")
    return row


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
    search_query: str | None = None,
    question_position: int | None = None,
) -> Row:
    """Saves a message and moves its conversation to the top.

    Raises NotFoundError when the conversation is gone, and ConflictError for a question asked of what is in the trash.
    """
    if role == "user" and scope is not None:
        _check_not_trashed(connection, scope)
    row = connection.execute(
        """
        with moved as (
            update rag.conversations set updated_at = clock_timestamp() where id = %(conversation_id)s returning id
        )
        insert into rag.messages
            (conversation_id, owner_id, role, content, status, mode, sections, sources, scope, usage, search_query,
            question_position)
        select id, %(owner_id)s, %(role)s, %(content)s, %(status)s, %(mode)s, %(sections)s, %(sources)s, %(scope)s,
            %(usage)s, %(search_query)s, %(question_position)s
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
            "search_query": search_query,
            "question_position": question_position,
        },
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such conversation.")
    return row


def _check_not_trashed(connection: Connection, scope: Row) -> None:
    """Raises ConflictError for a note in the trash, and for documents that are all attached to such notes."""
    note_id, document_ids = scope.get("note_id"), list(scope.get("document_ids") or ())
    if not (note_id or document_ids):
        return
    row = connection.execute(
        """
        select exists (select from rag.notes n where n.id = %(note)s::uuid and n.trashed_at is not null) as note,
            exists (select from rag.documents d where d.id = any (%(documents)s::uuid[]))
                and not exists (select from rag.untrashed_documents u where u.id = any (%(documents)s::uuid[]))
                as documents
        """,
        {"note": note_id, "documents": document_ids},
    ).fetchone()
    assert row is not None
    if row["note"]:
        raise errors.ConflictError("The note is in the trash: restore it before you ask about it.")
    if row["documents"]:
        raise errors.ConflictError("What is asked about is attached to a note in the trash: restore the note first.")
