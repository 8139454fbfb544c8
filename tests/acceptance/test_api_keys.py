"""KEY-1: personal API keys over HTTP, with the official clients of OpenAI and MCP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import openai
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from functions.local.__main__ import main
from tests.support.local_server import Json, LocalServer, Person, problem_of

BOILER = b"The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn?"


def make_key(person: Person, *scopes: str, **fields: Any) -> Json:
    return person.post("/keys", name="script", scopes=list(scopes), **fields)


def act(server: LocalServer, key: str) -> httpx.Client:
    return server.open_client(Authorization=f"Bearer {key}")


def age(server: LocalServer, key: Json, days: int) -> None:
    """Moves the expiry of a key into the past."""
    with server.services.database.as_worker() as connection:
        statement = "update rag.api_keys set expires_at = expires_at - make_interval(days => %s) where id = %s"
        assert connection.execute(statement, (days, key["id"])).rowcount == 1


@contextmanager
def limited(admin: Person, quota: int) -> Iterator[None]:
    """Lets a key send `quota` requests a minute; begins when the minute is young."""
    left = 60 - time.time() % 60
    time.sleep(left if left < 4 else 0)
    assert admin.http.patch("/api/rag/settings", json={"key_requests_per_minute": quota}).status_code == 200
    try:
        yield
    finally:
        admin.http.patch("/api/rag/settings", json={"key_requests_per_minute": 600})


@pytest.fixture
def reader(ada: Person) -> Person:
    """A user with one indexed document."""
    assert ada.follow(ada.add_bytes("boiler.txt", BOILER)["id"])["status"] == "indexed"
    return ada


def test_a_key_is_shown_once_and_stored_as_a_hash(ada: Person, server: LocalServer) -> None:
    """KEY-1"""
    created = make_key(ada, "write", "read", expires_in_days=30)
    key = created.pop("key")
    assert (created["name"], created["scopes"], created["hint"]) == ("script", ["read", "write"], key[:9])
    lifetime = datetime.fromisoformat(created["expires_at"]) - datetime.fromisoformat(created["created_at"])
    assert abs(lifetime.total_seconds() - 30 * 86400) < 60
    assert ada.get("/keys") == {"items": [created]}
    with server.services.database.as_worker() as connection:
        stored = connection.execute("select * from rag.api_keys where id = %s", (created["id"],)).fetchall()
    assert key[9:] not in str(stored)


def test_a_key_acts_as_its_owner_and_as_nobody_else(reader: Person, bob: Person, server: LocalServer) -> None:
    """KEY-1, SEC-2"""
    found = {}
    for person in (reader, bob):
        with act(server, make_key(person, "read")["key"]) as http:
            found[person.id] = [item["file_name"] for item in http.get("/api/rag/documents").json()["items"]]
            me = http.get("/api/rag/me").json()
            assert (me["id"], me["is_admin"], me["scopes"]) == (person.id, False, ["read"])
    assert found == {reader.id: ["boiler.txt"], bob.id: []}


def test_openais_client_asks_with_a_key(reader: Person, server: LocalServer) -> None:
    """KEY-1, CHAT-10"""
    key = make_key(reader, "ask")["key"]
    with openai.OpenAI(base_url=f"{server.base_url}/v1", api_key=key, max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["ibid"]
        messages: Any = [{"role": "user", "content": QUESTION}]
        reply = client.chat.completions.create(model="ibid", messages=messages)
    assert "wood chips" in (reply.choices[0].message.content or "")


def test_mcps_client_searches_with_a_key(reader: Person, server: LocalServer) -> None:
    """KEY-1, CHAT-9"""
    headers = {"Authorization": f"Bearer {make_key(reader, 'read')['key']}"}

    async def search() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, verify=False, timeout=30) as http,
            Client(streamable_http_client(f"{server.base_url}/mcp", http_client=http)) as client,
        ):
            return await client.call_tool("document_search", {"query": QUESTION})

    passages = anyio.run(search).structured_content["passages"]
    assert [passage["file_name"] for passage in passages] == ["boiler.txt"]


def test_a_key_outlives_the_token_of_its_owner(ada: Person, server: LocalServer, monkeypatch: Any) -> None:
    """KEY-1: a key has no relation to the token with which it was made."""
    key = make_key(ada, "read")["key"]
    monkeypatch.setitem(vars(server.services), "authenticator", None)  # no token can be verified any more
    with act(server, key) as http:
        assert http.get("/api/rag/documents").status_code == 200


def test_a_revoked_key_stops_at_once(ada: Person, server: LocalServer) -> None:
    """KEY-1"""
    created = make_key(ada, "read")
    with act(server, created["key"]) as http:
        assert http.get("/api/rag/documents").status_code == 200
        assert ada.http.delete(f"/api/rag/keys/{created['id']}").status_code == 204
        assert problem_of(http.get("/api/rag/documents")) == (401, "not_signed_in")
    assert ada.get("/keys") == {"items": []}


def test_an_expired_key_is_refused_with_its_date_and_deleted_a_month_later(ada: Person, server: LocalServer) -> None:
    """KEY-1"""
    created = make_key(ada, "read", expires_in_days=1)
    age(server, created, days=2)
    with act(server, created["key"]) as http:
        refused = http.get("/api/rag/documents")
    assert problem_of(refused) == (401, "not_signed_in")
    assert refused.json()["detail"].startswith("This API key expired on 2")
    purge = {"Authorization": "Bearer cron-secret-of-the-tests"}
    for days, left in ((0, 1), (30, 0)):
        age(server, created, days)
        assert server.http.get("/api/cron/retention", headers=purge).status_code == 200
        assert len(ada.get("/keys")["items"]) == left


def test_a_key_that_never_existed_is_refused(server: LocalServer) -> None:
    """KEY-1"""
    for key in ("ibid_", "ibid_" + "A" * 43, "ibid_" + "A" * 20_000, "ibid_\u00e9"):
        headers = {b"Authorization": f"Bearer {key}".encode("latin-1")}
        answer = server.http.get("/api/rag/documents", headers=headers)
        assert problem_of(answer) == (401, "not_signed_in")


def test_the_list_says_when_a_key_was_last_used(ada: Person, server: LocalServer) -> None:
    """KEY-1"""
    created = make_key(ada, "read")
    assert created["last_used_at"] is None
    with act(server, created["key"]) as http:
        http.get("/api/rag/documents")
    assert ada.get("/keys")["items"][0]["last_used_at"] > created["created_at"]


def test_a_key_over_its_rate_gets_a_429_and_another_key_does_not(
    ada: Person, admin: Person, server: LocalServer
) -> None:
    """KEY-1, OPS-5"""
    first, second = (make_key(ada, "read")["key"] for _ in range(2))
    with limited(admin, 2), act(server, first) as busy, act(server, second) as idle:
        answers = [busy.get("/api/rag/documents") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert problem_of(answers[-1]) == (429, "rate_limited")
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert idle.get("/api/rag/documents").status_code == 200


def test_a_user_has_at_most_fifty_keys(ada: Person) -> None:
    """KEY-1"""
    made = [ada.http.post("/api/rag/keys", json={"name": "k", "scopes": ["read"]}) for _ in range(51)]
    assert [answer.status_code for answer in made] == [201] * 50 + [429]
    assert problem_of(made[-1]) == (429, "quota_exceeded")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": ""}, "name"),
        ({"name": "\u200b"}, "name"),
        ({"name": "n" * 101}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "admin"]}, "scopes.1"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"expires_in_days": 3651}, "expires_in_days"),
        ({"owner_id": "7b7f5c1e-50fb-4a2c-9d0e-1f3c5a6b7d8e"}, "owner_id"),
    ],
    ids=str,
)
def test_a_wrong_request_for_a_key_names_its_fault(ada: Person, changes: Json, fault: str) -> None:
    """KEY-1"""
    refused = ada.http.post("/api/rag/keys", json={"name": "script", "scopes": ["read"]} | changes)
    assert problem_of(refused) == (400, "invalid_input")
    assert [found["key"] for found in refused.json()["faults"]] == [fault]


# The command line


@pytest.fixture
def command(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command of `python -m functions.local` on the server's library: its exit code, stdout and stderr."""
    config = server.services.config
    assert config.database_url is not None
    monkeypatch.setenv("DATABASE_URL", config.database_url.get_secret_value())
    monkeypatch.setenv("IBID_HOME", str(config.home))
    monkeypatch.setenv("LOG_LEVEL", "CRITICAL")

    def run(*arguments: str, key: str = "") -> tuple[int, str, str]:
        monkeypatch.setenv("IBID_API_KEY", key)
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_the_command_line_makes_a_key_of_the_local_user(command: Any, server: LocalServer) -> None:
    """KEY-1, FIX-6"""
    code, printed, _ = command("key", "Open WebUI", "--scope", "ask", "--scope", "read")
    assert code == 0
    with act(server, printed.strip()) as http:
        assert http.get("/api/rag/me").json()["scopes"] == ["ask", "read"]


