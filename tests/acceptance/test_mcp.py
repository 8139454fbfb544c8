"""The library as tools for AI assistants: the SDK's own client against the server, in the old and the new protocol."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar
from uuid import uuid4

import anyio
import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from functions.core.answering import tool_results, tools
from tests.support.local_server import Json, LocalServer, Person, problem_of

T = TypeVar("T")
Mode = Literal["auto", "legacy"]

BOILER = "The boiler burns wood chips in winter. It was built by Marta Olsen in 1931."
LEASE = "The lease of the house in Bergen ends in March 2031."
NOTE = "# Keys\n\nThe spare key of the boiler room hangs behind the clock."
LONG_NOTE = "\n\n".join(f"Paragraph {number} tells of the garden." for number in range(800))
FOREIGN = "The boiler of the neighbour burns peat."


class Assistant:
    """An MCP client with one user's token."""

    def __init__(self, person: Person, mode: Mode = "auto") -> None:
        self.person = person
        self.mode = mode

    def use(self, use: Callable[[Client], Awaitable[T]]) -> T:
        async def connect() -> T:
            headers = {"Authorization": f"Bearer {self.person.token}"}
            url = f"{self.person.server.base_url}/mcp"
            async with (
                httpx2.AsyncClient(headers=headers, trust_env=False, verify=False, timeout=30) as http,
                Client(streamable_http_client(url, http_client=http), mode=self.mode) as client,
            ):
                return await use(client)

        return anyio.run(connect)

    def call(self, name: str, **arguments: Any) -> Any:
        return self.use(lambda client: client.call_tool(name, arguments))

    def find(self, name: str, query: str, **arguments: Any) -> list[str]:
        """The names of what a search found."""
        result = self.call(name, query=query, **arguments)
        assert not result.is_error, result.content
        return [passage["file_name"] for passage in result.structured_content["passages"]]

    def fail(self, name: str, **arguments: Any) -> str:
        result = self.call(name, **arguments)
        assert (result.is_error, result.structured_content) == (True, None)
        return str(result.content[0].text)


@pytest.fixture(scope="module")
def owned(server: LocalServer) -> Iterator[dict[str, Any]]:
    """A user with two documents and two notes, one of each in a notebook."""
    with server.person("Vera") as vera:
        notebook_id = vera.post("/notebooks", title="House")["id"]
        boiler = vera.add_bytes("boiler.txt", BOILER.encode())
        lease = vera.add_bytes("lease.md", LEASE.encode(), notebook_id=notebook_id)
        note = vera.post("/notes", title="Keys", content=NOTE, notebook_id=notebook_id)
        long = vera.post("/notes", title="Garden", content=LONG_NOTE)
        for document in (boiler, lease):
            assert vera.follow(document["id"])["status"] == "indexed"
        for written in (note, long):
            assert vera.get(f"/notes/{written['id']}", wait=25)["status"] == "indexed"
        yield {
            "person": vera,
            "notebook_id": notebook_id,
            "boiler": boiler["id"],
            "lease": lease["id"],
            "note": note["id"],
            "long": long["id"],
        }


@pytest.fixture(params=["auto", "legacy"])
def vera(owned: dict[str, Any], request: pytest.FixtureRequest) -> Assistant:
    """A client without a handshake, as of protocol 2026-07-28, and one with the earlier handshake."""
    return Assistant(owned["person"], request.param)


@pytest.fixture(scope="module")
def stranger(server: LocalServer) -> Iterator[Assistant]:
    with server.person("Walter") as walter:
        document = walter.add_bytes("peat.txt", FOREIGN.encode())
        assert walter.follow(document["id"])["status"] == "indexed"
        yield Assistant(walter)


def test_the_tools_are_listed_with_their_schemas(vera: Assistant) -> None:
    """CHAT-9"""
    listed = vera.use(lambda client: client.list_tools()).tools
    assert [(t.name, t.title, t.description, t.input_schema, t.output_schema) for t in listed] == [
        (t.name, t.title, t.description, t.parameters, t.result) for t in tools.TOOLS
    ]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed)


