from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from functions.adapters.models.openai_connection import RetryPolicy
from functions.adapters.models.reranker import RerankServer
from functions.core import errors
from tests.support.fakes.json_server import Fault
from tests.support.fakes.rerank_server import FakeRerankServer

KEY = "sk-secret-key-of-the-test"
QUICK = RetryPolicy(attempts=3, total_seconds=5, first_wait=0.01)
QUESTION = "When does the ferry leave?"
TEXTS = ["The bakery opens at nine.", "The ferry does leave at seven.", "The ferry is blue."]
SCORES = [1.0, 4.0, 2.0]
UNORDERED = [(1, 4), (0, 1.0), (2, -2.5)]


@pytest.fixture
def server() -> Iterator[FakeRerankServer]:
    with FakeRerankServer(api_key=KEY) as running:
        yield running


def reranker(server: FakeRerankServer, **given: Any) -> RerankServer:
    usual: dict[str, Any] = {"base_url": server.base_url, "model": "fake", "api_key": KEY, "retry_policy": QUICK}
    return RerankServer(**usual | given)


def results(*rows: tuple[Any, Any]) -> Fault:
    return Fault(body={"results": [{"index": index, "relevance_score": score} for index, score in rows]})


def test_scores_are_in_the_order_of_the_texts(server: FakeRerankServer) -> None:
    """RET-9"""
    assert reranker(server).score(QUESTION, TEXTS) == SCORES
    assert server.requests == [{"model": "fake", "query": QUESTION, "documents": TEXTS, "top_n": 3}]


@pytest.mark.parametrize("suffix", ["/", "/rerank", "/rerank/"])
def test_the_configured_address_may_include_the_route(server: FakeRerankServer, suffix: str) -> None:
    assert reranker(server, base_url=server.base_url + suffix).score(QUESTION, TEXTS) == SCORES


def test_without_a_model_the_request_names_none(server: FakeRerankServer) -> None:
    reranker(server, model=None).score(QUESTION, TEXTS)
    assert "model" not in server.requests[0]


def test_a_server_of_the_other_protocol_is_recognized_by_its_refusal_and_remembered() -> None:
    """RET-9"""
    with FakeRerankServer("tei") as server:
        asked = reranker(server)
        assert [asked.score(QUESTION, TEXTS), asked.score(QUESTION, TEXTS)] == [SCORES, SCORES]
        assert ["texts" in body for body in server.requests] == [False, True, True]
        assert server.requests[1] == {"query": QUESTION, "texts": TEXTS, "truncate": True}


def test_the_other_protocol_gets_batches_within_its_limit() -> None:
    """RET-9"""
    with FakeRerankServer("tei") as server:
        assert reranker(server).score("ferry", ["ferry", "bakery"] * 35) == [1.0, 0.0] * 35
        assert [len(body["texts"]) for body in server.requests[1:]] == [32, 32, 6]


def test_an_unrelated_refusal_does_not_change_the_protocol(server: FakeRerankServer) -> None:
    asked = reranker(server)
    server.script(Fault(400, body={"message": "the texts are too long"}))
    with pytest.raises(errors.ModelRejectedError):
        asked.score(QUESTION, TEXTS)
    assert asked.score(QUESTION, TEXTS) == SCORES


@pytest.mark.parametrize(
    "reply",
    [
        {"results": [{"index": n, "relevance_score": s, "document": {"text": "x"}} for n, s in UNORDERED]},
        {"object": "list", "data": [{"index": n, "relevance_score": s} for n, s in UNORDERED]},
        [{"index": n, "score": s} for n, s in UNORDERED],
    ],
    ids=["jina", "voyage", "bare"],
)
def test_replies_of_compatible_servers_are_read(server: FakeRerankServer, reply: Any) -> None:
    """RET-9"""
    server.script(Fault(body=reply))
    assert reranker(server).score(QUESTION, TEXTS) == [1.0, 4.0, -2.5]


