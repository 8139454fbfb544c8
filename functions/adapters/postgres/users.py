"""Users: quotas, usage, API keys, deletion. The database counts, so requests to other processes count too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg

from functions.adapters.postgres.connection import WORKER_ROLE, Connection, Database, write_claims
from functions.core import api_keys, errors, models
from functions.core.settings import MEGABYTE, Settings

QUOTA_SQLSTATE = "IB002"  # raised by rag.take_quota, rag.take_upload and rag.use_api_key
MAX_KEYS = 50
"""API keys that one user may have, expired ones included."""

FULL_LIBRARY_RETRY_SECONDS = 3600
"""The Retry-After of a full library: a fixed time, because only its owner can make room."""

# As in search.py, the statement itself sets role and claims: one round trip, and no wait for the disk.
_TAKE_REQUEST = """
with act as materialized (
    select set_config('role', 'authenticated', true), set_config('request.jwt.claims', %s, true),
        set_config('synchronous_commit', 'off', true)
)
select rag.take_quota('request', %s) from act
"""
_USE_KEY = """
with act as materialized (
    select set_config('role', %s, true), set_config('synchronous_commit', 'off', true)
)
select rag.use_api_key(%s, %s, %s) as key from act
"""
_KEY_COLUMNS = "id, name, hint, scopes, created_at, expires_at, last_used_at"


@contextmanager
def quota_errors() -> Iterator[None]:
    """Turns the database's refusal for a quota into a RateLimitedError or a QuotaExceededError."""
    try:
        yield
    except psycopg.Error as exc:
        if exc.sqlstate != QUOTA_SQLSTATE:
            raise
        raise _read_refusal(json.loads(exc.diag.message_detail or "{}")) from exc


def take_request(database: Database, user: models.User, settings: Settings) -> None:
    """Counts a request that is neither a question nor a search; those are counted by their own statements."""
    if settings.requests_per_minute:
        with quota_errors(), database.autocommit() as connection:
            connection.execute(_TAKE_REQUEST, (write_claims(user), settings.requests_per_minute))


def take_upload(connection: Connection, settings: Settings, size: int) -> None:
    """Counts a new document, note or notebook of `size` bytes in the transaction that adds it."""
    with quota_errors():
        connection.execute(
            "select rag.take_upload(%s, %s, %s, %s)",
            (
                size,
                settings.uploads_per_minute,
                settings.max_documents,
                settings.max_library_megabytes * MEGABYTE,
            ),
        )


def use_key(database: Database, key: str, *, checks_account: bool) -> models.User:
    """The owner of an API key, with its scopes; the same statement counts the request.

    `checks_account` says that Supabase Auth keeps the accounts: a key stops when that of its owner does. Raises
    NotSignedInError or RateLimitedError.
    """
    parameters = (WORKER_ROLE, api_keys.hash_key(key), Settings().key_requests_per_minute, checks_account)
    with quota_errors(), database.autocommit() as connection:
        row = connection.execute(_USE_KEY, parameters).fetchone()
    found = row and row["key"]
    if not found:
        raise errors.NotSignedInError("This API key does not exist, or it was revoked. Make a new one.")
    if "expired_at" in found:
        raise errors.NotSignedInError(f"This API key expired on {found['expired_at'][:10]}. Make a new one.")
    claims = {"sub": found["owner_id"], "api_key_id": found["id"]}
    return models.User(found["owner_id"], is_admin=False, claims=claims, scopes=frozenset(found["scopes"]))


def insert_key(
    connection: Connection, user: models.User, key: str, name: str, scopes: Sequence[str], expires_at: datetime
) -> dict[str, Any]:
    """Stores the hash of a new API key; raises QuotaExceededError when the user has MAX_KEYS."""
    connection.execute("select pg_advisory_xact_lock(hashtextextended('rag.api_keys ' || auth.uid(), 0))")
    if len(list_keys(connection)) >= MAX_KEYS:
        raise errors.QuotaExceededError(
            f"You have {MAX_KEYS} API keys, as many as one person may have. Revoke one first.",
            retry_after=FULL_LIBRARY_RETRY_SECONDS,
        )
    statement = f"""
        insert into rag.api_keys (owner_id, name, hint, key_hash, scopes, expires_at)
        values (%s, %s, %s, %s, %s, %s) returning {_KEY_COLUMNS}
    """
    hint, digest = api_keys.shorten_key(key), api_keys.hash_key(key)
    row = connection.execute(statement.encode(), (user.id, name, hint, digest, list(scopes), expires_at)).fetchone()
    assert row is not None
    return dict(row)


def list_keys(connection: Connection) -> list[dict[str, Any]]:
    """The API keys of the user, newest first, without the keys themselves."""
    statement = f"select {_KEY_COLUMNS} from rag.api_keys order by created_at desc, id"
    return [dict(row) for row in connection.execute(statement.encode()).fetchall()]


