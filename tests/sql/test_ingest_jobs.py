from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres import documents, search
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.core import errors, models
from functions.core.ingestion import jobs
from functions.core.ingestion.text_figures import Prose
from tests.support import library
from tests.support.library import (
    ADA,
    BOB,
    add_document,
    index_document,
    make_batch,
    make_query,
    object_path,
    store_object,
)

FACTS = {"page_count": 1, "ingestion_log": {}}
Run = Callable[..., list[tuple[object, ...]]]


@pytest.fixture
def store(db: Database) -> JobStore:
    return JobStore(db)


@pytest.fixture
def run(database: str) -> Run:
    """Runs SQL as the owner of the tables."""

    def run_sql(statement: str, *parameters: object) -> list[tuple[object, ...]]:
        with psycopg.connect(database, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

    return run_sql


def status_of(db: Database, document_id: str) -> str:
    with db.as_user(ADA) as connection:
        return str(documents.find(connection, document_id)["status"])


def claim(store: JobStore) -> jobs.Job:
    job = store.claim_ingest_job(None, 60)
    assert job is not None
    return job


def test_a_stored_object_has_one_job_however_many_events_report_it(
    db: Database, database: str, store: JobStore, run: Run
) -> None:
    """ING-10"""
    document = add_document(db)
    store_object(database, ADA, document, "1")
    path = library.object_path(ADA, document)
    again = {store.enqueue_stored_object(path, "1", 10) for _ in range(3)}
    assert run("select id, status from rag.ingest_jobs") == [(again.pop(), "queued")]
    assert again == set()
    assert status_of(db, document) == "uploaded"


def test_a_newer_version_supersedes_the_job_before_it(
    db: Database,
    database: str,
    store: JobStore,
    run: Run,
    server: models.EmbeddingServer,
) -> None:
    document = add_document(db)
    store_object(database, ADA, document, "1")
    job = claim(store)
    store_object(database, ADA, document, "2")
    with pytest.raises(errors.LeaseLostError):
        store.save_batch(job, make_batch(["late"], server), 60)
    assert run("select object_version, status from rag.ingest_jobs order by id") == [
        ("1", "superseded"),
        ("2", "queued"),
    ]


def test_a_file_larger_than_announced_ends_the_earlier_job_and_gets_none(db: Database, database: str, run: Run) -> None:
    """LIB-4"""
    document = add_document(db)
    store_object(database, ADA, document, "1")
    store_object(database, ADA, document, "2", size=11)
    with db.as_user(ADA) as connection:
        assert documents.request_ingest_job(connection, document) is None
    assert run("select object_version, status from rag.ingest_jobs") == [("1", "superseded")]
    assert run("select status, error_code from rag.documents") == [("failed", "larger_than_announced")]
    assert JobStore(db).sweep_ingest_jobs(3)["objects"] == [object_path(ADA, document)]


def test_a_larger_file_is_refused_after_the_document_was_indexed_too(
    db: Database, database: str, run: Run, server: models.EmbeddingServer
) -> None:
    """LIB-4, LIB-7: the passages of the first file stay."""
    document = index_document(db, database, ["The boiler burns wood chips."], server=server)
    store_object(database, ADA, document, "2", size=11)
    assert run("select status, error_code from rag.documents") == [("indexed", "larger_than_announced")]
    assert run("select count(*) from rag.ingest_jobs where status = 'queued'") == [(0,)]
    assert JobStore(db).sweep_ingest_jobs(3)["objects"] == [object_path(ADA, document)]


@pytest.mark.parametrize(
    "operation",
    ["storage.object.upload_signed", "storage.tus.upload.part_signed", "storage.tus.upload.create_signed", ""],
)
def test_an_upload_link_takes_one_file(db: Database, database: str, run: Run, operation: str) -> None:
    """LIB-3: Supabase's resumable route would overwrite it. Older storage servers name no operation."""
    document = add_document(db)
    store_object(database, ADA, document, "1", operation=operation)
    for _ in range(2):
        with pytest.raises(psycopg.errors.UniqueViolation, match="already arrived through this upload link"):
            store_object(database, ADA, document, "2", operation=operation)
        run("set session_replication_role = replica; delete from storage.objects")  # the link is valid again
    assert run("select object_version, status from rag.ingest_jobs") == [("1", "queued")]


def test_an_upload_link_may_be_used_again_after_a_file_that_got_no_job(db: Database, database: str, run: Run) -> None:
    """LIB-3"""
    document = add_document(db)
    for version, size in (("1", 11), ("2", 10)):
        store_object(database, ADA, document, version, size, operation="storage.tus.upload.part_signed")
    assert run("select object_version, status from rag.ingest_jobs") == [("2", "queued")]


def test_a_storage_that_names_no_operation_may_replace_a_file_once_its_link_has_expired(
    db: Database, database: str, run: Run
) -> None:
    document = add_document(db)
    store_object(database, ADA, document, "1")
    run("update rag.documents set created_at = created_at - interval '3 hours'")
    store_object(database, ADA, document, "2", operation="")
    assert run("select object_version from rag.ingest_jobs where status = 'queued'") == [("2",)]


def test_an_object_without_a_document_gets_no_job(database: str, run: Run, db: Database) -> None:
    """LIB-8"""
    store_object(database, ADA, "00000000-0000-4000-8000-000000000000")
    assert run("select count(*) from rag.ingest_jobs") == [(0,)]


def test_two_workers_never_hold_the_same_job(db: Database, database: str, store: JobStore) -> None:
    """ING-10"""
    for _ in range(2):
        store_object(database, ADA, add_document(db))
    claimed = [store.claim_ingest_job(None, 60) for _ in range(3)]
    assert len({job.id for job in claimed if job}) == 2
    assert claimed[2] is None


def test_a_claim_skips_locked_documents(db: Database, database: str, store: JobStore) -> None:
    """Every function locks the document before its job, so a claim has to skip a locked document."""
    document = add_document(db)
    store_object(database, ADA, document)
    with db.as_user(ADA) as connection:
        connection.execute("select from rag.documents where id = %s for update", (document,))
        assert store.claim_ingest_job(None, 60) is None
    assert claim(store).source_id == document


def test_a_released_job_keeps_its_count_of_attempts_without_progress(
    db: Database, database: str, store: JobStore
) -> None:
    """ING-10"""
    store_object(database, ADA, add_document(db))
    for _ in range(2):
        store.release_ingest_job(claim(store))
    assert claim(store).attempts == 3


def test_an_expired_lease_can_be_claimed_and_its_old_holder_cannot_save(
    db: Database, database: str, store: JobStore, server: models.EmbeddingServer
) -> None:
    """ING-10"""
    store_object(database, ADA, add_document(db))
    first = store.claim_ingest_job(None, 0)
    second = claim(store)
    assert first is not None
    assert (second.id, second.generation, second.attempts) == (first.id, first.generation, 2)
    with pytest.raises(errors.LeaseLostError):
        store.save_batch(first, make_batch(["stolen"], server), 60)
    with pytest.raises(errors.LeaseLostError):
        store.finish_ingest_job(first, FACTS)
    assert store.fail_ingest_job(first, errors.CorruptDocumentError(), 5) is None


def test_the_next_claim_continues_from_the_checkpoint(
    db: Database, database: str, store: JobStore, server: models.EmbeddingServer
) -> None:
    """ING-10"""
    document = add_document(db)
    store_object(database, ADA, document)
    first = claim(store)
    store.save_batch(first, make_batch(["page one"], server), 60)
    store.release_ingest_job(first)
    second = claim(store)
    assert second.checkpoint == jobs.Checkpoint(pages_done=1, chunk_count=1)
    with db.as_user(ADA) as connection:
        row = documents.find(connection, document)
    assert (row["status"], row["pages_done"], row["page_count"]) == ("processing", 1, 1)


def test_a_job_waits_after_a_transient_failure_and_the_last_failure_is_final(
    db: Database, database: str, store: JobStore, run: Run
) -> None:
    """ING-11"""
    document = add_document(db)
    store_object(database, ADA, document)
    assert store.fail_ingest_job(claim(store), errors.StorageUnavailableError(), 2) == "queued"
    assert store.claim_ingest_job(None, 60) is None
    assert status_of(db, document) == "processing"
    run("update rag.ingest_jobs set run_after = now()")
    assert store.fail_ingest_job(claim(store), errors.StorageUnavailableError(), 2) == "dead"
    assert run("select status, error_code from rag.documents") == [("failed", "storage_unavailable")]
    assert run("select count(*) from rag.generations") == [(0,)]


def test_prose_is_sampled_evenly_and_without_rows_of_tables(
    db: Database, database: str, store: JobStore, server: models.EmbeddingServer
) -> None:
    """LIB-10"""
    store_object(database, ADA, add_document(db))
    job = claim(store)
    batch = make_batch([f"page {number}" for number in range(1, 9)], server)
    row = replace(batch.chunks[2], markdown="| page | 3 |")
    store.save_batch(job, replace(batch, chunks=[*batch.chunks[:2], row, *batch.chunks[3:]]), 60)
    assert [prose.page for prose in store.sample_prose(job, 100)] == [1, 2, 4, 5, 6, 7, 8]
    assert store.sample_prose(job, 3) == [Prose(page, f"page {page}") for page in (1, 5, 7)]


@pytest.mark.parametrize(("asked", "shortest", "longest"), [(None, 0.9, 3.1), (30, 29, 37), (9999, 3590, 4330)])
def test_a_failed_job_waits_for_seconds_or_as_long_as_the_server_asked(
    db: Database, database: str, store: JobStore, run: Run, asked: int | None, shortest: float, longest: float
) -> None:
    """ING-8, ING-11"""
    store_object(database, ADA, add_document(db))
    details: dict[str, Any] = {} if asked is None else {"retry_after": asked}
    store.fail_ingest_job(claim(store), errors.ModelRateLimitedError(**details), 5)
    [(waits,)] = run("select extract(epoch from run_after - now())::float8 from rag.ingest_jobs")
    assert shortest <= float(str(waits)) <= longest


def test_a_permanent_failure_is_final_at_once_and_leaves_nothing(
    db: Database,
    database: str,
    store: JobStore,
    run: Run,
    server: models.EmbeddingServer,
) -> None:
    """ING-11"""
    store_object(database, ADA, add_document(db))
    job = claim(store)
    store.save_batch(job, make_batch(["half"], server), 60)
    assert store.fail_ingest_job(job, errors.CorruptDocumentError(), 5) == "failed"
    assert run("select status, error_code from rag.documents") == [("failed", "corrupt")]
    assert run("select count(*) from rag.chunks union all select count(*) from rag.chunk_vectors") == [(0,), (0,)]


def test_search_finds_the_old_passages_until_reindexing_is_done(
    db: Database,
    database: str,
    store: JobStore,
    run: Run,
    server: models.EmbeddingServer,
) -> None:
    """LIB-7"""
    document = index_document(db, database, ["alpha old"], server=server)
    with db.as_user(ADA) as connection:
        documents.request_ingest_job(connection, document)
    job = claim(store)
    store.save_batch(job, make_batch(["alpha new", "alpha newer"], server), 60)
    assert status_of(db, document) == "reindexing"
    assert [h.text for h in search.hybrid_search(db, ADA, make_query("alpha")).hits] == ["alpha old"]
    store.finish_ingest_job(job, FACTS)
    assert {h.text for h in search.hybrid_search(db, ADA, make_query("alpha")).hits} == {"alpha new", "alpha newer"}
    assert run("select count(*) from rag.chunks") == [(2,)]


def test_a_failed_reindexing_leaves_the_document_as_it_was(
    db: Database, database: str, store: JobStore, server: models.EmbeddingServer
) -> None:
    """LIB-7"""
    document = index_document(db, database, ["alpha old"], server=server)
    with db.as_user(ADA) as connection:
        documents.request_ingest_job(connection, document)
    store.fail_ingest_job(claim(store), errors.CorruptDocumentError(), 5)
    assert status_of(db, document) == "indexed"
    assert [h.text for h in search.hybrid_search(db, ADA, make_query("alpha")).hits] == ["alpha old"]


def test_deleting_removes_every_row_even_in_the_middle_of_ingestion(
    db: Database,
    database: str,
    store: JobStore,
    run: Run,
    server: models.EmbeddingServer,
) -> None:
    """LIB-8"""
    document = add_document(db)
    store_object(database, ADA, document)
    job = claim(store)
    store.save_batch(job, make_batch(["one", "two"], server), 60)
    with db.as_user(ADA) as connection:
        receipt = documents.delete_document(connection, document)
    counts = {"documents": 1, "pages": 2, "chunks": 2, "vectors": 2, "jobs": 1}
    assert receipt == {**counts, "object_paths": [library.object_path(ADA, document)]}
    with pytest.raises(errors.LeaseLostError):
        store.save_batch(job, make_batch(["three"], server), 60)
    made = [
        "documents",
        "generations",
        "pages",
        "chunks",
        "chunk_translations",
        "chunk_vectors",
        "chunk_terms",
        "generation_terms",
        "ingest_jobs",
    ]
    assert [run(f"select count(*) from rag.{name}") for name in made] == [[(0,)]] * len(made)


def test_the_sweeper_gives_up_on_jobs_that_no_worker_finishes(
    db: Database, database: str, store: JobStore, run: Run
) -> None:
    """OPS-2"""
    document = add_document(db)
    store_object(database, ADA, document)
    for _ in range(4):
        store.claim_ingest_job(None, 0)
    report = store.sweep_ingest_jobs(2)
    assert report == {"dead": 1, "enqueued": 0, "expired": 0, "orphans": 0, "due": [], "objects": []}
    assert run("select status, error_code from rag.documents") == [("failed", "worker_lost")]


def test_the_sweeper_finds_objects_that_have_no_job(db: Database, database: str, store: JobStore, run: Run) -> None:
    """OPS-2"""
    document = add_document(db)
    run("alter table storage.objects disable trigger rag_on_object_stored")
    store_object(database, ADA, document)
    report = store.sweep_ingest_jobs(5)
    assert (report["enqueued"], len(report["due"]), status_of(db, document)) == (1, 1, "uploaded")


def test_an_upload_that_never_arrived_fails_long_after_its_url_has_expired(
    db: Database, database: str, store: JobStore, run: Run
) -> None:
    """OPS-2"""
    old, new = add_document(db), add_document(db)
    run("update rag.documents set created_at = now() - interval '4 hours' where id = %s", old)
    assert store.sweep_ingest_jobs(5)["expired"] == 1
    assert (status_of(db, old), status_of(db, new)) == ("failed", "awaiting_upload")


def test_the_sweeper_lists_objects_that_belong_to_no_document(
    db: Database, database: str, store: JobStore, run: Run
) -> None:
    """LIB-8"""
    document = add_document(db)
    with db.as_user(ADA) as connection:
        documents.delete_document(connection, document)
    store_object(database, ADA, document)
    assert store.sweep_ingest_jobs(5)["objects"] == [library.object_path(ADA, document)]


def test_the_lease_of_a_dead_process_on_this_host_ends_at_once(db: Database, database: str) -> None:
    for holder in ("laptop:1", "laptop:2", "other:1"):
        store_object(database, ADA, add_document(db))
        claim(JobStore(db, holder))
    store = JobStore(db)
    assert sorted(store.list_holders("laptop")) == ["laptop:1", "laptop:2"]
    assert store.release_lost_jobs("laptop", ["laptop:2"]) == 1
    assert store.claim_ingest_job(None, 60) is not None
    assert store.claim_ingest_job(None, 60) is None


def test_nobody_requests_work_on_another_users_document(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """SEC-3"""
    document = index_document(db, database, ["alpha"], server=server, user=BOB)
    with db.as_user(ADA) as connection:
        assert documents.request_ingest_job(connection, document) is None


def test_a_user_cannot_set_the_generation_or_status_of_a_document(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """SEC-2"""
    index_document(db, database, ["alpha"], server=server)
    with pytest.raises(errors.NotAllowedError), db.as_user(ADA) as connection:
        connection.execute("update rag.documents set generation = 1")
    with pytest.raises(errors.NotAllowedError), db.as_user(ADA) as connection:
        connection.execute("update rag.documents set status = 'failed'")


def test_a_chunk_the_model_refused_is_still_found_by_its_words(
    db: Database, database: str, store: JobStore, server: models.EmbeddingServer
) -> None:
    """ING-8"""
    store_object(database, ADA, add_document(db))
    job = claim(store)
    batch = make_batch(["alpha", "beta"], server)
    store.save_batch(job, replace(batch, vectors=[None, batch.vectors[1]]), 60)
    store.finish_ingest_job(job, FACTS)
    hits = search.hybrid_search(db, ADA, make_query("alpha")).hits
    assert [(h.text, h.similarity) for h in hits] == [("alpha", None)]
