"""A library moves from one embedding server to another while it is searched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres import search, settings
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.embedding import moves
from functions.adapters.postgres.embedding.moves import Move
from functions.adapters.postgres.jobs import JobStore
from functions.core import errors, models
from functions.core.ingestion import jobs
from functions.core.retrieval.retriever import QueryVector
from tests.support import library
from tests.support.library import ADA, BOB, add_note, index_document, make_batch, make_query

OTHER = models.EmbeddingServer("", "other", "openai", "other", 4, 256, (), passage_prefix="passage: ")
Index = Callable[..., str]


@pytest.fixture
def store(db: Database) -> JobStore:
    return JobStore(db)


@pytest.fixture
def index(db: Database, database: str, server: models.EmbeddingServer) -> Index:
    """Indexes a document of one passage with the first server."""

    def index_one(text: str = "alpha", user: models.User = ADA, **fields: Any) -> str:
        return index_document(db, database, [text], server=server, user=user, **fields)

    return index_one


def adopt(db: Database, server: models.EmbeddingServer = OTHER) -> models.EmbeddingServer:
    """Adopts a server; returns its row."""
    moves.adopt_embedding_server(db, server, ADA)
    with db.as_worker() as connection:
        return settings.describe_servers(connection)[0].server


def proceed(db: Database, pause: float = 0.0) -> int:
    return moves.continue_reindexing(db, 100, pause)


def names(db: Database, pause: float = 0.0) -> list[str]:
    with db.as_worker() as connection:
        return [server.name for server in settings.list_servers(connection, pause)]


def describe(db: Database) -> Move | None:
    with db.as_worker() as connection:
        return moves.describe_reindexing(connection)


def claim(store: JobStore) -> jobs.Job:
    job = store.claim_ingest_job(None, 60)
    assert job is not None
    return job


def finish(store: JobStore, job: jobs.Job, server: models.EmbeddingServer, text: str = "alpha") -> None:
    store.save_batch(job, make_batch([text], server), 60)
    store.finish_ingest_job(job, {"page_count": 1, "lang": "en", "ingestion_log": {}, "embedding_server_id": server.id})


def index_note(db: Database, server: models.EmbeddingServer, user: models.User = ADA) -> str:
    note, store = add_note(db, user), JobStore(db)
    with db.as_user(user) as connection:
        connection.execute("update rag.notes set content = 'alpha' where id = %s", (note,))
    finish(store, claim(store), server)
    return note


def found(db: Database, *servers: models.EmbeddingServer) -> list[tuple[str, bool]]:
    """The hits of ADA's question, embedded for each server, and whether their vectors were compared."""
    vectors = [QueryVector(server.id, (1.0, 0.0, 0.0, 0.0), 1.0) for server in servers]
    hits = search.hybrid_search(db, ADA, make_query("alpha", vectors)).hits
    return sorted((hit.text, hit.vector_rank is not None) for hit in hits)


def test_every_user_s_documents_and_notes_move_and_the_replaced_server_retires(
    db: Database, store: JobStore, server: models.EmbeddingServer, index: Index
) -> None:
    """SET-6, LIB-7"""
    sources = {index(), index(user=BOB), index_note(db, server), index_note(db, server, BOB)}
    other = adopt(db)
    assert (proceed(db), proceed(db), describe(db)) == (4, 0, Move(done=0, remaining=4, failed=0))
    moved = set()
    for _ in range(4):
        moved.add((job := claim(store)).source_id)
        finish(store, job, other)
    assert (moved, names(db)) == (sources, ["other", "test"])
    assert (proceed(db), names(db), describe(db)) == (0, ["other"], None)


