"""A reranker over HTTP between the search and the answer: its order, its faults, and how they are reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from functions.adapters.models.openai_connection import RetryPolicy
from functions.adapters.models.reranker import RerankServer
from tests.support import database as database_servers
from tests.support import documents
from tests.support.fakes.json_server import Fault
from tests.support.fakes.model_server import FakeModelServer
from tests.support.fakes.rerank_server import FakeRerankServer
from tests.support.local_server import LocalServer, Person, run_local_server

FACTS = {
    "ferry.txt": b"The ferry to the island leaves at seven in the morning.",
    "bakery.txt": b"The bakery on the island opens at nine in the morning.",
    "dogs.txt": b"On the island dogs travel free of charge in the morning.",
}
QUESTION = "What happens on the island in the morning?"
REVERSED = Fault(body={"results": [{"index": n, "relevance_score": n} for n in range(3)]})


@pytest.fixture
def reranker() -> Iterator[FakeRerankServer]:
    with FakeRerankServer() as running:
        yield running


@pytest.fixture
def service(cluster: database_servers.TestCluster, reranker: FakeRerankServer, tmp_path: Path) -> Iterator[LocalServer]:
    dsn = cluster.clone()
    with run_local_server(dsn, tmp_path, rerank_base_url=reranker.base_url, rerank_model="fake") as running:
        yield running
    cluster.drop(dsn)


@pytest.fixture
def islander(service: LocalServer) -> Iterator[Person]:
    with service.person("Islander") as person:
        for name, content in FACTS.items():
            person.follow(person.add_bytes(name, content)["id"])
        yield person


def search(person: Person, **params: Any) -> dict[str, Any]:
    return person.get("/search", q=QUESTION, debug=True, **params)


def names(found: dict[str, Any]) -> list[str]:
    return [hit["file_name"] for hit in found["hits"]]


def order_of_the_search(person: Person, reranker: FakeRerankServer) -> list[str]:
    reranker.script(Fault(400, body={}))
    return names(search(person))


def test_passages_are_in_the_order_of_the_reranker(islander: Person, reranker: FakeRerankServer) -> None:
    """RET-9, RET-11"""
    plain = order_of_the_search(islander, reranker)
    reranker.script(REVERSED)
    found = search(islander)
    assert names(found) == plain[::-1]
    assert [(h["arms"]["rerank_rank"], h["arms"]["rerank_score"]) for h in found["hits"]] == [(1, 2), (2, 1), (3, 0)]
    assert (found["degraded"], found["debug"]["rerank_ms"] > 0) == ([], True)
    body = reranker.requests[-1]
    assert (body["model"], body["query"], body["top_n"]) == ("fake", QUESTION, 3)


def test_the_reranker_chooses_from_more_passages_than_are_requested(
    islander: Person, reranker: FakeRerankServer
) -> None:
    """RET-9"""
    plain = order_of_the_search(islander, reranker)
    reranker.script(REVERSED)
    assert names(search(islander, limit=1)) == plain[-1:]


@pytest.mark.parametrize(
    "faults",
    [
        [Fault(500, body={})] * 2,
        [Fault(429, {"Retry-After": "100"}, {})],
        [Fault(401, body={})],
        [Fault(200, {"Content-Type": "application/json"}, b"{")] * 2,
        [Fault(body={"results": [{"index": 7, "relevance_score": 1}] * 3})],
        [Fault(body={"results": []})],
    ],
    ids=["fault", "limit", "key", "no-json", "indices", "nothing"],
)
def test_without_a_usable_reply_the_order_of_the_search_is_kept_and_reported_as_degraded(
    islander: Person, reranker: FakeRerankServer, faults: list[Fault]
) -> None:
    """RET-9"""
    plain = order_of_the_search(islander, reranker)
    reranker.script(*faults)
    found = search(islander)
    assert (names(found), found["degraded"]) == (plain, ["reranker"])
    assert found["hits"][0]["arms"]["rerank_score"] is None
    reranker.script(*faults)
    assert islander.ask(QUESTION)["status"] == "complete"


def test_a_slow_reranker_costs_its_time_limit_and_nothing_else(
    service: LocalServer, islander: Person, reranker: FakeRerankServer
) -> None:
    """RET-9"""
    vars(service.services)["reranker"] = RerankServer(
        base_url=reranker.base_url, read_seconds=0.2, retry_policy=RetryPolicy(attempts=1)
    )
    reranker.script(Fault(body={}, delay=2))
    found = search(islander)
    assert (len(found["hits"]), found["degraded"]) == (3, ["reranker"])
    assert 150 < found["debug"]["rerank_ms"] < 1900


def test_a_short_rate_limit_is_waited_for(islander: Person, reranker: FakeRerankServer) -> None:
    """RET-9"""
    reranker.script(Fault(429, {"Retry-After": "0"}, {}))
    assert search(islander)["degraded"] == []


def test_no_database_connection_is_held_during_reranking(
    service: LocalServer, islander: Person, reranker: FakeRerankServer
) -> None:
    """RET-9"""
    seen: list[Any] = []
    assert service.services.config.database_url is not None
    dsn = service.services.config.database_url.get_secret_value()

    def look() -> None:
        with psycopg.connect(dsn) as connection:
            seen.extend(
                connection.execute(
                    "select state from pg_stat_activity where datname = current_database()"
                    " and pid <> pg_backend_pid() and backend_type = 'client backend'"
                ).fetchall()
            )

    reranker.meanwhile = look
    with service.worker.paused():
        search(islander)
        islander.ask(QUESTION)
    assert set(seen) == {("idle",)}


def test_answers_quote_what_the_reranker_put_first(islander: Person, reranker: FakeRerankServer) -> None:
    """RET-9, CHAT-6"""
    first = order_of_the_search(islander, reranker)[0]
    reranker.script(REVERSED)
    assert islander.ask(QUESTION)["sources"][0]["file_name"] != first


def test_the_guard_ignores_the_reranker(islander: Person, reranker: FakeRerankServer) -> None:
    """RET-8, RET-9"""
    reranker.script(Fault(body={"results": [{"index": n, "relevance_score": 0.99} for n in range(3)]}))
    assert islander.ask("Which prince married the dancer of the Bolshoi?")["mode"] == "guard"


def test_consecutive_passages_are_adjacent_in_the_prompt(
    cluster: database_servers.TestCluster, reranker: FakeRerankServer, tmp_path: Path
) -> None:
    """RET-4, CHAT-4"""
    dsn = cluster.clone()
    island = [
        "Nobody lives on the mainland.",
        "The island has no doctor.",
        "What happens in the morning on the island is quiet.",
    ]
    with FakeModelServer() as model:
        urls = {"rerank_base_url": reranker.base_url, "openai_base_url": model.base_url}
        config: dict[str, Any] = {"chat_model": "fake", **urls}
        with run_local_server(dsn, tmp_path, **config) as service, service.person("Islander") as person:
            person.add(documents.make_pdf(tmp_path / "island.pdf", *island))
            person.follow(person.add_bytes("bakery.txt", FACTS["bakery.txt"])["id"])
            ranked = [(h["file_name"], h["page_start"]) for h in search(person)["hits"]]
            answer = person.ask(QUESTION)
        prompt = model.chats[-1]["messages"][-1]["content"]
    cluster.drop(dsn)
    assert ranked == [("island.pdf", 3), ("bakery.txt", 1), ("island.pdf", 2), ("island.pdf", 1)]
    read = re.findall(r"file: (\S+) \| page: (\d)", prompt)
    assert read == [("island.pdf", "1"), ("island.pdf", "2"), ("island.pdf", "3"), ("bakery.txt", "1")]
    assert [source["check"] for source in answer["sources"]] == ["exact"]
