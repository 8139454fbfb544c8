"""Pages of other origins may use OpenAI's protocol with a token, and nothing else."""

from __future__ import annotations

import pytest

from tests.handlers import events
from tests.handlers.conftest import Caller

PAGE = {"origin": "https://chat.example"}
PREFLIGHT = PAGE | {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-lang",
}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_a_cors_preflight_of_openais_protocol_is_answered(path: str) -> None:
    """CHAT-10"""
    answer = events.send("chat", events.http("OPTIONS", path, headers=PREFLIGHT))
    assert (answer.status, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == PREFLIGHT["access-control-request-headers"]
    assert "access-control-allow-credentials" not in answer.headers


def test_answers_and_errors_of_openais_protocol_allow_every_origin(caller: Caller) -> None:
    """CHAT-10"""
    models = caller.call("chat", "GET", "/v1/models", headers=PAGE)
    refused = events.send("chat", events.http("GET", "/v1/models", headers=PAGE))
    assert [(a.status, a.headers["access-control-allow-origin"]) for a in (models, refused)] == [(200, "*"), (401, "*")]


def test_behind_a_function_url_the_url_sets_the_cors_headers(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LWA_PORT", "8080")
    assert "access-control-allow-origin" not in caller.call("chat", "GET", "/v1/models", headers=PAGE).headers


def test_our_own_protocol_allows_pages_of_this_host_only(caller: Caller) -> None:
    asked = events.send("chat", events.http("OPTIONS", "/api/rag/chat", headers=PREFLIGHT))
    assert asked.status == 405
    answer = caller.call("chat", "POST", "/api/rag/chat", {"query": "?"}, headers=PAGE)
    assert "access-control-allow-origin" not in answer.headers
