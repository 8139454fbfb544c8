"""Conversations and their attached documents; row level security limits every function to the user's own rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from functions.adapters.postgres import documents, paging
from functions.adapters.postgres.connection import Connection, Database
from functions.core import errors, models

Row = dict[str, Any]

MAX_ATTACHED: Final = 100


def find(connection: Connection, conversation_id: str) -> Row:
    """Raises NotFoundError, also for another user's conversation."""
    row = connection.execute("select * from rag.conversations where id = %s", (conversation_id,)).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such conversation.")
    return row


def list_page(
    connection: Connection, limit: int, cursor: str | None, search_text: str = ""
) -> tuple[list[Row], str | None]:
    """One page of conversations, the last used first, and the cursor of the next page.

    With `search_text`, those whose title or messages have each of its words, in any case and with or without accents;
    `excerpt` is then what stands around the first word in a message, if it is in one.
    """
    updated_at, last_id = paging.read_time_cursor(cursor)
    rows = connection.execute(
        """
        with wanted as materialized (select string_to_array(lower(rag.fold(%(search_text)s)), ' ', '') as words)
        select c.*, (select count(*) from rag.messages m where m.conversation_id = c.id) as message_count, found.excerpt
        from rag.conversations c cross join wanted
        left join lateral (
            select substr(m.content, greatest(1, folded.at - 60), 160) as excerpt
            from rag.messages m, lateral (select strpos(lower(rag.fold(m.content)), wanted.words[1]) as at) folded
            where wanted.words[1] is not null and m.conversation_id = c.id and folded.at > 0
            order by m.position limit 1
        ) found on true
        where (%(updated_at)s::timestamptz is null
                or (c.updated_at, c.id) < (%(updated_at)s::timestamptz, %(last_id)s::uuid))
            and not exists (
                select from unnest(wanted.words) as word
                where word is not null and strpos(lower(rag.fold(c.title)), word) = 0 and not exists (
                    select from rag.messages m
                    where m.conversation_id = c.id and strpos(lower(rag.fold(m.content)), word) > 0))
        order by c.updated_at desc, c.id desc
        limit %(limit)s + 1
        """,
        {"updated_at": updated_at, "last_id": last_id, "limit": limit, "search_text": " ".join(search_text.split())},
    ).fetchall()
    return paging.cut_page(rows, limit, "updated_at", "id")


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


def attached_documents(connection: Connection, conversation_id: str) -> tuple[str, ...]:
    rows = connection.execute(
        "select document_id from rag.conversation_documents where conversation_id = %s"
        " order by created_at, document_id",
        (conversation_id,),
    ).fetchall()
    return tuple(str(row["document_id"]) for row in rows)


def list_documents(connection: Connection, conversation_id: str) -> list[Row]:
    """The attached documents in the order of attachment, duplicates as their original; raises NotFoundError."""
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
    """Adds documents to the attached ones, or with `replace` replaces these.

    A duplicate is attached as its original. Raises NotFoundError, also for another user's conversation or document, and
    InvalidInputError if more than MAX_ATTACHED documents would be attached.
    """
    lock = connection.execute("select from rag.conversations where id = %s for update", (conversation_id,)).fetchone()
    if lock is None:
        raise errors.NotFoundError("There is no such conversation.")
    original_ids = documents.find_all(connection, document_ids)
    if replace:
        connection.execute(
            "delete from rag.conversation_documents where conversation_id = %s and not document_id = any (%s::uuid[])",
            (conversation_id, original_ids),
        )
    connection.execute(
        "insert into rag.conversation_documents (conversation_id, document_id, owner_id)"
        " select %s, unnest(%s::uuid[]), %s on conflict do nothing",
        (conversation_id, original_ids, user.id),
    )
    if len(attached_documents(connection, conversation_id)) > MAX_ATTACHED:
        raise errors.InvalidInputError(f"At most {MAX_ATTACHED} documents can be attached to a conversation.")


def detach_document(connection: Connection, conversation_id: str, document_id: str) -> None:
    """Detaches a document, if it is attached; raises NotFoundError when there is no such conversation."""
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


def purge_conversations(database: Database, retention_days: int) -> int:
    """Deletes every conversation older than the retention, one batch per transaction; returns how many."""
    deleted = 0
    while True:
        with database.as_worker() as connection:
            row = connection.execute("select rag.purge_conversations(%s) as n", (retention_days,)).fetchone()
        if row is None or row["n"] == 0:
            return deleted
        deleted += row["n"]
