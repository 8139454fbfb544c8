"""MCP through the gateway: each invocation is one request and one answer, warm or cold."""

from __future__ import annotations

from typing import Any

import pytest

from functions.core import tools
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
def test_a_client_that_shakes_hands_gets_its_tools_and_its_passages(reader: Caller, encoded: bool) -> None:
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


def test_one_container_serves_one_person_after_another(reader: Caller, caller: Caller) -> None:
    """SEC-2"""
    found = [len(search(who, "boiler")["structuredContent"]["passages"]) for who in (reader, caller) * 3]
    assert found == [1, 0] * 3


def test_without_a_token_there_is_no_answer() -> None:
    """SEC-1"""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = events.send("mcp", events.http("POST", "/mcp", body, headers=HEADERS))
    assert answer.problem == (401, "not_signed_in")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_that_would_hold_the_function(caller: Caller, method: str) -> None:
    answer = caller.call("mcp", method, "/mcp", headers=HEADERS)
    assert answer.problem == (405, "method_not_allowed")


def test_a_page_of_another_host_is_refused(caller: Caller) -> None:
    answer = send(caller, "tools/list", headers={"origin": "https://evil.example"})
    assert answer.status == 403