def test_a_source_is_found_by_its_old_vectors_until_it_has_new_ones(
    db: Database, store: JobStore, server: models.EmbeddingServer, index: Index
) -> None:
    """RET-6, LIB-7"""
    index("alpha one")
    other = adopt(db)
    proceed(db)
    job = claim(store)
    assert found(db, other, server) == [("alpha one", True)]
    store.save_batch(job, make_batch(["alpha two"], other), 60)
    assert found(db, other, server) == [("alpha one", True)]
    store.finish_ingest_job(job, {"page_count": 1, "ingestion_log": {}, "embedding_server_id": other.id})
    assert found(db, other, server) == [("alpha two", True)]


def test_what_is_in_the_trash_moves_and_older_versions_do_not(
    db: Database, server: models.EmbeddingServer, index: Index
) -> None:
    """LIB-2, LIB-5"""
    index("alpha old", file_name="a.pdf")
    current = index("alpha new", file_name="a.pdf")
    note = index_note(db, server)
    attached = index("alpha attached", note_id=note)
    with db.as_user(ADA) as connection:
        connection.execute("update rag.notes set trashed_at = now() where id = %s", (note,))
    adopt(db)
    assert proceed(db) == 3
    with db.as_worker() as connection:
        rows = connection.execute(
            "select coalesce(document_id, note_id)::text as id from rag.ingest_jobs where background"
        )
        assert {row["id"] for row in rows.fetchall()} == {current, note, attached}


def test_an_upload_goes_before_what_moves(db: Database, database: str, store: JobStore, index: Index) -> None:
    """ING-10"""
    index()
    adopt(db)
    proceed(db)
    upload = library.add_document(db)
    library.store_object(database, ADA, upload)
    with db.as_worker() as connection:
        row = connection.execute("select id from rag.ingest_jobs where background").fetchone()
    assert row is not None
    job = store.claim_ingest_job(row["id"], 60)  # a message that names the job in the background
    assert job is not None
    assert job.source_id == upload
    assert claim(store).id == row["id"]


def test_a_request_of_its_owner_takes_a_source_out_of_the_background(
    db: Database, store: JobStore, server: models.EmbeddingServer, index: Index
) -> None:
    """SET-6, LIB-7"""
    index("alpha first")
    wanted, note = index("alpha second"), index_note(db, server)
    adopt(db)
    proceed(db)
    with db.as_user(models.User(ADA.id, False, {"sub": ADA.id})) as connection:
        connection.execute("select rag.request_ingest_job(%s), rag.request_note_job(%s)", (wanted, note))
    assert {claim(store).source_id, claim(store).source_id} == {wanted, note}


def test_until_every_process_knows_the_new_server_the_old_one_indexes_and_nothing_moves(
    db: Database, store: JobStore, index: Index
) -> None:
    index()
    adopt(db)
    assert (proceed(db, pause=60), store.claim_ingest_job(None, 60)) == (1, None)
    assert (names(db, pause=60), names(db, pause=0)) == (["test", "other"], ["other", "test"])


def test_a_server_stays_active_for_a_while_even_if_it_has_indexed_nothing(
    db: Database, server: models.EmbeddingServer
) -> None:
    adopt(db)
    assert (proceed(db, pause=60), names(db)) == (0, ["other", "test"])
    assert (proceed(db), names(db)) == (0, ["other"])


def test_what_fails_keeps_its_old_vectors_until_the_move_is_asked_for_again(
    db: Database, store: JobStore, server: models.EmbeddingServer, index: Index
) -> None:
    """ING-11"""
    index("alpha one")
    other = adopt(db)
    proceed(db)
    store.fail_ingest_job(claim(store), errors.ModelRejectedError(), 5)
    assert (proceed(db), describe(db)) == (0, Move(done=0, remaining=1, failed=1))
    assert (found(db, other, server), names(db)) == ([("alpha one", True)], ["other", "test"])
    adopt(db)
    assert (proceed(db), describe(db)) == (1, Move(done=0, remaining=1, failed=0))


