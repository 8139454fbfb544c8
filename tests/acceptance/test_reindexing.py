"""A library moves to another embedding model without a moment in which a question finds less."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from functions import sweeper
from functions.runtime import policy
from tests.support import database as database_servers
from tests.support.fakes.model_server import FakeModelServer
from tests.support.local_server import LocalServer, Person, run_local_server, wait_until

TOWNS = [
    "Bergen",
    "Lisbon",
    "Kyoto",
    "Havana",
    "Naples",
    "Tromso",
    "Quito",
    "Dakar",
    "Perth",
    "Riga",
    "Cork",
    "Lyon",
    "Ghent",
    "Turin",
    "Osaka",
    "Malmo",
    "Split",
    "Porto",
    "Basel",
    "Leeds",
    "Graz",
    "Brno",
    "Tunis",
    "Accra",
]
DOCUMENTS = len(TOWNS)
KILLS = int(os.environ.get("IBID_TEST_KILLS", "3"))
OLD = {"embedding_model": "old-model", "embedding_dimensions": 64}
NEW = {"embedding_model": "e5-base-v2", "embedding_dimensions": 64}

MINILM = policy.MINILM_SERVER


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer(dimensions=64) as running:
        yield running


@pytest.fixture
def place(
    cluster: database_servers.TestCluster, model: FakeModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    monkeypatch.setattr(policy, "POLICY_SECONDS", 1.5)
    dsn = cluster.clone()
    yield Place(dsn, tmp_path, model)
    cluster.drop(dsn)


class Place:
    """An installation whose servers come and go."""

    def __init__(self, dsn: str, home: Path, model: FakeModelServer) -> None:
        self._dsn, self._home, self._model = dsn, home, model

    def start_worker(self) -> subprocess.Popen[bytes]:
        """A worker process of the installation with the new model."""
        environment = {name.upper(): str(value) for name, value in NEW.items()}
        environment |= {"DATABASE_URL": self._dsn, "IBID_HOME": str(self._home), "LOG_LEVEL": "CRITICAL"}
        command = [sys.executable, "-m", "functions.local", "work", "--parent", str(os.getpid())]
        return subprocess.Popen(command, env=os.environ | environment | {"OPENAI_BASE_URL": self._model.base_url})

    @contextmanager
    def serve(self, **config: Any) -> Iterator[LocalServer]:
        with run_local_server(self._dsn, self._home, openai_base_url=self._model.base_url, **config) as server:
            yield server


def fill(person: Person) -> None:
    """Adds documents, of which each speaks of the chimney of another town, and a note."""
    texts = {town: f"The chimney of {town} is {at + 30} metres tall." for at, town in enumerate(TOWNS)}
    added = [person.add_bytes(f"{town}.txt", text.encode())["id"] for town, text in texts.items()]
    assert {person.follow(document_id)["status"] for document_id in added} == {"indexed"}
    note = person.post("/notes", title="Boiler", content="The boiler burns wood chips.")
    assert person.get(f"/notes/{note['id']}", wait=25)["status"] == "indexed"


def ask(person: Person, town: str) -> tuple[str, bool, tuple[str, ...], str]:
    """What a search for a town's chimney finds first, whether by its vector, what was missing, what a chat cites."""
    found = person.get("/search", q=f"How tall is the chimney of {town}?", debug=True)
    hit = found["hits"][0]
    answer = person.ask(f"How tall is the chimney of {town}?")
    source = answer["sources"][0]["file_name"] if answer["sources"] else answer["status"]
    return hit["file_name"], hit["arms"]["vector_rank"] is not None, tuple(found["debug"]["degraded"]), source


class Asking:
    """Asks without a pause inside the block; `bad` holds every question that did not find its chimney."""

    def __init__(self, person: Person) -> None:
        self.count, self.bad = 0, list[Any]()
        self._person = person
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Asking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            town = TOWNS[self.count % DOCUMENTS]
            try:
                found: Any = ask(self._person, town)
            except Exception as exc:  # a test must see every failure of this thread
                found = exc
            if found != (f"{town}.txt", True, (), f"{town}.txt"):
                self.bad.append(found)
            self.count += 1


def test_no_question_finds_less_while_the_library_moves(place: Place) -> None:
    """SET-6, RET-6: also those that another process answers, which reads of the new model later."""
    with place.serve(**OLD) as server, server.person("Ada") as ada:
        fill(ada)
    with ExitStack() as stack:
        here, there = (stack.enter_context(place.serve(**NEW, worker=working)) for working in (True, False))
        admin = stack.enter_context(here.person("Grace", admin=True))
        near, far = (stack.enter_context(copy_of(ada, server)) for server in (here, there))
        assert admin.http.patch("/api/rag/settings", json={"requests_per_minute": 0}).is_success
        # FastAPI prepares a route at its first request, which is not safe in two threads when warnings are errors.
        assert ask(near, "Bergen") == ask(far, "Bergen") == ("Bergen.txt", True, (), "Bergen.txt")
        with Asking(near) as one, Asking(far) as two:
            began = wait_until(lambda: one.count > 5 and two.count > 5) and (one.count, two.count)
            assert admin.post("/embedding-servers/adopt")["reindexing"]["remaining"] == DOCUMENTS + 1
            wait_until(lambda: sweep(here) and admin.get("/embedding-servers")["reindexing"] is None, seconds=90)
            ended = (one.count, two.count)
            wait_until(lambda: one.count > ended[0] + 5 and two.count > ended[1] + 5)
        assert (one.bad, two.bad) == ([], [])
        assert all(after - before > 5 for before, after in zip(began, ended, strict=True))
        wait_until(lambda: sweep(here) and [server.name for server in here.services.policy().servers] == ["e5-base-v2"])


