"""The stored settings and the registered embedding servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from functions.adapters.postgres.connection import Connection, Database
from functions.adapters.postgres.paging import cut_page, read_change_cursor
from functions.core import errors, models


def read(connection: Connection) -> dict[str, Any]:
    """The stored values by key; a setting without one has its default."""
    return {row["key"]: row["value"] for row in connection.execute("select key, value from rag.settings").fetchall()}


def write(connection: Connection, changes: Mapping[str, Any], user: models.User) -> None:
    """Stores validated changes in the caller's transaction; a trigger records each in the audit table."""
    for key, value in sorted(changes.items()):
        connection.execute(
            "insert into rag.settings (key, value, updated_by) values (%s, %s, %s) on conflict (key) do update"
            " set value = excluded.value, updated_by = excluded.updated_by, updated_at = clock_timestamp()"
            " where settings.value is distinct from excluded.value",
            (key, json.dumps(value), user.id),
        )


def list_changes(connection: Connection, limit: int, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """A page of the audit, newest change first, and the cursor of the next; row level security asks for administrators.

    Raises InvalidInputError for another cursor than one of ours.
    """
    before, before_id = read_change_cursor(cursor)
    rows = connection.execute(
        "select id, key, old_value, new_value, changed_by, changed_at from rag.settings_audit"
        " where %(before)s::timestamptz is null or (changed_at, id) < (%(before)s, %(before_id)s)"
        " order by changed_at desc, id desc limit %(limit)s",
        {"before": before, "before_id": before_id, "limit": limit + 1},
    ).fetchall()
    return cut_page([dict(row) for row in rows], limit, "changed_at", "id")


def list_servers(connection: Connection, pause_seconds: float = 0.0) -> list[models.EmbeddingServer]:
    """The embedding servers in use, the one to index with first: the default server.

    A server that was replaced less than `pause_seconds` ago still comes before it. One that nothing was indexed with
    and that is not the default is not in use.
    """
    rows = connection.execute(
        """
        select * from rag.embedding_servers s
        where s.is_default or s.active and (
            s.replaced_at is not null
            or exists (select from rag.documents d where d.embedding_server_id = s.id and d.generation is not null)
            or exists (select from rag.notes n where n.embedding_server_id = s.id and n.generation is not null))
        order by coalesce(s.replaced_at > clock_timestamp() - make_interval(secs => %s), false) desc, s.is_default desc,
            s.created_at, s.id
        """,
        (pause_seconds,),
    ).fetchall()
    return [_read_server(row) for row in rows]


def ensure_default_server(database: Database, server: models.EmbeddingServer) -> models.EmbeddingServer:
    """The default embedding server, after making `server` the default if there is none.

    A database that was indexed with another model keeps that one, because only an administrator may change the default.
    """
    with database.as_worker() as connection:
        connection.execute(
            """
            insert into rag.embedding_servers (name, kind, base_url, model, dimensions, max_input_tokens, languages,
                batch_size, api_key_env, token_level, query_prefix, passage_prefix, similarity_floor,
                similarity_ceiling, similarity_scales, calibrated_passages, is_default)
            select %(name)s, %(kind)s, %(base_url)s, %(model)s, %(dimensions)s, %(max_input_tokens)s, %(languages)s,
                %(batch_size)s, %(api_key_env)s, %(token_level)s, %(query_prefix)s, %(passage_prefix)s,
                %(similarity_floor)s, %(similarity_ceiling)s, %(similarity_scales)s, %(calibrated_passages)s, true
            where not exists (select from rag.embedding_servers where is_default)
            on conflict do nothing
            """,
            {
                "name": server.name,
                "kind": server.kind,
                "base_url": server.base_url,
                "model": server.model,
                "dimensions": server.dimensions,
                "max_input_tokens": server.max_input_tokens,
                "languages": list(server.languages),
                "batch_size": server.batch_size,
                "token_level": server.token_level,
                "api_key_env": server.api_key_env,
                "query_prefix": server.query_prefix,
                "passage_prefix": server.passage_prefix,
                "similarity_floor": server.similarity_floor,
                "similarity_ceiling": server.similarity_ceiling,
                "similarity_scales": json.dumps(server.similarity_scales),
                "calibrated_passages": server.calibrated_passages,
            },
        )
        return list_servers(connection)[0]


def follow_environment(database: Database, server: models.EmbeddingServer) -> bool:
    """Makes a server the default if nothing was indexed with the present one and no administrator set that up."""
    with database.as_worker() as connection:
        row = connection.execute("select rag.follow_environment(%s) as changed", (write_server(server),)).fetchone()
    assert row is not None
    return bool(row["changed"])


@dataclass(frozen=True, slots=True)
class StoredServer:
    """A registered server, and how many documents and notes of all users have its vectors.

    The library `is_leaving` a server that another one replaces; an administrator may have paused that.
    """

    server: models.EmbeddingServer
    is_default: bool
    active: bool
    is_leaving: bool
    is_paused: bool
    documents: int
    notes: int


def describe_servers(connection: Connection) -> list[StoredServer]:
    """Every registered server, the default first."""
    rows = connection.execute(
        """
        select s.*,
            (
                select count(*) from rag.documents d
                where d.embedding_server_id = s.id and d.generation is not null and d.superseded_by is null
                    and d.duplicate_of is null
            ) as documents,
            (
                select count(*) from rag.notes n where n.embedding_server_id = s.id and n.generation is not null
            ) as notes
        from rag.embedding_servers s order by s.is_default desc, s.active desc, s.created_at, s.id
        """
    ).fetchall()
    return [
        StoredServer(
            _read_server(row),
            row["is_default"],
            row["active"],
            row["replaced_at"] is not None,
            row["paused_at"] is not None,
            row["documents"],
            row["notes"],
        )
        for row in rows
    ]


def find_server(connection: Connection, server_id: str) -> StoredServer:
    """Raises NotFoundError."""
    for row in describe_servers(connection):
        if row.server.id == server_id:
            return row
    raise errors.NotFoundError("There is no such embedding server.")


def save_guard_threshold(database: Database, server: models.EmbeddingServer, threshold: float) -> bool:
    """Stores the measured guard threshold of a model; False if no embedding server of this database has that model."""
    with database.as_worker() as connection:
        saved = connection.execute(
            "update rag.embedding_servers set guard_threshold = %s"
            " where kind = %s and model = %s and base_url is not distinct from %s",
            (threshold, server.kind, server.model, server.base_url),
        )
        return saved.rowcount > 0


def write_server(server: models.EmbeddingServer) -> str:
    """The columns of a server as JSON, without its id."""
    return json.dumps({name: value for name, value in asdict(server).items() if name != "id"})


def _read_server(row: dict[str, Any]) -> models.EmbeddingServer:
    return models.EmbeddingServer(
        id=str(row["id"]),
        name=row["name"],
        kind=row["kind"],
        model=row["model"],
        dimensions=row["dimensions"],
        max_input_tokens=row["max_input_tokens"],
        languages=tuple(row["languages"]),
        base_url=row["base_url"],
        api_key_env=row["api_key_env"],
        batch_size=row["batch_size"],
        token_level=row["token_level"],
        guard_threshold=row["guard_threshold"],
        query_prefix=row["query_prefix"],
        passage_prefix=row["passage_prefix"],
        similarity_floor=row["similarity_floor"],
        similarity_ceiling=row["similarity_ceiling"],
        similarity_scales={pair: models.SimilarityScale(*scale) for pair, scale in row["similarity_scales"].items()},
        calibrated_passages=row["calibrated_passages"],
        managed=row["managed"],
        price_per_million_tokens=row["price_per_million_tokens"],
    )
