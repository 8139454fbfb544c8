"""What is kept of one person."""

from __future__ import annotations

from typing import Any

from functions.adapters.postgres.connection import Database


def forget_user(database: Database, user_id: str, batch_size: int) -> dict[str, Any]:
    """One batch, in a transaction of its own; see sql/55_forget_user.sql."""
    with database.as_worker() as connection:
        row = connection.execute("select rag.forget_user(%s, %s) as receipt", (user_id, batch_size)).fetchone()
    assert row is not None
    return dict(row["receipt"])