def test_a_search_returns_passages_as_text_and_as_data(vera: Assistant, owned: dict[str, Any]) -> None:
    """CHAT-9"""
    result = vera.call("document_search", query="What does the boiler burn?")
    passage = result.structured_content["passages"][0]
    assert {key: passage[key] for key in ("segment_id", "source", "source_id", "file_name", "page_start", "text")} == {
        "segment_id": f"{owned['boiler']}:0",
        "source": "document",
        "source_id": owned["boiler"],
        "file_name": "boiler.txt",
        "page_start": 1,
        "text": BOILER,
    }
    assert 0.3 < passage["score"] <= 1
    assert f"[SEG={owned['boiler']}:0] file: boiler.txt | page: 1\n{BOILER}" in result.content[0].text


@pytest.mark.parametrize(
    ("narrowed", "names"),
    [
        ({"limit": 1}, ["boiler.txt"]),
        ({"document_ids": ["lease"]}, ["lease.md"]),
        ({"document_ids": ["lease", "boiler"]}, ["boiler.txt", "lease.md"]),
        ({"notebook_id": "notebook_id", "filters": {"file_type": "md"}}, ["lease.md"]),
        ({"notebook_id": "notebook_id", "document_ids": ["boiler"]}, []),
        ({"filters": {"file_type": "txt", "lang": "en"}}, ["boiler.txt"]),
        ({"filters": {"author": "Olsen"}}, []),
    ],
)
def test_a_search_can_be_narrowed(
    vera: Assistant, owned: dict[str, Any], narrowed: dict[str, Any], names: list[str]
) -> None:
    """CHAT-9, RET-10"""
    arguments = dict(narrowed)
    if "document_ids" in arguments:
        arguments["document_ids"] = [owned[name] for name in arguments["document_ids"]]
    if "notebook_id" in arguments:
        arguments["notebook_id"] = owned["notebook_id"]
    assert vera.find("document_search", "What does the boiler burn in winter?", **arguments) == names


def test_a_note_search_finds_notes_only(vera: Assistant, owned: dict[str, Any]) -> None:
    """CHAT-9, LIB-2"""
    assert vera.find("note_search", "boiler")[0] == "Keys"
    assert set(vera.find("note_search", "the boiler that burns wood chips")) <= {"Keys", "Garden"}
    assert vera.find("note_search", "boiler", notebook_id=owned["notebook_id"]) == ["Keys"]


def test_a_note_is_read_to_its_end(vera: Assistant, owned: dict[str, Any]) -> None:
    """CHAT-9"""
    text = ""
    offset: int | None = 0
    while offset is not None:
        part = vera.call("note_read", note_id=owned["long"], offset=offset).structured_content
        assert (part["title"], part["length"]) == ("Garden", len(LONG_NOTE))
        assert len(part["text"]) <= tool_results.NOTE_CHARS
        text += part["text"]
        offset = part["next_offset"]
    assert text == LONG_NOTE
    assert NOTE in vera.call("note_read", note_id=owned["note"]).content[0].text


def test_a_trashed_note_is_neither_found_nor_read(owned: dict[str, Any]) -> None:
    """CHAT-9, LIB-2"""
    person = owned["person"]
    note_id = person.post("/notes", title="Old", content="The zeppelin is in the shed.")["id"]
    assert person.get(f"/notes/{note_id}", wait=25)["status"] == "indexed"
    assistant = Assistant(person)
    assert "Old" in assistant.find("note_search", "zeppelin")
    person.post(f"/notes/{note_id}/trash")
    assert "Old" not in assistant.find("note_search", "zeppelin")
    assert assistant.fail("note_read", note_id=note_id).startswith("conflict: The note is in the trash.")


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("document_search", {}, "invalid_input: 'query' is a required property"),
        ("document_search", {"query": "x", "limit": 500}, "invalid_input: limit: 500 is greater than the maximum"),
        ("document_search", {"query": "x", "filters": {"published_from": "2021-02-30"}}, "there is no such date"),
        ("note_read", {"note_id": "Keys"}, "invalid_input: note_id: 'Keys' does not match"),
    ],
)
def test_faults_in_a_call_are_reported_in_the_result(
    vera: Assistant, name: str, arguments: dict[str, Any], text: str
) -> None:
    """CHAT-9"""
    assert text in vera.fail(name, **arguments)


def test_an_unknown_tool_is_a_protocol_error(vera: Assistant) -> None:
    async def call(client: Client) -> str:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("delete_everything", {})
        return str(caught.value)

    assert "There are document_search, note_search, note_read" in vera.use(call)


# Two users


def test_another_users_content_is_not_found(vera: Assistant, stranger: Assistant) -> None:
    """SEC-2, SEC-3, CHAT-9"""
    assert stranger.find("document_search", "What does the boiler burn?", limit=20) == ["peat.txt"]
    assert stranger.find("note_search", "boiler key clock") == []
    assert "peat.txt" not in vera.find("document_search", "What does the boiler of the neighbour burn?", limit=20)