@pytest.mark.parametrize(
    "faults",
    [
        [Fault(500, body={})],
        [Fault(429, {"Retry-After": "0"}, {})],
        [Fault(503, body=b"<html>busy</html>"), Fault(429, {"Retry-After": "0.05"}, {})],
        [Fault(200, {"Content-Type": "application/json"}, b'{"results": [')],
    ],
    ids=["fault", "limit", "two", "cut-off"],
)
def test_a_transient_failure_is_retried(server: FakeRerankServer, faults: list[Fault]) -> None:
    """RET-9"""
    server.script(*faults)
    assert reranker(server).score(QUESTION, TEXTS) == SCORES
    assert len(server.requests) == len(faults) + 1


def test_a_retry_after_that_is_too_long_is_not_waited_for(server: FakeRerankServer) -> None:
    """RET-9"""
    server.script(Fault(429, {"Retry-After": "60"}, {}))
    started = time.monotonic()
    with pytest.raises(errors.ModelRateLimitedError):
        reranker(server).score(QUESTION, TEXTS)
    assert (len(server.requests), time.monotonic() - started < 2) == (1, True)


def test_a_server_slower_than_the_time_limit_times_out(server: FakeRerankServer) -> None:
    """RET-9"""
    server.script(Fault(body={}, delay=1.0))
    asked = reranker(server, read_seconds=0.2, retry_policy=RetryPolicy(attempts=1))
    with pytest.raises(errors.ModelUnavailableError, match="too slow"):
        asked.score(QUESTION, TEXTS)


def test_an_unreachable_server_is_unavailable() -> None:
    asked = RerankServer(base_url="http://127.0.0.1:9", retry_policy=RetryPolicy(attempts=1))
    with pytest.raises(errors.ModelUnavailableError):
        asked.score(QUESTION, TEXTS)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(body=b"<html>hello</html>"),
        Fault(body=None),
        Fault(body=[]),
        Fault(body={"results": None}),
        Fault(body={"results": {"0": 1}}),
        Fault(body={"results": ["relevance_score"] * 3}),
        Fault(body={"results": [{"index": n} for n in range(3)]}),
        results((0, 1), (1, 2)),
        results((0, 1), (1, 2), (3, 3)),
        results((0, 1), (1, 2), (-1, 3)),
        results((0, 1), (1, 2), (1, 3)),
        results((0, 1), (1, 2), (2, 3), (2, 3)),
        results((0, 1), (1, 2), ([2], 3)),
        results((0, 1), (1, 2), ("2", 3)),
        results((0, 1), (1, 2), (2, None)),
        results((0, 1), (1, 2), (2, "high")),
        results((0, 1), (1, 2), (2, float("nan"))),
        results((0, 1), (1, 2), (2, 10**400)),
        Fault(body={"results": [{"index": 0, "relevance_score": 1}], "padding": "x" * 1_000_000}),
    ],
    ids=range(19),
)
def test_a_reply_without_one_score_per_text_is_refused_and_not_retried(server: FakeRerankServer, fault: Fault) -> None:
    """RET-9"""
    server.script(fault)
    with pytest.raises(errors.ModelRejectedError):
        reranker(server).score(QUESTION, TEXTS)
    assert len(server.requests) == 1


def test_the_key_is_never_part_of_a_message(server: FakeRerankServer) -> None:
    server.api_key = "another"
    with pytest.raises(errors.ModelRejectedError) as caught:
        reranker(server).score(QUESTION, TEXTS)
    assert KEY not in caught.value.message + json.dumps(caught.value.details)
    assert "administrator" in caught.value.message


@pytest.mark.parametrize("question", ["a\x00b", "x" * 100_000, "'; drop table", "\u202e%s {}"], ids=range(4))
def test_unusual_questions_reach_the_server_unchanged(server: FakeRerankServer, question: str) -> None:
    assert len(reranker(server).score(question, TEXTS)) == 3
    assert server.requests[0]["query"] == question