def test_a_library_of_minilm_moves_to_e5_without_a_gap(place: Place) -> None:
    """SET-6: what a laptop finds that was installed with the first local model."""
    with place.serve(embedding_model="all-MiniLM-L6-v2") as server, server.person("Ada") as ada:
        fill(ada)
    with ExitStack() as stack:
        server = stack.enter_context(place.serve())
        ada = stack.enter_context(copy_of(ada, server))
        admin = stack.enter_context(server.person("Grace", admin=True))
        assert admin.http.patch("/api/rag/settings", json={"requests_per_minute": 0}).is_success
        assert admin.get("/embedding-servers")["stored"]["model"] == MINILM.model
        with Asking(ada) as asking:
            admin.post("/embedding-servers/adopt")
            wait_until(lambda: sweep(server) and admin.get("/embedding-servers")["reindexing"] is None, seconds=90)
            asked = asking.count
            wait_until(lambda: asking.count > asked + DOCUMENTS)
        assert (asking.bad, asked > 10) == ([], True)
        assert admin.get("/embedding-servers")["stored"]["model"] == policy.LOCAL_SERVER.model
    assert policy.LOCAL_SERVER.model != MINILM.model


def test_a_move_goes_on_after_everything_was_stopped(place: Place) -> None:
    """ING-10"""
    with place.serve(**OLD) as server, server.person("Ada") as ada:
        fill(ada)
    with place.serve(**NEW, worker=False) as server, server.person("Grace", admin=True) as admin:
        admin.post("/embedding-servers/adopt")
        assert server.services.make_worker().ingest_next() is None  # not due before every process knows
        job = wait_until(lambda: server.services.make_worker().store.claim_ingest_job(None, 0))
        assert job.kind == "reindex"  # and its worker is gone: the lease has expired
    with place.serve(**NEW) as server, copy_of(ada, server) as ada, server.person("Grace", admin=True) as admin:
        wait_until(lambda: sweep(server) and admin.get("/embedding-servers")["reindexing"] is None, seconds=60)
        assert ask(ada, "Quito") == ("Quito.txt", True, (), "Quito.txt")
        wait_until(lambda: sweep(server) and [s.name for s in server.services.policy().servers] == ["e5-base-v2"])


def test_a_move_whose_workers_are_killed_ends_complete_and_no_question_finds_less(
    place: Place, model: FakeModelServer
) -> None:
    """SET-6, ING-10: with `kill -9`, under a loop of questions; IBID_TEST_KILLS says how often."""
    with place.serve(**OLD) as server, server.person("Ada") as ada:
        fill(ada)
    with ExitStack() as stack:
        server = stack.enter_context(place.serve(**NEW, worker=False))
        ada = stack.enter_context(copy_of(ada, server))
        admin = stack.enter_context(server.person("Grace", admin=True))
        assert admin.http.patch("/api/rag/settings", json={"requests_per_minute": 0, "max_attempts": 20}).is_success
        assert ask(ada, "Bergen") == ("Bergen.txt", True, (), "Bergen.txt")
        with Asking(ada) as asking:
            admin.post("/embedding-servers/adopt")
            wait_until(lambda: sweep(server) and count_jobs(server, "queued") > 0, seconds=30)
            for _ in range(KILLS):
                kill_at_work(place, server, model)
            worker = place.start_worker()
            try:
                wait_until(lambda: sweep(server) and admin.get("/embedding-servers")["reindexing"] is None, seconds=300)
            finally:
                worker.kill()
                worker.wait()
        assert (asking.bad, asking.count > KILLS) == ([], True)
        assert {one["embedding_model"] for one in ada.get("/documents", limit=100)["items"]} == {"e5-base-v2"}


def kill_at_work(place: Place, server: LocalServer, model: FakeModelServer) -> None:
    """Starts a worker and kills it while it waits for the vectors of a document."""
    quick = model.embed

    def embed_slowly(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if any("chimney of" in text and "How tall" not in text for text in texts):
            time.sleep(0.5)
        return quick(texts)

    model.embed = embed_slowly
    worker = place.start_worker()
    try:
        wait_until(lambda: count_jobs(server, "running", f"%:{worker.pid}"), seconds=60)
        time.sleep(0.2)
    finally:
        worker.kill()
        worker.wait()
        model.embed = quick


def count_jobs(server: LocalServer, status: str, holder: str = "%") -> int:
    with server.services.database.as_worker() as connection:
        row = connection.execute(
            "select count(*) as n from rag.ingest_jobs where kind = 'reindex' and status = %s"
            " and coalesce(holder, '') like %s",
            (status, holder),
        ).fetchone()
    assert row is not None
    return int(row["n"])


def test_an_installation_with_another_model_in_its_environment_keeps_its_model(
    place: Place, model: FakeModelServer
) -> None:
    """SET-2, FIX-7"""
    with place.serve(**OLD) as server, server.person("Ada") as ada:
        fill(ada)
    model.requests.clear()
    with place.serve(**NEW) as server, copy_of(ada, server) as ada:
        assert ask(ada, "Quito") == ("Quito.txt", True, (), "Quito.txt")
        assert ada.follow(ada.add_bytes("new.txt", b"The boiler is in the cellar.")["id"])["status"] == "indexed"
        assert server.http.get("/ready").json()["status"] == "ok"
    assert {body["model"] for body in model.embeddings} == {"old-model"}


def sweep(server: LocalServer) -> bool:
    """What the worker of an installation does every minute."""
    sweeper.sweep(server.services)
    return True


@contextmanager
def copy_of(person: Person, server: LocalServer) -> Iterator[Person]:
    """The same user on another server of the installation."""
    with server.person("Ada") as other:
        other.id, other.token = person.id, person.token
        other.http.headers["Authorization"] = f"Bearer {person.token}"
        yield other
