"""The functions of the job queue recognize new versions of a file, and duplicates of its bytes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from functions.adapters.postgres import documents, search
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.core import models
from functions.core.ingestion import jobs
from tests.support.library import (
    ADA,
    BOB,
    add_document,
    add_notebook,
    finish_next_job,
    index_document,
    make_batch,
    make_query,
    store_object,
)

SHA = "a" * 64


def texts_found(db: Database, user: models.User = ADA, **scope: Any) -> set[str]:
    return {hit.text for hit in search.hybrid_search(db, user, make_query("alpha", **scope)).hits}


def version_of(db: Database, document_id: str, user: models.User = ADA) -> tuple[int, str | None]:
    with db.as_user(user) as connection:
        row = documents.find(connection, document_id)
    return row["version"], str(row["superseded_by"]) if row["superseded_by"] else None


def start_job(db: Database, dsn: str, user: models.User = ADA) -> jobs.Job:
    store_object(dsn, user, add_document(db, user))
    job = JobStore(db).claim_ingest_job(None, 60)
    assert job is not None
    return job


def test_different_bytes_under_the_same_name_are_a_new_version(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LIB-5"""
    first = index_document(db, database, ["alpha old"], server=server, file_name="plan.pdf")
    second = index_document(db, database, ["alpha new"], server=server, file_name="plan.pdf")
    assert texts_found(db) == {"alpha new"}
    assert (version_of(db, first), version_of(db, second)) == ((1, second), (2, None))


def test_the_pages_of_an_older_version_stay_readable(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LIB-5"""
    first = index_document(db, database, ["alpha old"], server=server, file_name="plan.pdf")
    index_document(db, database, ["alpha new"], server=server, file_name="plan.pdf")
    with db.as_user(ADA) as connection:
        pages = documents.read_pages(connection, documents.find(connection, first), 1, 1)
    assert [page["text"] for page in pages] == ["alpha old"]


def test_a_search_of_an_older_version_finds_the_newest(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    first = index_document(db, database, ["alpha one"], server=server, file_name="plan.pdf")
    for text in ("alpha two", "alpha three"):
        index_document(db, database, [text], server=server, file_name="plan.pdf")
    assert texts_found(db, scope=models.Scope("documents", document_ids=(first,))) == {"alpha three"}


def test_the_newest_upload_is_live_whichever_is_indexed_first(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    older, newer = (add_document(db, file_name="plan.pdf") for _ in range(2))
    for document, text in ((newer, "alpha newer"), (older, "alpha older")):
        store_object(database, ADA, document)
        finish_next_job(db, make_batch([text], server))
    assert texts_found(db) == {"alpha newer"}
    assert version_of(db, older)[1] == newer


@pytest.mark.parametrize("place", ["another notebook", "another owner"])
def test_the_same_name_elsewhere_is_another_document(
    db: Database, database: str, server: models.EmbeddingServer, place: str
) -> None:
    first = index_document(db, database, ["alpha old"], server=server, file_name="plan.pdf")
    user = BOB if place == "another owner" else ADA
    notebook = add_notebook(db) if place == "another notebook" else None
    index_document(db, database, ["alpha new"], server=server, user=user, file_name="plan.pdf", notebook_id=notebook)
    assert version_of(db, first) == (1, None)
    assert "alpha old" in texts_found(db)


def test_deleting_a_document_deletes_its_older_versions(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LIB-8"""
    index_document(db, database, ["alpha old"], server=server, file_name="plan.pdf")
    second = index_document(db, database, ["alpha new"], server=server, file_name="plan.pdf")
    with db.as_user(ADA) as connection:
        receipt = documents.delete_document(connection, second)
    assert (receipt["documents"], receipt["pages"], len(receipt["object_paths"])) == (2, 2, 2)
    assert texts_found(db) == set()


def test_a_document_with_the_bytes_of_another_becomes_its_duplicate(db: Database, database: str) -> None:
    """LIB-5"""
    store = JobStore(db)
    first, second = start_job(db, database), start_job(db, database)
    assert store.adopt_duplicate(first, SHA) is None
    assert store.adopt_duplicate(second, SHA) == first.source_id
    with db.as_user(ADA) as connection:
        assert str(documents.find(connection, second.source_id)["id"]) == first.source_id
        listed, _ = documents.list_page(connection, documents.Listing(), limit=10, cursor=None)
    assert [str(row["id"]) for row in listed] == [first.source_id]


def test_a_duplicate_whose_file_is_replaced_becomes_a_document_of_its_own(db: Database, database: str) -> None:
    """LIB-5: the storage accepts a signed URL again after its object was deleted."""
    store = JobStore(db)
    first, second = start_job(db, database), start_job(db, database)
    store.adopt_duplicate(first, SHA)
    store.adopt_duplicate(second, SHA)
    store_object(database, ADA, second.source_id, "2")
    with db.as_user(ADA) as connection:
        found = documents.find(connection, second.source_id)
    assert (str(found["id"]), found["status"]) == (second.source_id, "uploaded")
    assert JobStore(db).sweep_ingest_jobs(3)["objects"] == []


def test_two_uploads_of_the_same_bytes_at_once_are_ingested_once(db: Database, database: str) -> None:
    """LIB-5"""
    started = [start_job(db, database) for _ in range(4)]
    found: list[str | None] = []
    threads = [
        threading.Thread(target=lambda job: found.append(JobStore(db).adopt_duplicate(job, SHA)), args=(job,))
        for job in started
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(None) == 1
    assert len(set(found)) == 2


def test_the_same_bytes_of_another_user_are_not_a_duplicate(db: Database, database: str) -> None:
    """SEC-3"""
    store = JobStore(db)
    assert store.adopt_duplicate(start_job(db, database, BOB), SHA) is None
    assert store.adopt_duplicate(start_job(db, database), SHA) is None
