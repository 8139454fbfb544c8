"""Adds, changes, switches and removes embedding servers; every change is in the audit of the settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from psycopg import sql

from functions.adapters.postgres import settings
from functions.adapters.postgres.connection import Connection
from functions.core import errors, models

# What an administrator may write of a server, as columns.
_WRITABLE = (
    "name",
    "kind",
    "model",
    "base_url",
    "dimensions",
    "max_input_tokens",
    "languages",
    "batch_size",
    "api_key_env",
    "token_level",
    "query_prefix",
    "passage_prefix",
    "price_per_million_tokens",
)


def hold_server(
    connection: Connection, server_id: str, tried: settings.StoredServer | None = None
) -> settings.StoredServer:
    """A server that no other administrator changes before this transaction ends.

    Raises NotFoundError, and ConflictError where somebody has changed it since it was `tried`.
    """
    _take_turns(connection)
    row = settings.find_server(connection, server_id)
    if tried is not None and (_describe(row.server), row.is_default, row.active) != (
        _describe(tried.server),
        tried.is_default,
        tried.active,
    ):
        raise errors.ConflictError(
            f"Somebody else has changed {row.server.name} at the same moment. Look at it, then try again."
        )
    return row


def _take_turns(connection: Connection) -> None:
    """Lets one administrator at a time change embedding servers."""
    connection.execute("select pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0))")


def save_server(connection: Connection, server: models.EmbeddingServer, user: models.User) -> str:
    """Adds a server, or changes the one with its id, and records that in the audit; returns the id.

    The environment no longer describes it. Raises ConflictError when another server has its name.
    """
    _take_turns(connection)
    same = connection.execute(
        "select from rag.embedding_servers where name = %s and id::text <> %s", (server.name, server.id)
    ).fetchone()
    if same is not None:
        raise errors.ConflictError(f"There is already a server named {server.name}. Choose another name.")
    before = settings.find_server(connection, server.id).server if server.id else None
    values = {name: getattr(server, name) for name in _WRITABLE} | {"languages": list(server.languages)}
    names = sql.SQL(", ").join(map(sql.Identifier, values))
    places = sql.SQL(", ").join(map(sql.Placeholder, values))
    if before is None:
        statement = "insert into rag.embedding_servers ({}, managed) values ({}, true) returning id::text"
    else:
        statement = "update rag.embedding_servers set ({}, managed) = ({}, true) where id = %(id)s returning id::text"
    row = connection.execute(sql.SQL(statement).format(names, places), values | {"id": server.id or None}).fetchone()
    assert row is not None
    audit(connection, _describe(before), _describe(server), user)
    return str(row["id"])


def set_aside(connection: Connection, row: settings.StoredServer) -> None:
    """Gives the name of a server away, and switches it off unless it holds documents; a late worker wakes it."""
    connection.execute(
        "update rag.embedding_servers"
        " set name = left(name, 150) || ' (until ' || clock_timestamp()::timestamp(3) || ')', active = %s,"
        " replaced_at = clock_timestamp() where id = %s",
        (row.documents + row.notes > 0, row.server.id),
    )


def make_default(connection: Connection, server_id: str, user: models.User) -> None:
    """New documents are indexed with this server from now on; those of other servers stay with them."""
    _take_turns(connection)
    before = settings.describe_servers(connection)[0].server
    connection.execute("update rag.embedding_servers set is_default = false where is_default")
    connection.execute(
        "update rag.embedding_servers set is_default = true, active = true, managed = true, replaced_at = null,"
        " paused_at = null where id = %s",
        (server_id,),
    )
    after = settings.describe_servers(connection)[0].server
    audit(connection, {"default": before.name}, {"default": after.name}, user)


def switch_on(connection: Connection, row: settings.StoredServer, user: models.User) -> None:
    """Documents and notes of this server are found by their vectors again."""
    connection.execute(
        "update rag.embedding_servers set active = true, replaced_at = null, paused_at = null where id = %s",
        (row.server.id,),
    )
    audit(connection, {"name": row.server.name, "active": row.active}, {"name": row.server.name, "active": True}, user)


def switch_off(connection: Connection, row: settings.StoredServer, user: models.User, *, reindexes: bool) -> None:
    """Moves what a server holds to the default server, and switches it off then, or leaves it to its words at once."""
    # Every process already indexes with the default server, so the move need not wait: it began a minute ago.
    connection.execute(
        "update rag.embedding_servers set active = %(moves)s, paused_at = null,"
        " replaced_at = case when %(moves)s then clock_timestamp() - interval '1 minute' end where id = %(id)s",
        {"moves": reindexes, "id": row.server.id},
    )
    after = {"name": row.server.name, "active": False, "documents": "reindex" if reindexes else "words"}
    audit(connection, {"name": row.server.name, "active": row.active}, after, user)


def remove_server(connection: Connection, row: settings.StoredServer, user: models.User) -> None:
    """Raises ServerInUseError when a document or note, also one in the trash or an older version, has its vectors."""
    removed = connection.execute(
        "delete from rag.embedding_servers s where s.id = %s"
        " and not exists (select from rag.documents d where d.embedding_server_id = s.id)"
        " and not exists (select from rag.notes n where n.embedding_server_id = s.id)",
        (row.server.id,),
    )
    if not removed.rowcount:
        raise errors.ServerInUseError(
            "Documents or notes, perhaps older versions, have the vectors of this server. Switch it off instead.",
            documents=row.documents,
            notes=row.notes,
        )
    audit(connection, _describe(row.server), None, user)


def _describe(server: models.EmbeddingServer | None) -> Mapping[str, Any] | None:
    return None if server is None else {name: getattr(server, name) for name in _WRITABLE}


def audit(
    connection: Connection, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, user: models.User
) -> None:
    """Records what differs; the name is always part of it."""
    old, new = dict(old or {}), dict(new or {})
    same = [name for name in old.keys() & new.keys() if name != "name" and new[name] == old[name]]
    for name in same:
        del old[name], new[name]
    connection.execute(
        "insert into rag.settings_audit (key, old_value, new_value, changed_by)"
        " values ('embedding_server', %s, %s, %s)",
        (json.dumps(old) if old else None, json.dumps(new) if new else None, user.id),
    )
