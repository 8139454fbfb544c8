"""Workers and databases are killed at random moments; the result equals that of an uninterrupted run, byte for byte."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from functions import sweeper
from functions.adapters.postgres.jobs import JobStore
from functions.core import errors, models, ports
from functions.local.database import embedded_postgres, migrate
from functions.local.server import worker as local_worker
from tests.acceptance.support import prose, workplace
from tests.acceptance.support.workplace import Workplace, open_workplace, wait_for
from tests.support import database as database_servers

KILLS = 50
SUPERVISORS = 2
LONGEST_START, LONGEST_WORK = 1.0, 1.6
PATIENCE = 5.0
"""How many times as long as an uninterrupted run the work that remains may take: waits before retries come to it."""
SENTENCES = 3
"""On a page: the number of pages decides how many batches a document takes, and their text how long each takes."""
NOTE = ("A note on valleys", prose.write_markdown("valleys", 6))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents in three formats that take one to eight batches."""
    folder = tmp_path_factory.mktemp("files")
    for pages in (3, 17, 30, 64):
        prose.make_book(folder / f"book of {pages}.pdf", pages, SENTENCES)
    prose.make_report(folder / "report.docx", 12)
    (folder / "guide.md").write_text(prose.write_markdown("guide", 20), encoding="utf-8")
    return folder


Contents = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Uninterrupted:
    """What an uninterrupted worker stores for the files, and the seconds that it takes on this machine."""

    contents: Contents
    seconds: float

    @property
    def longest_wait(self) -> float:
        return 60 + PATIENCE * self.seconds


@pytest.fixture(scope="module")
def uninterrupted(
    clusters: database_servers.Clusters, postgres_major: int, files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Uninterrupted]:
    """An uninterrupted run, in its own database."""
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    with open_workplace(dsn, tmp_path_factory.mktemp("uninterrupted")) as place:
        user = add_everything(place, files)
        began = time.monotonic()
        place.run_due_jobs()
        seconds = time.monotonic() - began
        assert set(place.statuses(user).values()) == {"indexed"}
        yield Uninterrupted(place.contents(user), seconds)
    cluster.drop(dsn)


@pytest.fixture
def place(database: str, tmp_path: Path) -> Iterator[Workplace]:
    with open_workplace(database, tmp_path / "home") as opened:
        yield opened


def add_everything(place: Workplace, files: Path) -> models.User:
    user = workplace.make_user()
    place.add_files(user, files)
    place.add_note(user, *NOTE)
    return user


class Supervisor:
    """Starts a worker, kills it at a random moment, and starts the next one."""

    def __init__(self, place: Workplace, user: models.User, seed: int) -> None:
        self._place, self._user, self._random = place, user, random.Random(seed)
        self.killed_at_work = 0

    def run(self, times: int) -> None:
        for _ in range(times):
            if self._place.is_idle():
                self._place.reindex(self._user)
            process = self._place.start_worker()
            if self._random.random() < 0.2:
                time.sleep(self._random.uniform(0.05, LONGEST_START))
            else:  # kill early more often than late
                wait_for(partial(self._is_at_work, process.pid), 10)
                time.sleep(LONGEST_WORK * self._random.random() ** 2)
            self.killed_at_work += self._is_at_work(process.pid)
            process.kill()
            process.wait()

    def _is_at_work(self, pid: int) -> bool:
        return self._place.count(f"status = 'running' and holder like '%:{pid}'") > 0


