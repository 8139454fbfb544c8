"""A crash, a time limit or a lost lease does not change the ingested document."""

from __future__ import annotations

import random
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from functions.adapters.laptop.embedder import LocalEmbedder
from functions.adapters.postgres import documents
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.core import errors, models, ports
from functions.core.extraction.documents import open_document
from functions.core.extraction.pdf.reader import PdfPages
from functions.core.ingestion import text_figures
from functions.core.ingestion.chunking import chunker
from functions.core.ingestion.jobs import Outcome
from functions.core.ingestion.worker import Worker
from functions.core.retrieval.retriever import Ranking
from functions.core.settings import Settings
from functions.runtime.policy import LOCAL_SERVER
from tests.support import library
from tests.support.damaged_documents import DAMAGES, PROSE, make_lines_pdf
from tests.support.documents import make_pdf
from tests.support.library import ADA

PAGES = 20


class Folder:
    """An object store that gives one file for every path."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def of(cls, file: Path) -> ports.ObjectStore:
        """The store as a worker takes it; workers call no other method."""
        return cast(ports.ObjectStore, cls(file))

    def download(self, path: str, target: Path) -> None:
        shutil.copy(self.file, target)


class Crash(BaseException):
    """No `except Exception` catches it, so it ends the worker like a kill."""


class CrashingEmbedder:
    """The local model, which raises `error` after `calls` calls."""

    def __init__(self, embedder: ports.Embedder, calls: int, error: BaseException) -> None:
        self._embedder, self._left, self._error = embedder, calls, error
        self.dimensions, self.max_input_tokens = embedder.dimensions, embedder.max_input_tokens
        self.count_tokens = embedder.count_tokens

    def embed(self, texts: Sequence[str]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise self._error
        return self._embedder.embed(texts)


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture
def db(database: str) -> Iterator[Database]:
    opened = Database(database)
    yield opened
    opened.close()


@pytest.fixture
def worker(db: Database, embedder: LocalEmbedder, tmp_path: Path) -> Worker:
    """A worker on a document of twenty pages."""
    pages = [
        [f"Page {n} tells of the city of Name{n}.", f"It was founded in the year {1000 + n}."] for n in range(PAGES)
    ]
    file = make_pdf(tmp_path / "cities.pdf", *pages)
    server = stored_settings.ensure_default_server(db, LOCAL_SERVER)
    return Worker(JobStore(db), Folder.of(file), server, embedder, Settings(), lease_seconds=1)


def add_document(db: Database, dsn: str) -> str:
    document_id = library.add_document(db, file_name="cities.pdf")
    library.store_object(dsn, ADA, document_id)
    return document_id


def read_chunks(db: Database, document_id: str) -> list[dict[str, Any]]:
    with db.as_user(ADA) as connection:
        generation = documents.find(connection, document_id)["generation"]
        return connection.execute(
            "select chunk_index, page_start, start_offset, end_offset, text, search_prefix, lang, v.embedding::text"
            " from rag.chunks c join rag.chunk_vectors v on v.chunk_id = c.id where c.generation = %s order by 1",
            (generation,),
        ).fetchall()


def uninterrupted(db: Database, dsn: str, worker: Worker) -> list[dict[str, Any]]:
    document_id = add_document(db, dsn)
    assert worker.ingest_next() == Outcome(1, document_id, "done")
    return take_chunks(db, document_id)


def take_chunks(db: Database, document_id: str) -> list[dict[str, Any]]:
    """Returns the chunks of a document and deletes it, so that the same bytes are no duplicate afterwards."""
    chunks = read_chunks(db, document_id)
    with db.as_user(ADA) as connection:
        documents.delete_document(connection, document_id)
    return chunks


def work_until_done(worker: Worker) -> str:
    for _ in range(200):
        outcome = worker.ingest_next()
        if outcome is not None and not outcome.again:
            return outcome.status
    raise AssertionError("never done")


def test_a_crash_in_any_batch_does_not_change_the_result(db: Database, database: str, worker: Worker) -> None:
    """ING-10"""
    expected = uninterrupted(db, database, worker)
    for calls in range(3):
        document_id = add_document(db, database)
        crashing = CrashingEmbedder(worker.embedder, calls, Crash())
        with pytest.raises(Crash):
            replace(worker, embedder=crashing, lease_seconds=0).ingest_next()
        assert work_until_done(worker) == "done"
        assert take_chunks(db, document_id) == expected


def test_a_run_short_of_time_queues_the_job_again(db: Database, database: str, worker: Worker) -> None:
    """ING-10"""
    expected = uninterrupted(db, database, worker)
    document_id = add_document(db, database)
    store = library.HurriedStore(db)
    hurried = replace(worker, store=store, remaining_seconds=lambda: store.remaining_seconds)
    outcomes = [hurried.ingest_next() for _ in range(2)]
    assert [(o.status, o.again) for o in outcomes if o] == [("queued", True)] * 2
    assert work_until_done(worker) == "done"
    assert read_chunks(db, document_id) == expected


def test_a_run_without_progress_counts_as_an_attempt(db: Database, database: str, worker: Worker) -> None:
    """ING-10"""
    document_id = add_document(db, database)
    outcome = replace(worker, remaining_seconds=lambda: 0.0).ingest_next()
    assert outcome == Outcome(1, document_id, "queued", code="time_budget")


def test_a_rate_limited_model_costs_a_retry_and_not_the_document(db: Database, database: str, worker: Worker) -> None:
    """ING-11"""
    document_id = add_document(db, database)
    limited = CrashingEmbedder(worker.embedder, 1, errors.ModelRateLimitedError(retry_after=0.4))
    first = replace(worker, embedder=limited).ingest_next()
    assert first == Outcome(1, document_id, "queued", code="model_rate_limited")
    assert work_until_done(worker) == "done"


def break_pages(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, *numbers: int) -> None:
    """Makes the function `where.name`, which takes a page or its number, raise an IndexError on these pages."""
    works = getattr(where, name)

    def breaks(*args: Any, **kwargs: Any) -> Any:
        if getattr(args[-1], "number", args[-1]) in numbers:
            raise IndexError("list index out of range")
        return works(*args, **kwargs)

    monkeypatch.setattr(where, name, breaks)


def test_pages_that_raise_an_exception_are_skipped_and_named(
    db: Database, database: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ING-11, LIB-10: on page 2 when it is read, on page 11 when it is chunked."""
    break_pages(monkeypatch, PdfPages, "_read", 2)
    break_pages(monkeypatch, chunker, "chunk_page", 11)
    document_id = add_document(db, database)
    assert replace(worker, open_document=open_document).ingest_next() == Outcome(1, document_id, "done")
    assert {c["page_start"] for c in read_chunks(db, document_id)} == {*range(1, PAGES + 1)} - {2, 11}
    with db.as_user(ADA) as connection:
        warnings = documents.find(connection, document_id)["health"]["warnings"]
    assert warnings == {"reading_failed": [2], "chunking_failed": [11]}


