"""Paging by cursor: each row is read once, and none is lost while others are inserted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from psycopg.rows import dict_row

from functions.adapters.postgres import conversations, documents, notebooks, notes
from tests.support.database import add_user, as_user

Page = tuple[list[dict[str, Any]], str | None]

LISTS: dict[str, Callable[..., Page]] = {
    "conversations": conversations.list_page,
    "notebooks": lambda db, **page: notebooks.list_page(db, title=None, **page),
    "notes": lambda db, **page: notes.list_page(db, notebook_id=None, trashed=False, title=None, **page),
    "documents": lambda db, **page: documents.list_page(db, documents.Listing(all_versions=True), **page),
}
REQUIRED: dict[str, dict[str, Any]] = {
    "conversations": {"title": "t"},
    "notebooks": {"title": "t"},
    "notes": {"title": "t"},
    "documents": {"file_name": "a.pdf", "file_type": "pdf", "size_bytes": 1},
}
MINUTES = strategies.integers(0, 3)  # few, so that many rows have the same time


def insert(db: psycopg.Connection[Any], table: str, owner: str, minute: int) -> str:
    """A row that was made and changed at the same minute of a past day; returns its id."""
    row = REQUIRED[table] | {"id": str(uuid4()), "owner_id": owner}
    row |= dict.fromkeys(("created_at", "updated_at"), datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute))
    if table == "documents":
        row["object_path"] = row["id"]
    names = ", ".join(row)
    db.execute(f"insert into rag.{table} ({names}) values ({', '.join(f'%({name})s' for name in row)})", row)
    return str(row["id"])


@pytest.mark.parametrize("table", LISTS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(strategies.lists(MINUTES, max_size=12), strategies.lists(MINUTES, max_size=12), strategies.integers(1, 5))
def test_each_row_is_read_once_while_others_are_inserted(
    connection: psycopg.Connection[Any], table: str, minutes: list[int], later: list[int], limit: int
) -> None:
    """LIB-6, CHAT-11"""
    connection.row_factory = dict_row
    owner = add_user(connection)
    ids = [insert(connection, table, owner, minute) for minute in minutes]
    read: list[str] = []
    cursor: str | None = None
    while not read or cursor:
        with as_user(connection, owner):
            rows, cursor = LISTS[table](connection, limit=limit, cursor=cursor)
        read += [str(row["id"]) for row in rows] or ["nothing"]
        if later:
            insert(connection, table, owner, later.pop())
    assert len(read) == len(set(read))
    assert set(ids) <= set(read)