def test_the_command_line_makes_no_key_where_there_is_no_local_user(command: Any, monkeypatch: Any) -> None:
    """KEY-1"""
    monkeypatch.setenv("SUPABASE_URL", "https://project.supabase.co")
    code, printed, error = command("key", "script", "--scope", "read")
    assert (code, printed, error.startswith("ibid: SUPABASE_URL is set")) == (1, "", True)


def test_the_command_line_asks_and_ingests_as_the_owner_of_a_key(command: Any, reader: Person, tmp_path: Path) -> None:
    """KEY-1, FIX-6"""
    key = make_key(reader, "ask", "write")["key"]
    (tmp_path / "stove.txt").write_bytes(b"The stove burns peat in autumn.")
    assert command("ingest", str(tmp_path / "stove.txt"), key=key)[0] == 0
    assert sorted(item["file_name"] for item in reader.get("/documents")["items"]) == ["boiler.txt", "stove.txt"]
    assert "peat" in command("ask", "What does the stove burn?", key=key)[1]


def test_the_command_line_says_what_is_wrong_with_a_key(command: Any, ada: Person) -> None:
    """KEY-1, FIX-6"""
    key = make_key(ada, "read")["key"]
    lacking = "ibid: This API key or sign-in lacks the scope 'ask'. Make a key that has it.\n"
    assert command("ask", QUESTION, key=key) == (1, "", lacking)
    unknown = "ibid: This API key does not exist, or it was revoked. Make a new one.\n"
    assert command("ask", QUESTION, key="ibid_x") == (1, "", unknown)
    code, _, error = command("key", "x", "--scope", "read", "--days", "0")
    assert (code, error.startswith("ibid: the command is not valid: ")) == (1, True)
