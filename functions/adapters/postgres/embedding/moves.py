"""Moves the library of all users from one embedding server to another."""

from __future__ import annotations

from dataclasses import dataclass

from functions.adapters.postgres import settings
from functions.adapters.postgres.connection import Connection, Database
from functions.adapters.postgres.embedding.administration import audit
from functions.core import models


@dataclass(frozen=True, slots=True)
class Move:
    """How far a library has moved to the default server: its documents and notes, counted for all users.

    `failed` of the `remaining` ones cannot be moved. Nothing moves while it is `paused`.
    """

    done: int
    remaining: int
    failed: int
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a server would have to embed again, of all users; `tokens` are those that the present models counted."""

    documents: int
    notes: int
    pages: int
    passages: int
    tokens: int


def adopt_embedding_server(database: Database, server: models.EmbeddingServer, user: models.User) -> str:
    """Makes a server the default; returns the id of its row."""
    with database.as_worker() as connection:
        row = connection.execute(
            "select rag.adopt_embedding_server(%s, %s)::text as id", (settings.write_server(server), user.id)
        ).fetchone()
    assert row is not None
    return str(row["id"])


def move_to_server(connection: Connection, server_id: str, user: models.User) -> None:
    """Makes a registered server the default, and begins to move the whole library to it."""
    connection.execute("select rag.move_to_embedding_server(%s, %s)", (server_id, user.id))


def continue_reindexing(database: Database, batch_size: int, pause_seconds: float) -> int:
    """Queues documents and notes of replaced servers, and retires servers that have none left; returns how many."""
    with database.as_worker() as connection:
        row = connection.execute(
            "select rag.continue_reindexing(%s, %s) as queued", (batch_size, pause_seconds)
        ).fetchone()
    assert row is not None
    return int(row["queued"])


def describe_reindexing(connection: Connection) -> Move | None:
    """How far the move to the default server has come; None when no document or note is left to move."""
    row = connection.execute("select rag.describe_reindexing() as move").fetchone()
    return None if row is None or row["move"] is None else Move(**row["move"])


def pause_reindexing(connection: Connection, user: models.User, *, paused: bool) -> None:
    """Pauses or resumes the move of the library; a document that a worker is moving still moves."""
    connection.execute(
        """
        update rag.embedding_servers s set paused_at = case when %s then clock_timestamp() end
        where s.replaced_at is not null and (
            exists (select from rag.documents d where d.embedding_server_id = s.id and d.generation is not null)
            or exists (select from rag.notes n where n.embedding_server_id = s.id and n.generation is not null))
        """,
        (paused,),
    )
    audit(connection, None, {"reindexing": "paused" if paused else "resumed"}, user)


def cancel_reindexing(connection: Connection, user: models.User) -> None:
    """Ends the move of the library; every document and note stays where it is, and is found by the vectors it has."""
    connection.execute("select rag.cancel_reindexing()")
    audit(connection, None, {"reindexing": "cancelled"}, user)


def retry_rejected_sources(connection: Connection) -> int:
    """Queues what embedding servers refused or did not answer for, of all users; returns how many."""
    row = connection.execute("select rag.retry_rejected_sources() as queued").fetchone()
    assert row is not None
    return int(row["queued"])


def count_rejected_sources(connection: Connection) -> int:
    """How many documents and notes `retry_rejected_sources` would queue."""
    row = connection.execute(
        "select (select count(*) from rag.documents where status = 'failed' and error_code like %(code)s)"
        " + (select count(*) from rag.notes where status = 'failed' and error_code like %(code)s) as n",
        {"code": r"model\_%"},
    ).fetchone()
    assert row is not None
    return int(row["n"])


def estimate_reindexing(connection: Connection, server_id: str) -> Estimate:
    """What moving the library to a server would take."""
    row = connection.execute(
        """
        with moving as (
            select d.generation, d.page_count, 1 as document from rag.documents d
            where d.generation is not null and d.superseded_by is null and d.duplicate_of is null
                and d.embedding_server_id is distinct from %(id)s
            union all
            select n.generation, 0, 0 from rag.notes n
            where n.generation is not null and n.embedding_server_id is distinct from %(id)s
        )
        select coalesce(sum(m.document), 0)::int as documents, (count(*) - coalesce(sum(m.document), 0))::int as notes,
            coalesce(sum(m.page_count), 0)::int as pages, coalesce(sum(c.passages), 0)::bigint as passages,
            coalesce(sum(c.tokens), 0)::bigint as tokens
        from moving m cross join lateral (
            select count(*) as passages, sum(c.token_count) as tokens
            from rag.chunks c where c.generation = m.generation
        ) c
        """,
        {"id": server_id},
    ).fetchone()
    assert row is not None
    return Estimate(**row)
