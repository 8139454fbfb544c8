"""The views that say which documents are live and which jobs are due."""

from __future__ import annotations

import psycopg
import pytest

from functions.adapters.postgres import notes
from functions.adapters.postgres.connection import Database
from functions.core import models
from tests.support.library import ADA, BOB, add_document, add_note, index_document, store_object

VIEWS = {"due_jobs": "ingest_jobs", "live_documents": "documents", "untrashed_documents": "documents"}


def read_ids(db: Database, view: str, user: models.User = ADA) -> list[str]:
    with db.as_user(user) as connection:
        rows = connection.execute(f"select id::text from rag.{view} order by created_at").fetchall()
    return [row["id"] for row in rows]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_every_column_of_its_table(connection: psycopg.Connection, view: str) -> None:
    """A migration that adds a column repeats the view."""
    columns = "select array_agg(column_name::text order by column_name) from information_schema.columns"
    rows = [
        connection.execute(f"{columns} where table_schema = 'rag' and table_name = %s", (name,)).fetchone()
        for name in (view, VIEWS[view])
    ]
    assert rows[0] == rows[1]


def test_live_documents_are_the_newest_versions(db: Database, database: str, server: models.EmbeddingServer) -> None:
    older = index_document(db, database, ["one"], server=server, file_name="a.pdf")
    newer = index_document(db, database, ["two"], server=server, file_name="a.pdf")
    assert (read_ids(db, "live_documents"), read_ids(db, "untrashed_documents")) == ([newer], [older, newer])


def test_live_documents_include_no_duplicates(db: Database) -> None:
    original, duplicate = add_document(db), add_document(db)
    with db.as_worker() as connection:
        connection.execute("update rag.documents set duplicate_of = %s where id = %s", (original, duplicate))
    assert read_ids(db, "live_documents") == [original]


def test_attachments_are_in_the_trash_while_their_note_is(db: Database) -> None:
    note = add_note(db)
    document = add_document(db, note_id=note)
    found = []
    for trashed in (True, False):
        with db.as_user(ADA) as connection:
            notes.set_trashed(connection, note, trashed)
        found.append((read_ids(db, "live_documents"), read_ids(db, "untrashed_documents")))
    assert found == [([], []), ([document], [document])]


def test_nobody_sees_the_documents_of_others_through_a_view(db: Database) -> None:
    """SEC-2"""
    add_document(db)
    assert (read_ids(db, "live_documents", BOB), read_ids(db, "untrashed_documents", BOB)) == ([], [])


@pytest.mark.parametrize(
    ("change", "due"),
    [
        ("status = 'queued'", 1),
        ("status = 'queued', run_after = now() + interval '1 minute'", 0),
        ("status = 'running', lease_expires_at = now() + interval '1 minute'", 0),
        ("status = 'running', lease_expires_at = now() - interval '1 minute'", 1),
        ("status = 'dead'", 0),
    ],
)
def test_a_job_is_due_when_its_wait_is_over_or_its_lease_has_expired(
    db: Database, database: str, change: str, due: int
) -> None:
    store_object(database, ADA, add_document(db))
    with db.as_worker() as connection:
        connection.execute(f"update rag.ingest_jobs set {change}".encode())
        found = connection.execute("select id from rag.due_jobs").fetchall()
    assert len(found) == due
