"""OpenAI's protocol through the gateway's events, which the chat function answers as well."""

from __future__ import annotations

from typing import Any

import pytest

from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import Caller

FACT = "The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn in winter?"


def complete(caller: Caller, **fields: Any) -> events.Answer:
    body = {"model": "ibid", "messages": [{"role": "user", "content": QUESTION}]} | fields
    return caller.call("chat", "POST", "/v1/chat/completions", body)


def test_a_completion_passes_through_the_gateway(caller: Caller) -> None:
    """CHAT-10"""
    document = caller.add(FACT.encode())
    answer = complete(caller, ibid={"document_ids": [document["id"]], "list_sources": False})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json["choices"][0]["message"]["content"] == f"{FACT} [1]"
    assert answer.json["ibid"]["sources"][0]["document_id"] == document["id"]
    assert caller.row("select count(*) as n from rag.conversations where owner_id = %s", caller.user.id) == {"n": 0}


def test_a_stream_passes_through_the_gateway_in_one_piece(caller: Caller) -> None:
    caller.add(FACT.encode())
    answer = complete(caller, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.content.decode().endswith("data: [DONE]\n\n")


def test_the_list_of_models_passes_through_the_gateway(caller: Caller) -> None:
    """CHAT-10"""
    listed = caller.call("chat", "GET", "/v1/models").json
    assert (listed["object"], [model["id"] for model in listed["data"]]) == ("list", ["ibid"])
    assert caller.call("chat", "GET", "/v1/models/ibid").json == listed["data"][0]
    refused = caller.call("chat", "GET", "/v1/models/gpt-5")
    assert (refused.status, refused.json["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(("method", "path"), [("POST", "chat/completions"), ("GET", "models"), ("GET", "models/ibid")])
def test_a_request_without_a_token_is_refused(services: Services, method: str, path: str) -> None:
    """SEC-1"""
    answer = events.send("chat", events.http(method, f"/v1/{path}"))
    assert (answer.status, answer.json["error"]["code"]) == (401, "not_signed_in")
    assert answer.headers["www-authenticate"] == "Bearer"
