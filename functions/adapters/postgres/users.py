"""How much one person may do, counted in the database: what happens at the same time elsewhere counts, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from functions.adapters.postgres.connection import Connection, Database
from functions.core import errors, models
from functions.core.settings import MEGABYTE, Settings

LIMIT_REACHED = "IB002"  # raised by rag.take_quota and rag.take_upload

ROOM_SECONDS = 3600
"""When to look again whether a full library has room: nobody knows when its owner deletes something."""

# Role and claims are set by the statement itself, as in search.py: one round trip, and no waiting for the disk.
_TAKE_REQUEST = """
with act as materialized (
    select set_config('role', 'authenticated', true), set_config('request.jwt.claims', %s, true),
        set_config('synchronous_commit', 'off', true)
)
select rag.take_quota('request', %s) from act
"""


@contextmanager
def refusals() -> Iterator[None]:
    """What the database refuses for a quota becomes a RateLimitedError or a QuotaExceededError."""
    try:
        yield
    except psycopg.Error as exc:
        if exc.sqlstate != LIMIT_REACHED:
            raise
        raise _describe(json.loads(exc.diag.message_detail or "{}")) from exc


def take_question(connection: Connection, settings: Settings) -> None:
    """Counts a question, in the transaction that saves it: one that comes to nothing is not counted."""
    with refusals():
        connection.execute(
            "select rag.take_quota('request', %s), rag.take_quota('question', %s)",
            (settings.requests_per_minute, settings.questions_per_day),
        )


def take_request(database: Database, user: models.User, settings: Settings) -> None:
    """Counts a request that is no question; a search counts itself (search.py)."""
    if settings.requests_per_minute:
        claims = json.dumps({**user.claims, "sub": user.id, "role": "authenticated"})
        with refusals(), database.autocommit() as connection:
            connection.execute(_TAKE_REQUEST, (claims, settings.requests_per_minute))


def take_upload(connection: Connection, settings: Settings, size: int) -> None:
    """Counts an upload of so many bytes, in the transaction that announces it."""
    with refusals():
        connection.execute(
            "select rag.take_upload(%s, %s, %s, %s)",
            (
                size,
                settings.uploads_per_minute,
                settings.max_documents,
                settings.max_library_megabytes * MEGABYTE,
            ),
        )


def purge_counters(database: Database) -> int:
    """Forgets the counters of windows that are long over; returns how many."""
    with database.as_worker() as connection:
        return connection.execute(
            "delete from rag.usage_counters where window_start < clock_timestamp() - interval '2 days'"
        ).rowcount


def _describe(refused: dict[str, Any]) -> errors.LimitReachedError:
    kind, quota = refused["kind"], refused["quota"]
    if kind == "documents":
        return errors.QuotaExceededError(
            f"Your library holds {quota:,} documents, as many as this installation allows. Delete some to make room.",
            retry_after=ROOM_SECONDS,
        )
    if kind == "bytes":
        return errors.QuotaExceededError(
            f"With this file your library would hold more than the {quota // MEGABYTE:,} MB that this installation"
            " allows. Delete documents to make room.",
            retry_after=ROOM_SECONDS,
        )
    seconds = refused["retry_after"]
    if kind == "question":
        return errors.QuotaExceededError(
            f"You have asked {quota:,} questions today, as many as this installation allows. Ask again in"
            f" {_say_duration(seconds)}, after midnight UTC.",
            retry_after=seconds,
        )
    return errors.RateLimitedError(
        f"More than {quota:,} {kind}s within a minute. Go on in {_say_duration(seconds)}.", retry_after=seconds
    )


def _say_duration(seconds: int) -> str:
    minutes = -(-seconds // 60)
    if seconds < 60:
        return f"{seconds} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def forget_user(database: Database, user_id: str, batch_size: int) -> dict[str, Any]:
    """One batch, in a transaction of its own; see sql/55_forget_user.sql."""
    with database.as_worker() as connection:
        row = connection.execute("select rag.forget_user(%s, %s) as receipt", (user_id, batch_size)).fetchone()
    assert row is not None
    return dict(row["receipt"])
