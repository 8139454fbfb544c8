"""The messages of a conversation: questions, each with its answer."""

from __future__ import annotations

import json
from typing import Any

from functions.adapters.postgres import conversations, paging
from functions.adapters.postgres.connection import Connection
from functions.core import errors, models

Row = dict[str, Any]


def list_messages(
    connection: Connection, conversation_id: str, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """One page of messages, the oldest question first, each followed by its answer, and the cursor of the next."""
    conversations.find(connection, conversation_id)
    turn, position = paging.read_message_cursor(cursor)
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
    return paging.cut_page(rows, limit, "turn", "position")


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


def read_all_messages(connection: Connection, conversation_id: str) -> list[Row]:
    """All messages of a conversation, the oldest question first, each followed by its answer."""
    return connection.execute(
        "select * from rag.messages where conversation_id = %s"
        " order by coalesce(question_position, position), position",
        (conversation_id,),
    ).fetchall()


def find_answer(connection: Connection, conversation_id: str, message_id: str) -> Row:
    """An answer with the text of its question as `question`; raises NotFoundError, also for the id of a question."""
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

    Raises NotFoundError when the conversation was deleted, and ConflictError for a question about trashed content.
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
    """Raises ConflictError for a note in the trash, and for documents that are all attached to trashed notes."""
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
        raise errors.ConflictError("The note is in the trash. Restore it before you ask about it.")
    if row["documents"]:
        raise errors.ConflictError(
            "The documents are attached to a note in the trash. Restore the note before you ask about them."
        )