def test_a_document_without_its_file_is_counted_as_failed(
    db: Database, database: str, index: Index, connection_of_owner: Callable[[str], None]
) -> None:
    index()
    connection_of_owner("delete from storage.objects")
    adopt(db)
    assert (proceed(db), describe(db)) == (0, Move(done=0, remaining=1, failed=1))


@pytest.fixture
def connection_of_owner(database: str) -> Callable[[str], None]:
    """Runs a statement as the owner of the tables."""

    def run(statement: str) -> None:
        with psycopg.connect(database) as connection:
            connection.execute(statement.encode())

    return run


def test_a_job_that_another_server_began_starts_over(
    db: Database, database: str, store: JobStore, server: models.EmbeddingServer
) -> None:
    """All vectors of a document come from one server, also if the default changed while it was read."""
    document = library.add_document(db)
    library.store_object(database, ADA, document)
    store.save_batch(claim(store), make_batch(["alpha one"], server), 0)
    other, job = adopt(db), claim(store)
    assert (job.checkpoint.pages_done, store.restart_ingest_job(job, server.id)) == (1, job)
    restarted = store.restart_ingest_job(job, other.id)
    assert restarted == replace(job, generation=restarted.generation, checkpoint=jobs.Checkpoint())
    finish(store, restarted, other, "alpha two")
    assert found(db, other) == [("alpha two", True)]
    with db.as_worker() as connection:
        assert connection.execute("select distinct server_id::text from rag.chunk_vectors").fetchall() == [
            {"server_id": other.id}
        ]


def test_a_worker_that_finishes_with_a_retired_server_wakes_it_until_its_document_has_moved(
    db: Database, database: str, store: JobStore, server: models.EmbeddingServer
) -> None:
    document = library.add_document(db)
    library.store_object(database, ADA, document)
    slow = claim(store)
    other = adopt(db)
    assert (proceed(db), names(db)) == (0, ["other"])
    finish(store, slow, server)
    assert (names(db), proceed(db)) == (["other", "test"], 1)
    finish(store, claim(store), other)
    assert (proceed(db), names(db), found(db, other)) == (0, ["other"], [("alpha", True)])


def test_the_way_back_moves_only_what_has_moved(
    db: Database, store: JobStore, server: models.EmbeddingServer, index: Index
) -> None:
    index("alpha one")
    index("alpha two")
    other = adopt(db)
    proceed(db)
    finish(store, claim(store), other)
    assert adopt(db, server) == server
    assert describe(db) == Move(done=1, remaining=1, failed=0)


def test_a_server_with_the_same_vectors_is_brought_up_to_date_and_nothing_moves(
    db: Database, server: models.EmbeddingServer, index: Index
) -> None:
    """SET-2"""
    index()
    changed = replace(server, base_url="http://elsewhere/v1", query_prefix="query: ", languages=("en", "fr"))
    assert (adopt(db, changed), proceed(db), names(db)) == (changed, 0, ["test"])


def test_a_server_with_other_vectors_under_the_same_name_gets_another_name(
    db: Database, server: models.EmbeddingServer
) -> None:
    assert adopt(db, replace(server, passage_prefix="passage: ")).name == "test (2)"


def test_the_audit_records_who_adopted_which_server(db: Database, server: models.EmbeddingServer) -> None:
    """SET-4"""
    adopt(db)
    with db.as_worker() as connection:
        rows = connection.execute(
            "select key, old_value, new_value, changed_by::text from rag.settings_audit"
        ).fetchall()
    assert rows == [{"key": "embedding_server", "old_value": "test", "new_value": "other", "changed_by": ADA.id}]


def test_a_locked_source_is_left_to_the_next_call(db: Database, index: Index) -> None:
    """An upload that holds a document never waits for a move, nor fails because of it."""
    document = index()
    adopt(db)
    with db.as_worker() as holder:
        holder.execute("select from rag.documents where id = %s for update", (document,))
        assert proceed(db) == 0
    assert proceed(db) == 1
