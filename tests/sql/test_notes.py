"""Notes in the database: saving queues a job, deleting removes all rows, and only the owner may do either."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from psycopg import sql

from functions.adapters.postgres import notes, search
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.core import errors, models
from tests.support import library
from tests.support.library import ADA, BOB, make_batch, make_query


def save(db: Database, content: str = "wood burns", title: str = "Note", user: models.User = ADA) -> str:
    with db.as_user(user) as connection:
        row = notes.insert(connection, user, {"title": title, "content": content, "notebook_id": None})
    return str(row["id"])


def change(db: Database, note_id: str, **changes: Any) -> str:
    """Changes a note; returns its status right after the change."""
    with db.as_user(ADA) as connection:
        return str(notes.update(connection, note_id, changes, None)["status"])


def index(db: Database, text: str, server: models.EmbeddingServer) -> None:
    library.finish_next_job(db, make_batch([text], server))


def jobs_of(db: Database, note_id: str) -> list[str]:
    """The states of a note's jobs, oldest first."""
    with db.as_worker() as connection:
        rows = connection.execute("select status from rag.ingest_jobs where note_id = %s order by id", (note_id,))
        return [row["status"] for row in rows.fetchall()]


def find_texts(db: Database, words: str, user: models.User = ADA) -> list[str]:
    return [hit.text for hit in search.hybrid_search(db, user, make_query(words)).hits]


def test_a_note_and_its_job_are_saved_together_or_not_at_all(db: Database) -> None:
    """ING-10"""
    with db.as_user(ADA) as connection, connection.transaction(force_rollback=True):
        row = notes.insert(connection, ADA, {"title": "", "content": "wood burns", "notebook_id": None})
        assert notes.find_queued_job(connection, row["id"]) is not None
    with db.as_worker() as connection:
        assert connection.execute("select from rag.ingest_jobs").fetchall() == []


def test_a_newer_text_supersedes_the_job_of_the_older(db: Database, server: models.EmbeddingServer) -> None:
    note_id = save(db)
    store = JobStore(db)
    old = store.claim_ingest_job(None, 60)
    assert old is not None
    assert change(db, note_id, content="wood glows") == "queued"
    assert jobs_of(db, note_id) == ["superseded", "queued"]
    with pytest.raises(errors.LeaseLostError):
        store.save_batch(old, make_batch(["wood burns"], server), 60)
    index(db, "wood glows", server)
    assert find_texts(db, "wood") == ["wood glows"]


def test_an_older_text_is_found_until_the_newer_one_is_and_never_both(
    db: Database, server: models.EmbeddingServer
) -> None:
    """LIB-2"""
    note_id = save(db)
    index(db, "wood burns", server)
    change(db, note_id, content="wood glows")
    store = JobStore(db)
    job = store.claim_ingest_job(None, 60)
    assert job is not None
    store.save_batch(job, make_batch(["wood glows"], server), 60)
    assert find_texts(db, "wood") == ["wood burns"]
    store.finish_ingest_job(job, {"lang": "en"})
    assert find_texts(db, "wood") == ["wood glows"]


@pytest.mark.parametrize("blank", ["", " \r\n\t", "\u200b\ufeff"])
def test_an_emptied_note_is_removed_from_search_in_the_same_transaction(
    db: Database, server: models.EmbeddingServer, blank: str
) -> None:
    note_id = save(db)
    index(db, "wood burns", server)
    assert change(db, note_id, content=blank) == "empty"
    assert find_texts(db, "wood") == []
    assert jobs_of(db, note_id) == ["done"]


def test_moving_and_trashing_a_note_queue_no_job(db: Database) -> None:
    note_id = save(db)
    change(db, note_id, notebook_id=UUID(library.add_notebook(db)))
    with db.as_user(ADA) as connection:
        assert notes.set_trashed(connection, note_id, True)["trashed_at"] is not None
        assert notes.set_trashed(connection, note_id, False)["trashed_at"] is None
    assert jobs_of(db, note_id) == ["queued"]


@pytest.mark.parametrize("column", ["status", "generation", "owner_id", "chunk_count", "updated_at"])
def test_users_cannot_write_the_columns_that_indexing_writes(db: Database, column: str) -> None:
    """SEC-2"""
    note_id = save(db)
    statement = sql.SQL("update rag.notes set {0} = {0} where id = %s").format(sql.Identifier(column))
    with pytest.raises(errors.NotAllowedError), db.as_user(ADA) as connection:
        connection.execute(statement, (note_id,))


# Requesting the job again


