"""Quotas and deletion of users. The database counts, so simultaneous requests to other processes count too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from functions.adapters.postgres.connection import Connection, Database, write_claims
from functions.core import errors, models
from functions.core.settings import MEGABYTE, Settings

QUOTA_SQLSTATE = "IB002"  # raised by rag.take_quota and rag.take_upload

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