def delete_key(connection: Connection, key_id: str) -> None:
    """Revokes an API key at once; raises NotFoundError."""
    if connection.execute("delete from rag.api_keys where id = %s", (key_id,)).rowcount == 0:
        raise errors.NotFoundError("There is no such API key.")


def purge_keys(database: Database) -> int:
    """Deletes the API keys that expired a month ago, until when their owner is told so; returns how many."""
    with database.as_worker() as connection:
        return connection.execute(
            "delete from rag.api_keys where expires_at < clock_timestamp() - interval '30 days'"
        ).rowcount


def take_note_change(connection: Connection, settings: Settings, note_id: str, content: str | None) -> None:
    """Counts the saving of a note, which is indexed again; only one that grows needs room in the library."""
    size = None if content is None else len(content.encode())
    with quota_errors():
        connection.execute(
            "select rag.take_upload(greatest(g.bytes, 0), %s, 0, case when g.bytes > 0 then %s else 0 end) from ("
            " select coalesce(%s::bigint - octet_length(content), 0) from rag.notes where id = %s) g (bytes)",
            (settings.uploads_per_minute, settings.max_library_megabytes * MEGABYTE, size, note_id),
        )


def take_indexing(connection: Connection, settings: Settings) -> None:
    """Counts a request to index a document or a note again, which costs as much as an upload."""
    with quota_errors():
        connection.execute("select rag.take_quota('upload', %s)", (settings.uploads_per_minute,))


def purge_counters(database: Database) -> int:
    """Deletes the counters of expired windows; returns how many."""
    with database.as_worker() as connection:
        return connection.execute(
            "delete from rag.usage_counters where window_start < clock_timestamp() - interval '2 days'"
        ).rowcount


def _read_refusal(refusal: dict[str, Any]) -> errors.LimitReachedError:
    kind, quota = refusal["kind"], refusal["quota"]
    if kind == "documents":
        return errors.QuotaExceededError(
            f"Your library holds {quota:,} documents, notes and notebooks, as many as this installation allows."
            " Delete some to make room.",
            retry_after=FULL_LIBRARY_RETRY_SECONDS,
        )
    if kind == "bytes":
        return errors.QuotaExceededError(
            f"With this your library would hold more than the {quota // MEGABYTE:,} MB that this installation"
            " allows. Delete documents or notes to make room.",
            retry_after=FULL_LIBRARY_RETRY_SECONDS,
        )
    seconds = refusal["retry_after"]
    if kind == "key":
        return errors.RateLimitedError(
            f"This API key has sent {quota:,} requests within a minute, as many as this installation allows. Try again"
            f" in {_format_duration(seconds)}.",
            retry_after=seconds,
        )
    if kind == "question":
        return errors.QuotaExceededError(
            f"You have asked {quota:,} questions today, as many as this installation allows. Ask again in"
            f" {_format_duration(seconds)}, after midnight UTC.",
            retry_after=seconds,
        )
    done = "saved or re-indexed more than {:,} items" if kind == "upload" else "sent more than {:,} requests"
    return errors.RateLimitedError(
        f"You have {done.format(quota)} within a minute. Try again in {_format_duration(seconds)}.",
        retry_after=seconds,
    )


def _format_duration(seconds: int) -> str:
    minutes = -(-seconds // 60)
    if seconds < 60:
        return f"{seconds} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def forget_user(database: Database, user_id: str, batch_size: int) -> dict[str, Any]:
    """Deletes one batch of a user's rows in its own transaction; returns the receipt of sql/55_forget_user.sql."""
    with database.as_worker() as connection:
        row = connection.execute("select rag.forget_user(%s, %s) as receipt", (user_id, batch_size)).fetchone()
    assert row is not None
    return dict(row["receipt"])


def count_usage(connection: Connection, usage: Mapping[str, Any]) -> None:
    """Adds an answer that is not saved to the usage of the day; those that are saved are counted with it."""
    amounts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens", "cost_usd")]
    connection.execute("select rag.count_usage(%s::bigint, %s::bigint, %s::numeric)", amounts)


def list_usage(connection: Connection, day_count: int, *, of: models.User | None) -> list[dict[str, Any]]:
    """The usage of each of the last days (UTC), oldest first, of one user, or of all that the caller may read."""
    return connection.execute(
        """
        select today.day, coalesce(sum(u.questions), 0)::bigint as questions,
            coalesce(sum(u.prompt_tokens), 0)::bigint as prompt_tokens,
            coalesce(sum(u.completion_tokens), 0)::bigint as completion_tokens,
            coalesce(sum(u.cost_usd), 0)::float8 as cost_usd
        from generate_series(0, %(day_count)s - 1) as ago (days)
        cross join lateral (select (now() at time zone 'UTC')::date - ago.days) as today (day)
        left join rag.daily_usage u
            on u.day = today.day and (%(owner_id)s::uuid is null or u.owner_id = %(owner_id)s::uuid)
        group by today.day order by today.day
        """,
        {"day_count": day_count, "owner_id": None if of is None else of.id},
    ).fetchall()