def test_requesting_a_waiting_job_makes_it_due_and_adds_no_other(db: Database) -> None:
    note_id = save(db)
    with db.as_worker() as connection:
        connection.execute("update rag.ingest_jobs set run_after = now() + interval '1 hour'")
    assert JobStore(db).claim_ingest_job(None, 60) is None
    with db.as_user(ADA) as connection:
        job_id = notes.request_job(connection, note_id)
    job = JobStore(db).claim_ingest_job(None, 60)
    assert job is not None
    assert (job.id, jobs_of(db, note_id)) == (job_id, ["running"])


def test_only_the_owner_of_a_note_can_queue_it_again(db: Database, server: models.EmbeddingServer) -> None:
    """SEC-2"""
    note_id = save(db)
    index(db, "wood burns", server)
    with db.as_user(BOB) as connection:
        assert notes.request_job(connection, note_id) is None
    assert jobs_of(db, note_id) == ["done"]
    with db.as_user(ADA) as connection:
        assert notes.request_job(connection, note_id) is not None
    assert (jobs_of(db, note_id), find_texts(db, "wood")) == (["done", "queued"], ["wood burns"])


def test_an_empty_note_is_not_queued(db: Database) -> None:
    note_id = save(db, " ")
    with db.as_user(ADA) as connection:
        assert notes.request_job(connection, note_id) is None


# Deleting


def delete(db: Database, user: models.User, note_ids: list[str], document_ids: list[str]) -> dict[str, Any]:
    with db.as_user(user) as connection:
        return notes.delete_sources(connection, [UUID(i) for i in note_ids], [UUID(i) for i in document_ids])


NOTHING: dict[str, Any] = dict.fromkeys(("notes", "documents", "pages", "chunks", "vectors", "jobs"), 0) | {
    "object_paths": []
}


def test_ids_that_do_not_exist_are_ignored(db: Database) -> None:
    assert delete(db, ADA, [], []) == NOTHING
    assert delete(db, ADA, [str(UUID(int=1))], [str(UUID(int=2))]) == NOTHING


def test_nobody_deletes_the_sources_of_another_user(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """SEC-2"""
    note_id = save(db)
    index(db, "wood burns", server)
    document_id = library.index_document(db, database, ["coal burns"], server=server)
    assert delete(db, BOB, [note_id], [document_id]) == NOTHING
    assert sorted(find_texts(db, "burns")) == ["coal burns", "wood burns"]


def test_the_receipt_adds_up_notes_and_documents(db: Database, database: str, server: models.EmbeddingServer) -> None:
    """LIB-8"""
    note_id = save(db)
    index(db, "wood burns", server)
    documents = [
        library.index_document(db, database, texts, server=server, note_id=note_id)
        for texts in (["coal burns"], ["peat", "gas"])
    ]
    receipt = delete(db, ADA, [note_id], documents)
    paths = sorted(receipt.pop("object_paths"))
    assert receipt == {"notes": 1, "documents": 2, "pages": 4, "chunks": 4, "vectors": 4, "jobs": 3}
    assert paths == sorted(library.object_path(ADA, document_id) for document_id in documents)
    with db.as_worker() as connection:
        for table in ("generations", "pages", "chunks", "chunk_vectors", "chunk_terms", "generation_terms"):
            assert connection.execute(f"select from rag.{table}").fetchall() == []


def test_an_older_version_that_is_also_named_is_counted_once(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LIB-5, LIB-8"""
    versions = [
        library.index_document(db, database, [text], server=server, file_name="report.pdf") for text in ("old", "new")
    ]
    for order in (versions, versions[::-1]):
        assert delete(db, BOB, [], order) == NOTHING
    receipt = delete(db, ADA, [], versions[::-1])
    assert (receipt["documents"], receipt["chunks"], len(receipt["object_paths"])) == (2, 2, 2)


def test_deleting_ends_the_lease_of_the_worker(db: Database, server: models.EmbeddingServer) -> None:
    """LIB-8"""
    note_id = save(db)
    store = JobStore(db)
    job = store.claim_ingest_job(None, 60)
    assert job is not None
    store.save_batch(job, make_batch(["wood burns"], server), 60)
    assert delete(db, ADA, [note_id], []) == NOTHING | {"notes": 1, "pages": 1, "chunks": 1, "vectors": 1, "jobs": 1}
    with pytest.raises(errors.LeaseLostError):
        store.finish_ingest_job(job, {"lang": "en"})
    with db.as_worker() as connection:
        assert connection.execute("select from rag.generations").fetchall() == []