@pytest.mark.parametrize(("where", "name"), [(PdfPages, "_read"), (chunker, "chunk_page")], ids=["read", "chunked"])
def test_a_document_fails_when_no_page_can_be_read_or_chunked(
    db: Database, database: str, worker: Worker, monkeypatch: pytest.MonkeyPatch, where: Any, name: str
) -> None:
    """ING-11"""
    break_pages(monkeypatch, where, name, *range(1, PAGES + 1))
    document_id = add_document(db, database)
    assert work_until_given_up(db, replace(worker, open_document=open_document)) == ["queued", "dead"]
    with db.as_user(ADA) as connection:
        found = documents.find(connection, document_id)
    assert (found["status"], found["error_code"], found["error"]) == (
        "failed",
        "processing_failed",
        errors.ProcessingFailedError().message,
    )


def work_until_given_up(db: Database, worker: Worker) -> list[str]:
    """The outcomes of all attempts, without the waits between them."""
    statuses: list[str] = []
    while (outcome := worker.ingest_next()) is not None:
        statuses.append(outcome.status)
        with db.as_worker() as connection:
            connection.execute("update rag.ingest_jobs set run_after = now()")
    return statuses


@pytest.mark.parametrize(
    ("error", "calls", "attempts"),
    [
        (IndexError("list index out of range"), 0, 2),
        (IndexError("list index out of range"), 1, 2),
        (errors.ModelUnavailableError(), 0, 5),
        (OSError("No space left on device"), 0, 5),
    ],
    ids=["a fault", "a fault after progress", "the model server", "the disk"],
)
def test_a_fault_of_ours_is_tried_again_only_once(
    db: Database, database: str, worker: Worker, error: Exception, calls: int, attempts: int
) -> None:
    """ING-11"""
    add_document(db, database)
    failing = [CrashingEmbedder(worker.embedder, calls, error), CrashingEmbedder(worker.embedder, 0, error)]
    first = replace(worker, embedder=failing[0]).ingest_next()
    assert first is not None
    with db.as_worker() as connection:
        connection.execute("update rag.ingest_jobs set run_after = now()")
    statuses = [first.status, *work_until_given_up(db, replace(worker, embedder=failing[1]))]
    assert statuses == ["queued"] * (attempts - 1) + ["dead"]


def test_a_measurement_that_fails_leaves_the_document_indexed(db: Database, database: str, worker: Worker) -> None:
    """ING-10"""
    document_id = add_document(db, database)
    failing = Mock(side_effect=RuntimeError("no search"))
    assert replace(worker, search_as=failing).ingest_next() == Outcome(1, document_id, "done")
    failing.assert_called_once_with(ADA.id)


