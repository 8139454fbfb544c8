"""Documents indexed by an embedding server over HTTP: rate limits, faults, and search during an outage."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import database as database_servers
from tests.support.fakes.model_server import FakeModelServer, Reply
from tests.support.local_server import LocalServer, Person, run_local_server, wait_until

TEXT = b"The ferry to the island leaves at seven. The bakery opens at nine. Dogs travel free of charge."
DIMENSIONS = 64
SIZES = (384, 768, 1024, 1536, 3072)
LONGEST_SECONDS = 2.0
"""Ten times what a search takes on two busy cores; an index build or a rewritten table takes longer."""


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer(dimensions=DIMENSIONS) as running:
        yield running


@pytest.fixture
def remote(cluster: database_servers.TestCluster, model: FakeModelServer, tmp_path: Path) -> Iterator[LocalServer]:
    """A service whose embeddings come from the model server."""
    settings: dict[str, Any] = {
        "embedding_model": "fake-embedding",
        "embedding_dimensions": DIMENSIONS,
        "openai_base_url": model.base_url,
    }
    dsn = cluster.clone()
    with run_local_server(dsn, tmp_path, **settings) as running:
        yield running
    cluster.drop(dsn)


@pytest.fixture
def eve(remote: LocalServer) -> Iterator[Person]:
    with remote.person("Eve") as person:
        yield person


def test_documents_and_questions_are_embedded_by_the_server(eve: Person, model: FakeModelServer) -> None:
    """ING-8, FIX-7"""
    document = eve.follow(eve.add_bytes("island.txt", TEXT)["id"])
    hits = eve.get("/search", q="When does the ferry leave?", debug=True)["hits"]
    assert (document["status"], document["chunk_count"], len(hits)) == ("indexed", 1, 1)
    assert (hits[0]["arms"]["vector_rank"], hits[0]["arms"]["fts_rank"]) == (1, 1)
    health = wait_until(lambda: eve.get(f"/documents/{document['id']}")["health"]["self_retrieval"])
    assert health == {"sentences": 3, "found": 3, "score": 1.0}
    # the passage, neutral sentences in two languages and the document's own for the scale, the own again, the question
    assert len(model.embeddings) == 6


def test_a_rate_limit_delays_the_document_and_loses_nothing(eve: Person, model: FakeModelServer) -> None:
    """ING-8"""
    model.script(Reply(status=429, headers={"Retry-After": "0"}), Reply(status=429, headers={"Retry-After": "0"}))
    assert eve.follow(eve.add_bytes("island.txt", TEXT)["id"])["status"] == "indexed"


def test_a_wrong_key_fails_the_document_with_advice(eve: Person, model: FakeModelServer) -> None:
    """ING-11"""
    model.script(*[Reply(status=401)] * 10)
    document = eve.follow(eve.add_bytes("island.txt", TEXT)["id"])
    assert (document["status"], document["error_code"]) == ("failed", "model_rejected")
    assert "administrator" in document["error"]


def test_during_an_outage_questions_are_answered_by_full_text_search(eve: Person, model: FakeModelServer) -> None:
    """RET-2"""
    eve.follow(eve.add_bytes("island.txt", TEXT)["id"])
    model.script(*[Reply(status=401)] * 10)
    found = eve.get("/search", q="When does the ferry leave?", debug=True)
    assert (len(found["hits"]), found["debug"]["degraded"]) == (1, ["fake-embedding"])


def test_during_an_outage_a_document_waits_and_does_not_fail(eve: Person, model: FakeModelServer) -> None:
    """ING-11"""
    model.script(*[Reply(status=429, headers={"Retry-After": "1000"})])
    document = eve.add_bytes("island.txt", TEXT)
    waiting = wait_until(lambda: (row := eve.get(f"/documents/{document['id']}"))["stage"] == "waiting" and row)
    assert (waiting["status"], waiting["error_code"]) == ("processing", "model_rate_limited")


def test_adding_servers_of_other_sizes_does_not_hold_up_search(eve: Person, remote: LocalServer) -> None:
    """SET-1: each indexes a document, while questions are asked without a pause."""
    eve.follow(eve.add_bytes("island.txt", TEXT)["id"])
    with ExitStack() as stack:
        admin = stack.enter_context(remote.person("Grace", admin=True))
        assert admin.http.patch("/api/rag/settings", json={"requests_per_minute": 0}).is_success
        servers = {size: stack.enter_context(FakeModelServer(dimensions=size)) for size in SIZES}
        found = stack.enter_context(searching(eve))
        for size, server in servers.items():
            name = f"size-{size}"
            body = {"name": name, "model": name, "base_url": server.base_url, "is_default": True}
            assert admin.http.post("/api/rag/embedding-servers", json=body).json()["dimensions"] == size
            document = eve.follow(eve.add_bytes(f"{name}.txt", TEXT + name.encode())["id"])
            assert (document["status"], document["embedding_dim"]) == ("indexed", size)
        wait_until(lambda: len(found) > 20)
    print(f"{len(found)} searches while {len(SIZES)} servers were added, the slowest in {max(found):.3f} s")
    assert max(found) < LONGEST_SECONDS


@contextmanager
def searching(person: Person) -> Iterator[list[float]]:
    """Searches without a pause inside the block; collects the seconds of each search, infinity for a failed one."""
    seconds: list[float] = []
    stopping = threading.Event()

    def run() -> None:
        while not stopping.is_set():
            began = time.monotonic()
            answer = person.http.get("/api/rag/search", params={"q": "When does the ferry leave?"})
            is_good = answer.status_code == 200 and answer.json()["hits"] and not answer.json()["degraded"]
            seconds.append(time.monotonic() - began if is_good else float("inf"))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield seconds
    finally:
        stopping.set()
        thread.join()
