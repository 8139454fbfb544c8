"""MCP through the gateway: each invocation, cold or warm, is one request and one response."""

from __future__ import annotations

from typing import Any

import pytest

from functions.core.answering import tools
from tests.handlers import events
from tests.handlers.conftest import Caller
from tests.handlers.events import Answer, Json

HEADERS = {"accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def send(
    caller: Caller, method: str, params: Json | None = None, headers: Json | None = None, **options: Any
) -> Answer:
    body = {"jsonrpc": "2.0", "id": 7, "method": method} | ({} if params is None else {"params": params})
    return caller.call("mcp", "POST", "/mcp", body, headers=HEADERS | (headers or {}), **options)


def search(caller: Caller, query: str, **options: Any) -> Json:
    answer = send(caller, "tools/call", {"name": "document_search", "arguments": {"query": query}}, **options)
    assert answer.status == 200, answer.content
    result: Json = answer.json["result"]
    return result


@pytest.fixture(scope="module")
def reader(services: Any) -> Caller:
    reader = Caller(services)
    reader.add(b"The boiler burns wood chips in winter.", "boiler.txt")
    return reader


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "base64"])
def test_a_client_with_a_handshake_gets_tools_and_passages(reader: Caller, encoded: bool) -> None:
    """CHAT-9"""
    hello = send(
        reader,
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
        encoded=encoded,
    )
    assert hello.json["result"]["serverInfo"]["name"] == "ibid"
    assert "mcp-session-id" not in hello.headers
    version = {"mcp-protocol-version": "2025-06-18"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert reader.call("mcp", "POST", "/mcp", note, headers=HEADERS | version).status == 202
    listed = send(reader, "tools/list", headers=version, encoded=encoded).json["result"]["tools"]
    assert [tool["name"] for tool in listed] == list(tools.BY_NAME)
    result = search(reader, "What does the boiler burn?", headers=version, encoded=encoded)
    assert [p["file_name"] for p in result["structuredContent"]["passages"]] == ["boiler.txt"]


def test_a_client_of_2026_needs_no_handshake(reader: Caller) -> None:
    """CHAT-9"""
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "document_search"}
    params = {"name": "document_search", "arguments": {"query": "boiler"}, "_meta": META}
    answer = send(reader, "tools/call", params, headers)
    assert answer.status == 200, answer.content
    assert answer.json["result"]["structuredContent"]["passages"][0]["text"].startswith("The boiler burns")


def test_one_container_serves_several_users_in_turn(reader: Caller, caller: Caller) -> None:
    """SEC-2"""
    found = [len(search(who, "boiler")["structuredContent"]["passages"]) for who in (reader, caller) * 3]
    assert found == [1, 0] * 3


def test_a_request_without_a_token_is_refused() -> None:
    """SEC-1"""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = events.send("mcp", events.http("POST", "/mcp", body, headers=HEADERS))
    assert answer.problem == (401, "not_signed_in")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_long_lived_stream_is_refused(caller: Caller, method: str) -> None:
    answer = caller.call("mcp", method, "/mcp", headers=HEADERS)
    assert answer.problem == (405, "method_not_allowed")


def test_a_page_of_another_origin_is_refused(caller: Caller) -> None:
    answer = send(caller, "tools/list", headers={"origin": "https://evil.example"})
    assert answer.status == 403


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"name": "document_search", "arguments": 7}, "arguments: send a JSON object"),
        ({"name": "document_search", "arguments": "{}  "}, "arguments: send a JSON object"),
        ({"name": "document_search", "arguments": ["boiler"]}, "arguments: send a JSON object"),
        ({"name": 7}, "name: give the name of a tool. The tools are document_search, note_search, note_read."),
        ({}, "name: give the name of a tool"),
        (None, "name: give the name of a tool"),
    ],
    ids=str,
)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_a_malformed_call_is_refused_with_a_sentence(
    caller: Caller, params: Json | None, words: str, version: str
) -> None:
    """CHAT-9, SEC-6"""
    answer = send(caller, "tools/call", params, {"mcp-protocol-version": version})
    assert (answer.status, answer.json["id"], answer.json["error"]["code"]) == (400, 7, -32602)
    assert words in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (None, "'query' is a required property"),
        ({"query": "\u200b\0"}, "'query' is a required property"),
        ({"query": 7}, "query: 7 is not of type 'string'"),
        ({"query": "x", "limit": 21}, "limit: 21 is greater than the maximum of 20"),
        ({"query": "x", "document_ids": ["00000000-0000-4000-8000-000000000000"] * 101}, "is too long"),
        ({"query": "x", "scope": "library"}, "'scope' was unexpected"),
    ],
    ids=["nothing", "unseen", "number", "limit", "101-ids", "unknown"],
)
def test_faults_in_the_arguments_are_reported_to_the_model(caller: Caller, arguments: Any, words: str) -> None:
    """CHAT-9"""
    answer = send(caller, "tools/call", {"name": "document_search", "arguments": arguments})
    (content,) = answer.json["result"]["content"]
    assert (answer.status, answer.json["result"]["isError"]) == (200, True)
    assert content["text"].startswith("invalid_input: ")
    assert words in content["text"]
    assert len(content["text"]) < 400