def test_deleting_the_document_stops_its_worker(db: Database, database: str, worker: Worker) -> None:
    """LIB-8"""
    document_id = add_document(db, database)

    class Deleting(CrashingEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            with db.as_user(ADA) as connection:
                if connection.execute("select from rag.documents").fetchone() is not None:
                    documents.delete_document(connection, document_id)
            return super().embed(texts)

    outcome = replace(worker, embedder=Deleting(worker.embedder, 99, Crash())).ingest_next()
    assert outcome == Outcome(1, document_id, "superseded")
    assert worker.ingest_next() is None


def test_the_result_holds_the_whole_document(db: Database, database: str, worker: Worker) -> None:
    """ING-1, ING-7"""
    chunks = uninterrupted(db, database, worker)
    assert [f"Name{n}" in " ".join(c["text"] for c in chunks if c["page_start"] == n + 1) for n in range(PAGES)] == [
        True
    ] * PAGES
    assert [c["chunk_index"] for c in chunks] == list(range(len(chunks)))


def test_a_page_without_text_is_named_in_the_health_report(
    db: Database, database: str, worker: Worker, tmp_path: Path
) -> None:
    """LIB-10"""
    file = make_pdf(tmp_path / "gap.pdf", "The first page has words.", "", "The third page has words.")
    document_id = add_document(db, database)
    assert replace(worker, objects=Folder.of(file)).ingest_next() == Outcome(1, document_id, "done")
    with db.as_user(ADA) as connection:
        health = documents.find(connection, document_id)["health"]
    assert health == {
        "pages_without_text": [2],
        "ocr": None,
        "tables": 0,
        "hidden_text": [],
        "warnings": {"no_text": [2]},
        "languages": {"en": 2},
        "chunks": 2,
        "chunks_not_embedded": 0,
        "running_lines": [],
        "chunking_strategy": "fixed",
        "text": {
            "words": 10,
            "unlikely_words": None,
            "broken_sentences": None,
            "split_words": None,
            "garbled_pages": [],
        },
        "self_retrieval": None,
        "quality": {"rating": "check", "reasons": {"pages_without_text": "check"}},
    }


def read_quality(db: Database, document_id: str) -> dict[str, Any]:
    with db.as_user(ADA) as connection:
        quality: dict[str, Any] = documents.find(connection, document_id)["health"]["quality"]
    return quality


@pytest.mark.parametrize(
    ("damage", "quality"),
    [
        (None, {"rating": "good", "reasons": {}}),
        (
            "glyphs in any order",
            {"rating": "bad", "reasons": {"unlikely_words": "bad", "garbled_pages": "bad"}},
        ),
    ],
    ids=["clean", "damaged"],
)
def test_the_health_report_rates_how_well_the_text_was_read(
    db: Database, database: str, worker: Worker, tmp_path: Path, damage: str | None, quality: dict[str, Any]
) -> None:
    """LIB-10"""
    lines = textwrap.wrap(" ".join(PROSE["en"].split()), 72)
    file = make_lines_pdf(tmp_path / "a.pdf", DAMAGES[damage](lines, random.Random(1)) if damage else lines)
    document_id = add_document(db, database)
    assert replace(worker, objects=Folder.of(file)).ingest_next() == Outcome(1, document_id, "done")
    assert read_quality(db, document_id) == quality


def test_sentences_that_no_search_finds_change_the_quality(db: Database, database: str, worker: Worker) -> None:
    """LIB-10"""
    document_id = add_document(db, database)
    blind = replace(worker, search_as=lambda _: lambda _: Ranking(()))
    assert blind.ingest_next() == Outcome(1, document_id, "done")
    assert read_quality(db, document_id) == {"rating": "check", "reasons": {"self_retrieval": "check"}}


def test_a_text_that_cannot_be_measured_is_indexed_without_figures(
    db: Database, database: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIB-10"""
    monkeypatch.setattr(text_figures, "measure", Mock(side_effect=IndexError))
    document_id = add_document(db, database)
    assert worker.ingest_next() == Outcome(1, document_id, "done")
    assert read_quality(db, document_id) == {"rating": "good", "reasons": {}}


def test_a_document_records_its_embedding_model(db: Database, database: str, worker: Worker) -> None:
    """SET-2"""
    document_id = add_document(db, database)
    worker.ingest_next()
    with db.as_user(ADA) as connection:
        row = documents.find(connection, document_id)
    assert (
        str(row["embedding_server_id"]),
        row["embedding_model"],
        row["embedding_dim"],
        row["chunking_strategy"],
    ) == (
        worker.server.id,
        worker.server.model,
        384,
        "fixed",
    )
    assert isinstance(worker.server, models.EmbeddingServer)
