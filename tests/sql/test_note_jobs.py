"""Notes share the ingestion queue of documents: saving, trashing and deleting a note updates its jobs and passages."""

from __future__ import annotations

from typing import Any

import pytest

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.core import errors, models
from tests.support.library import ADA, add_note, claim_during, index_document, make_batch, make_query


def change(db: Database, note_id: str, **columns: Any) -> dict[str, Any]:
    """Sets columns as the owner; returns the note."""
    assignments = ", ".join(f"{name} = %({name})s" for name in columns)
    with db.as_user(ADA) as connection:
        connection.execute(f"update rag.notes set {assignments} where id = %(id)s".encode(), {**columns, "id": note_id})
    return read(db, note_id)


def read(db: Database, note_id: str) -> dict[str, Any]:
    with db.as_user(ADA) as connection:
        row = connection.execute("select * from rag.notes where id = %s", (note_id,)).fetchone()
    assert row is not None
    return row


def index_note(db: Database, server: models.EmbeddingServer, note_id: str, text: str) -> None:
    """Saves a text and finishes its job."""
    change(db, note_id, content=text)
    store = JobStore(db)
    job = store.claim_ingest_job(None, 60)
    assert job is not None
    assert (job.kind, job.source_id, job.content) == ("note", note_id, text)
    store.save_batch(job, make_batch([text], server), 60)
    store.finish_ingest_job(job, {"lang": "en"})


def texts_found(db: Database) -> list[tuple[str, str]]:
    return [(hit.source, hit.text) for hit in search.hybrid_search(db, ADA, make_query("alpha")).hits]


def test_a_saved_note_is_searchable_when_its_job_is_done(db: Database, server: models.EmbeddingServer) -> None:
    """LIB-2"""
    note = add_note(db)
    assert read(db, note)["status"] == "empty"
    index_note(db, server, note, "alpha one")
    assert texts_found(db) == [("note", "alpha one")]
    assert (read(db, note)["status"], read(db, note)["chunk_count"]) == ("indexed", 1)


def test_search_finds_the_old_text_of_an_edited_note_until_the_new_one_is_indexed(
    db: Database, server: models.EmbeddingServer
) -> None:
    """LIB-2"""
    note = add_note(db)
    index_note(db, server, note, "alpha one")
    assert change(db, note, content="alpha two")["status"] == "queued"
    assert texts_found(db) == [("note", "alpha one")]
    index_note(db, server, note, "alpha three")
    assert texts_found(db) == [("note", "alpha three")]


def test_a_worker_that_indexes_an_older_text_cannot_save_it(db: Database, server: models.EmbeddingServer) -> None:
    """ING-10"""
    note, store = add_note(db), JobStore(db)
    change(db, note, content="alpha one")
    job = store.claim_ingest_job(None, 60)
    assert job is not None
    change(db, note, content="alpha two")
    with pytest.raises(errors.LeaseLostError):
        store.save_batch(job, make_batch(["alpha one"], server), 60)


def test_a_note_saved_while_a_worker_looks_for_jobs_is_claimed_with_its_new_text(db: Database, database: str) -> None:
    """ING-10: the job and the text are read at different moments, and the note is saved between them"""
    note = add_note(db)
    save = f"update rag.notes set content = 'alpha one' where id = '{note}'"
    job = claim_during(save, database, "ingest_jobs", lambda: JobStore(db).claim_ingest_job(None, 60))
    assert job is not None
    assert (job.source_id, job.content) == (note, "alpha one")


@pytest.mark.parametrize("blank", ["", " \n\t", "\u200b\ufeff"])
def test_a_note_without_text_is_removed_from_search_at_once(
    db: Database, server: models.EmbeddingServer, blank: str
) -> None:
    note = add_note(db)
    index_note(db, server, note, "alpha one")
    assert change(db, note, content=blank)["status"] == "empty"
    assert texts_found(db) == []
    assert JobStore(db).claim_ingest_job(None, 60) is None


def test_trashing_hides_a_note_and_its_attachments_and_restoring_brings_them_back(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LIB-2"""
    note = add_note(db)
    index_note(db, server, note, "alpha note")
    index_document(db, database, ["alpha attachment"], server=server, note_id=note)
    change(db, note, trashed_at="now")
    assert texts_found(db) == []
    change(db, note, trashed_at=None)
    assert {text for _, text in texts_found(db)} == {"alpha note", "alpha attachment"}
    assert JobStore(db).claim_ingest_job(None, 60) is None


def test_a_note_that_fails_records_why_and_keeps_its_old_passages(db: Database, server: models.EmbeddingServer) -> None:
    """ING-11"""
    note, store = add_note(db), JobStore(db)
    index_note(db, server, note, "alpha one")
    change(db, note, content="alpha two")
    job = store.claim_ingest_job(None, 60)
    assert job is not None
    store.fail_ingest_job(job, errors.ModelRejectedError(), 5)
    assert (read(db, note)["status"], read(db, note)["error_code"]) == ("failed", "model_rejected")
    assert texts_found(db) == [("note", "alpha one")]


def test_deleting_a_note_deletes_its_passages_and_jobs(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LIB-8"""
    note = add_note(db)
    index_note(db, server, note, "alpha one")
    with db.as_user(ADA) as connection:
        connection.execute("delete from rag.notes where id = %s", (note,))
    made = ("generations", "pages", "chunks", "chunk_vectors", "chunk_terms", "generation_terms", "ingest_jobs")
    with db.as_worker() as connection:
        left = [connection.execute(f"select from rag.{name}".encode()).fetchall() for name in made]
    assert left == [[]] * len(made)