def test_fifty_kills_at_random_moments_do_not_change_the_result(
    place: Workplace, files: Path, uninterrupted: Uninterrupted
) -> None:
    """ING-7, ING-10, LIB-2"""
    place.set(
        "max_attempts", 20
    )  # a dead worker uses up an attempt, and here hardly any lives long enough to save a batch
    user = add_everything(place, files)
    keepers = [Supervisor(place, user, seed) for seed in range(SUPERVISORS)]
    threads = [threading.Thread(target=keeper.run, args=(KILLS // SUPERVISORS,)) for keeper in keepers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    worker = place.start_worker()
    try:
        assert wait_for(place.is_idle, uninterrupted.longest_wait)
    finally:
        worker.terminate()
        worker.wait(15)
    assert sum(keeper.killed_at_work for keeper in keepers) > KILLS / 2
    assert set(place.statuses(user).values()) == {"indexed"}
    assert place.contents(user) == uninterrupted.contents
    assert place.find_leftovers() == {}


# The database


def test_repeated_kills_of_the_database_cost_only_time(
    files: Path, uninterrupted: Uninterrupted, tmp_path: Path
) -> None:
    """ING-10"""
    # Not pytest's folder: root's is closed to the server's user. Only fsync is off, so commits survive a kill.
    with (
        tempfile.TemporaryDirectory(prefix="ibid-test-") as folder,
        embedded_postgres.start(Path(folder).resolve(), settings={"fsync": "off"}) as server,
    ):
        migrate.migrate(server.dsn)
        with open_workplace(server.dsn, tmp_path / "home") as place:
            user = add_everything(place, files)
            stopping = threading.Event()
            thread = threading.Thread(target=work_through_failures, args=(place, stopping))
            thread.start()
            for seconds in (0.3, 1.1, 1.7, 0.8):
                time.sleep(seconds)
                kill_server(server)
            try:
                assert wait_for(lambda: is_idle_again(place), uninterrupted.longest_wait)
            finally:
                stopping.set()
                thread.join()
            assert set(place.statuses(user).values()) == {"indexed"}
            assert place.contents(user) == uninterrupted.contents
            assert place.find_leftovers() == {}


def work_through_failures(place: Workplace, stopping: threading.Event) -> None:
    """The loop of a worker process, with short leases."""
    while not stopping.is_set():
        with suppress(errors.IbidError):
            replace(place.services.make_worker(), lease_seconds=1).ingest_next()
        stopping.wait(0.05)


def kill_server(server: embedded_postgres.Server) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert wait_for(lambda: server.pid is None, 10)
    server.revive()


def is_idle_again(place: Workplace) -> bool:
    with suppress(errors.DatabaseUnavailableError):
        return place.is_idle()
    return False


# A worker that was presumed dead


class Interrupted:
    """An embedder that calls `meanwhile` before its second batch."""

    def __init__(self, embedder: ports.Embedder, meanwhile: Callable[[], object]) -> None:
        self._embedder, self._meanwhile, self._calls = embedder, meanwhile, 0
        self.dimensions, self.max_input_tokens = embedder.dimensions, embedder.max_input_tokens
        self.count_tokens = embedder.count_tokens

    def embed(self, texts: Sequence[str]) -> Any:
        self._calls += 1
        if self._calls == 2:
            self._meanwhile()
        return self._embedder.embed(texts)


def take_over(place: Workplace, seconds: float) -> None:
    """Expires the lease and lets another worker with this much time take the job."""
    with place.services.database.as_worker() as connection:
        connection.execute("update rag.ingest_jobs set lease_expires_at = now() where status = 'running'")
    other = place.services.make_worker(seconds)
    assert other.ingest_next() is not None


@pytest.mark.parametrize("seconds", [3600.0, 0.0], ids=["which-ends-it", "which-only-claims-it"])
def test_a_slow_worker_whose_job_was_taken_over_saves_nothing(
    place: Workplace, files: Path, uninterrupted: Uninterrupted, tmp_path: Path, seconds: float
) -> None:
    """ING-10"""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "book of 17.pdf").write_bytes((files / "book of 17.pdf").read_bytes())
    user = workplace.make_user()
    place.add_files(user, tmp_path / "one")
    worker = place.services.make_worker()
    slow = replace(worker, embedder=Interrupted(worker.embedder, lambda: take_over(place, seconds)))
    outcome = slow.ingest_next()
    assert outcome is not None
    assert outcome.status == "superseded"
    with place.services.database.as_worker() as connection:
        connection.execute("update rag.ingest_jobs set run_after = now() where status = 'queued'")
    place.run_due_jobs()
    assert place.contents(user) == {"book of 17.pdf": uninterrupted.contents["book of 17.pdf"]}
    assert place.find_leftovers() == {}


# A document that kills its worker


def test_only_the_document_that_kills_every_worker_is_given_up(place: Workplace, tmp_path: Path) -> None:
    """ING-11, OPS-2"""
    for name in ("deadly.md", "harmless.md"):
        (tmp_path / "both").mkdir(exist_ok=True)
        (tmp_path / "both" / name).write_text(prose.write_markdown(name, 1), encoding="utf-8")
    user = workplace.make_user()
    place.add_files(user, tmp_path / "both")
    with place.services.database.as_user(user) as connection:
        row = connection.execute("select id from rag.documents where file_name = 'deadly.md'").fetchone()
    assert row is not None
    for _ in range(3 * place.services.policy().settings.max_attempts):
        die_with(place, str(row["id"]))
        local_worker.release_lost_jobs(place.services)
        sweeper.sweep(place.services)
    place.run_due_jobs()
    assert place.statuses(user) == {"deadly.md": "failed: worker_lost", "harmless.md": "indexed"}
    assert place.find_leftovers() == {}


def die_with(place: Workplace, document_id: str) -> None:
    """A process claims the job of a document if it is due, and dies."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    host = place.services.holder.rpartition(":")[0]
    with psycopg.connect(place.dsn) as connection:
        row = connection.execute(
            "select max(id) from rag.ingest_jobs where document_id = %s", (document_id,)
        ).fetchone()
    assert row is not None
    JobStore(place.services.database, f"{host}:{process.pid}").claim_ingest_job(row[0], 3600)
