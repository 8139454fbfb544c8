"""Measures how fast documents are ingested: `python -m tests.bench.bench_ingest [--long]`.

Loading is compared with a bare binary COPY of the same, already computed rows into the same tables with the same
indexes; both take turns in one run. `--long` adds a thousand dense pages in invocations of one minute each, and takes
minutes. The pages come from the question sets in IBID_EVAL_DATA; without these, they are generated. Prints a table and,
as the last line, a JSON object.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from functions.adapters.postgres.ingestion import batches
from functions.core.ingestion import jobs
from functions.core.ingestion.worker import Worker
from functions.local import terminal
from functions.local.database import embedded_postgres, migrate
from functions.local.evaluation import question_sets
from tests.acceptance.support import prose
from tests.acceptance.support.workplace import Workplace, make_user, open_workplace
from tests.acceptance.test_time_limit import ingest_alone
from tests.bench.report import at_most, figure, print_figures

ROUNDS = 3
PAGES, LONG_PAGES = 100, 1000
LOAD_RATIO_GOAL = 0.5
PEAK_RATIO_GOAL = 1.3
LIMIT_SECONDS = 60.0
TABLES = ("pages", "chunks", "chunk_vectors", "chunk_terms", "generation_terms")

Seconds = dict[str, float]


def make_pdf(path: Path, pages: int) -> Path:
    """Writes a PDF of `pages` pages, repeating the first ones of the question sets; without these, generates them."""
    import pypdfium2

    sources = sorted(question_sets.data_root().glob("pages_*/pdf/*.pdf"))
    if not sources:
        return prose.make_book(path, pages, sentences=30)
    target = pypdfium2.PdfDocument.new()
    while len(target) < pages:
        for source in sources:
            with pypdfium2.PdfDocument(source) as document:
                if count := min(len(document), pages - len(target)):
                    target.import_pages(document, list(range(count)))
    target.save(path)
    target.close()
    return path


@contextmanager
def open_place(folder: Path) -> Iterator[Workplace]:
    """Opens a database with the settings of a laptop, and a local storage."""
    with embedded_postgres.start(folder / "postgres") as server:
        migrate.migrate(server.dsn)
        with open_workplace(server.dsn, folder / "home") as place:
            yield place


class Clock:
    """Adds up the seconds that named parts of a run take."""

    def __init__(self) -> None:
        self.seconds: Seconds = defaultdict(float)

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self.seconds[name] += time.perf_counter() - start

        return run


class TimedStore:
    """A job store that counts every call as database time, and keeps the batches that were saved."""

    def __init__(self, store: jobs.JobStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self.saved: list[tuple[jobs.Job, jobs.Batch]] = []
        self.facts: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return self._clock.timed("database", getattr(self._store, name))

    def save_batch(self, job: jobs.Job, batch: jobs.Batch, lease_seconds: int) -> None:
        self.saved.append((job, batch))
        self.__getattr__("save_batch")(job, batch, lease_seconds)

    def finish_ingest_job(self, job: jobs.Job, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.__getattr__("finish_ingest_job")(job, facts)


class TimedWorker(Worker):
    """A worker whose steps are timed by `clock`; the rest of the whole time is reading the file."""

    clock: Clock

    def _chunk(self, *args: Any) -> Any:
        return TimedWorker.clock.timed("chunking", super()._chunk)(*args)

    def _embed(self, *args: Any) -> Any:
        # Heartbeats between two answers of the model count twice, but take only microseconds.
        return TimedWorker.clock.timed("embedding", super()._embed)(*args)

    def _measure_self_retrieval(self, *args: Any) -> Any:
        return TimedWorker.clock.timed("self-retrieval", super()._measure_self_retrieval)(*args)


def ingest(place: Workplace, file: Path) -> tuple[TimedStore, Seconds]:
    """Ingests one file with a warm worker; returns the store with the saved batches, and the seconds by step."""
    worker = place.services.make_worker()
    worker.embedder.embed(["warm"])
    terminal.add_file(place.services, make_user(), file)
    clock = TimedWorker.clock = Clock()
    store = TimedStore(worker.store, clock)
    fields = {name: getattr(worker, name) for name in Worker.__dataclass_fields__} | {"store": store}
    outcome = clock.timed("whole", TimedWorker(**fields).ingest_next)()
    assert outcome is not None
    assert outcome.status == "done", outcome
    return store, clock.seconds


def list_step_figures(seconds: Seconds) -> list[dict[str, Any]]:
    whole = seconds.pop("whole")
    seconds = {"reading": whole - sum(seconds.values()), **seconds}
    rows = [figure(f"pages/s, {PAGES} pages end to end", PAGES / whole, 1.0)]
    return rows + [figure(f"  of it {name}, s", value, whole) for name, value in seconds.items()]


# Loading


def load(place: Workplace, saved: Sequence[tuple[jobs.Job, jobs.Batch]], facts: dict[str, Any]) -> Seconds:
    """Saves the batches of a document again for a new document, until that becomes visible."""
    user = make_user()
    with place.services.database.as_worker() as connection:
        connection.execute(
            "insert into rag.documents (id, owner_id, file_name, file_type, size_bytes, object_path)"
            " select gen_random_uuid(), %s, 'load.pdf', 'pdf', 1, gen_random_uuid()::text returning id",
            (user.id,),
        )
        row = connection.execute(
            "select rag.enqueue_stored_object(object_path, '1', 1) as id from rag.documents where owner_id = %s",
            (user.id,),
        ).fetchone()
    assert row is not None
    store = place.services.make_worker().store
    job = store.claim_ingest_job(row["id"], 600)
    assert job is not None
    clock = Clock()
    with timed_copies(clock):
        for _, batch in saved:
            clock.timed("save_batch", store.save_batch)(job, batch, 600)
        clock.timed("finish", store.finish_ingest_job)(job, facts)
    return clock.seconds


@contextmanager
def timed_copies(clock: Clock) -> Iterator[None]:
    names = ("_copy_pages", "_copy_chunks", "_copy_vectors")
    originals = {name: getattr(batches, name) for name in names}
    for name, original in originals.items():
        setattr(batches, name, clock.timed("copy", original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(batches, name, original)


def dump_rows(connection: psycopg.Connection, generation: int) -> dict[str, bytes]:
    rows = {}
    for table in TABLES:
        query = f"copy (select * from rag.{table} where generation = {generation}) to stdout (format binary)"
        with connection.cursor().copy(query) as copy:
            rows[table] = b"".join(bytes(piece) for piece in copy)
    return rows


def copy_rows(connection: psycopg.Connection, rows: dict[str, bytes]) -> float:
    """Measures a bare COPY in one transaction, as the owner of the tables, in seconds."""
    start = time.perf_counter()
    with connection.transaction():
        for table, content in rows.items():
            with connection.cursor().copy(f"copy rag.{table} from stdin (format binary)") as copy:
                copy.write(content)
    return time.perf_counter() - start


def delete_rows(connection: psycopg.Connection) -> None:
    connection.execute(f"truncate {', '.join(f'rag.{table}' for table in TABLES)}")
    connection.execute("truncate rag.generations cascade")
    connection.execute("checkpoint")


def list_loading_figures(place: Workplace, store: TimedStore) -> list[dict[str, Any]]:
    job, _ = store.saved[0]
    chunk_count = sum(len(batch.chunks) for _, batch in store.saved)
    ours, bare = [], []
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        connection.execute("set row_security = off")
        rows = dump_rows(connection, job.generation)
        for _ in range(ROUNDS):
            delete_rows(connection)
            bare.append(copy_rows(connection, rows))
            delete_rows(connection)
            ours.append(load(place, store.saved, store.facts))
    best = min(ours, key=lambda seconds: seconds["save_batch"] + seconds["finish"])
    whole, copied = best["save_batch"] + best["finish"], min(bare)
    return [
        figure("chunks/s loaded, ready to be searched", chunk_count / whole, chunk_count / copied, LOAD_RATIO_GOAL),
        figure("  of it COPY by the worker, s", best["copy"], whole),
        figure("  of it index_chunks and checkpoints, s", best["save_batch"] - best["copy"], whole),
        figure("  of it the flip, s", best["finish"], whole),
        figure("bare COPY, median s", statistics.median(bare), copied),
    ]


# A thousand pages in invocations of one minute


def list_long_figures(place: Workplace, folder: Path) -> list[dict[str, Any]]:
    files = {pages: make_pdf(folder / f"{pages}.pdf", pages) for pages in (PAGES, LONG_PAGES)}
    peaks = {pages: ingest_alone(place, file, make_user()) / 1e6 for pages, file in files.items()}
    terminal.add_file(place.services, make_user(), files[LONG_PAGES])
    seconds = []
    while True:
        start = time.monotonic()
        outcome = place.services.make_worker(LIMIT_SECONDS).ingest_next()
        seconds.append(time.monotonic() - start)
        assert outcome is not None
        if not outcome.again:
            break
    assert outcome.status == "done", outcome
    return [
        at_most(f"peak MB, {LONG_PAGES} pages and {PAGES}", peaks[LONG_PAGES], peaks[PAGES], PEAK_RATIO_GOAL),
        figure(f"invocations for {LONG_PAGES} pages", len(seconds), 1),
        at_most("longest invocation, s", max(seconds), LIMIT_SECONDS),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name:
        folder = Path(name).resolve()
        with open_place(folder) as place:
            store, seconds = ingest(place, make_pdf(folder / "book.pdf", PAGES))
            figures = list_step_figures(seconds) + list_loading_figures(place, store)
            if "--long" in sys.argv[1:]:
                figures += list_long_figures(place, folder)
    print_figures("ingest", figures)


if __name__ == "__main__":
    main()
