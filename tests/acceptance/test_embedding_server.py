"""Documents indexed by an embedding server over HTTP: rate limits, faults, and search during an outage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import database as database_servers
from tests.support.fakes.model_server import FakeModelServer, Reply
from tests.support.local_server import LocalServer, Person, run_local_server, wait_until

TEXT = b"The ferry to the island leaves at seven. The bakery opens at nine. Dogs travel free of charge."
DIMENSIONS = 64


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
