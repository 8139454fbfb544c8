"""Pages of other hosts may call /v1 with a token, and nothing else."""

from __future__ import annotations

import pytest

from functions.web.app import MAX_BODY_BYTES
from tests.handlers import events
from tests.handlers.conftest import Caller

PAGE = {"origin": "https://chat.example"}
PREFLIGHT = PAGE | {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-lang",
}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_a_preflight_from_any_host_is_allowed(path: str) -> None:
    """CHAT-10"""
    answer = events.send("chat", events.http("OPTIONS", path, headers=PREFLIGHT))
    assert (answer.status, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == PREFLIGHT["access-control-request-headers"]
    assert "access-control-allow-credentials" not in answer.headers


def test_answers_and_errors_are_readable_for_any_page_that_has_a_token(caller: Caller) -> None:
    """CHAT-10"""
    models = caller.call("chat", "GET", "/v1/models", headers=PAGE)
    refused = events.send("chat", events.http("GET", "/v1/models", headers=PAGE))
    assert [(a.status, a.headers["access-control-allow-origin"]) for a in (models, refused)] == [(200, "*"), (401, "*")]


def test_a_page_of_another_host_can_read_faults_and_refused_bodies(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CHAT-10"""
    refused = caller.call("chat", "POST", "/v1/chat/completions", " " * (MAX_BODY_BYTES + 1), headers=PAGE)
    monkeypatch.setitem(vars(caller.services), "authenticator", None)
    fault = caller.call("chat", "GET", "/v1/models", headers=PAGE)
    assert [(a.status, a.headers["access-control-allow-origin"]) for a in (refused, fault)] == [(413, "*"), (500, "*")]


def test_behind_a_function_url_the_url_alone_adds_the_headers(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LWA_PORT", "8080")
    assert "access-control-allow-origin" not in caller.call("chat", "GET", "/v1/models", headers=PAGE).headers


def test_our_own_protocol_is_for_pages_of_this_host_only(caller: Caller) -> None:
    asked = events.send("chat", events.http("OPTIONS", "/api/rag/chat", headers=PREFLIGHT))
    assert asked.status == 405
    answer = caller.call("chat", "POST", "/api/rag/chat", {"query": "?"}, headers=PAGE)
    assert "access-control-allow-origin" not in answer.headers