@pytest.mark.parametrize(
    ("name", "argument", "key"),
    [
        ("note_read", "note_id", "note"),
        ("document_search", "notebook_id", "notebook_id"),
        ("note_search", "notebook_id", "notebook_id"),
        ("document_search", "document_ids", "boiler"),
    ],
)
def test_another_users_id_is_answered_like_an_unknown_id(
    stranger: Assistant, owned: dict[str, Any], name: str, argument: str, key: str
) -> None:
    """SEC-3, CHAT-9"""
    query = {} if name == "note_read" else {"query": "boiler"}
    answers = []
    for value in (owned[key], str(uuid4())):
        answers.append(stranger.fail(name, **query, **{argument: [value] if argument == "document_ids" else value}))
    assert answers[0] == answers[1]
    assert answers[0].startswith("not_found: There is no such ")


def test_concurrent_calls_of_two_users_are_not_mixed_up(vera: Assistant, stranger: Assistant) -> None:
    """SEC-2"""
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda who: who.find("document_search", "boiler", limit=1), [vera, stranger] * 6))
    assert found == [["boiler.txt"], ["peat.txt"]] * 6


# Plain HTTP


LIST: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def http(owned: dict[str, Any]) -> httpx.Client:
    client: httpx.Client = owned["person"].http
    return client


def test_a_request_is_answered_with_json_and_no_session(http: httpx.Client) -> None:
    """CHAT-9"""
    for _ in range(3):
        answer = http.post("/mcp", json=LIST, headers=ACCEPT)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert len(answer.json()["result"]["tools"]) == 3
        assert "mcp-session-id" not in answer.headers


def test_a_notification_gets_an_empty_response(http: httpx.Client) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = http.post("/mcp", json=body, headers=ACCEPT)
    assert (answer.status_code, answer.content.strip()) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_sessions_can_be_neither_opened_nor_ended(http: httpx.Client, method: str) -> None:
    answer = http.request(method, "/mcp", headers={"Accept": "text/event-stream"})
    assert problem_of(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("token", [None, "Bearer nonsense"])
def test_a_request_without_a_token_is_refused(server: LocalServer, token: str | None) -> None:
    """SEC-1"""
    answer = server.http.post("/mcp", json=LIST, headers=ACCEPT | ({"Authorization": token} if token else {}))
    assert problem_of(answer) == (401, "not_signed_in")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"])
def test_a_page_of_another_origin_is_refused(http: httpx.Client, origin: str) -> None:
    answer = http.post("/mcp", json=LIST, headers=ACCEPT | {"Origin": origin})
    assert answer.status_code == 403


def test_a_page_of_this_origin_is_accepted(http: httpx.Client, server: LocalServer) -> None:
    answer = http.post("/mcp", json=LIST, headers=ACCEPT | {"Origin": server.base_url})
    assert answer.status_code == 200


BROKEN = {
    "nothing": b"",
    "no-json": b"{",
    "a-list": b"[]",
    "a-number": b"7",
    "a-batch": b'[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]',
    "a-list-as-params": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}',
    "an-object-as-id": b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    "no-version": b'{"id": 1, "method": "tools/list"}',
    "no-method": b'{"jsonrpc": "2.0", "id": 1}',
    "deep": b"[" * 100_000,
    "not-utf-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}',
    "unstorable": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\\u0000", "arguments": 7}}',
}


@pytest.mark.parametrize("version", [None, "2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_malformed_request_is_a_protocol_error(http: httpx.Client, body: bytes, version: str | None) -> None:
    """SEC-6"""
    headers = ACCEPT | {"Content-Type": "application/json"} | ({"MCP-Protocol-Version": version} if version else {})
    answer = http.post("/mcp", content=body, headers=headers)
    assert answer.status_code < 500
    error = answer.json()["error"]
    assert error["code"] < 0
    assert len(error["message"]) < 150
    assert not {"Traceback", "pydantic", "input_value"} & set(re.findall(r"\w+", answer.text))


def test_a_request_body_that_is_too_large_is_refused(http: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * 100_000

    for content in (b" " * 2_000_000, endless()):
        answer = http.post("/mcp", content=content, headers=ACCEPT | {"Content-Type": "application/json"})
        assert problem_of(answer) == (413, "too_large")
