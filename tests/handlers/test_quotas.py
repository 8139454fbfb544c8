"""OPS-5 over HTTP: a 429 in the form of each protocol, sent before a stream begins."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from functions.core import errors
from functions.runtime import asking
from functions.runtime.services import Services
from tests.handlers.conftest import Caller
from tests.handlers.events import Answer, Json
from tests.support import documents

CHAT = ("chat", "POST", "/api/rag/chat")
COMPLETION = {"model": "ibid", "messages": [{"role": "user", "content": "Anything?"}]}
TOOL_CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "document_search", "arguments": {"query": "Anything?"}},
}


@pytest.fixture(autouse=True)
def wait_for_a_full_minute() -> None:
    """Waits when a minute is about to end, because the test would span two quota windows."""
    left = 60 - time.time() % 60
    time.sleep(left if left < 6 else 0)


def limit(admin: Caller, **settings: Any) -> None:
    assert admin.call("settings", "PATCH", "/api/rag/settings", settings).status == 200


def ask(caller: Caller, **body: Any) -> Answer:
    return caller.call(*CHAT, {"query": "Anything?"} | body)


def complete(caller: Caller, **body: Any) -> Answer:
    return caller.call("chat", "POST", "/v1/chat/completions", COMPLETION | body)


def search(caller: Caller) -> Answer:
    return caller.call("search", "GET", "/api/rag/search", query="q=anything")


def announce(caller: Caller, size: int = 30) -> Answer:
    return caller.call("documents", "POST", "/api/rag/documents", {"file_name": "a.txt", "size": size})


def write_note(caller: Caller, content: str = "The boiler burns wood chips.") -> Answer:
    return caller.call("notebooks", "POST", "/api/rag/notes", {"content": content})


def change_note(caller: Caller, note: Json, **changes: Any) -> Answer:
    return caller.call("notebooks", "PATCH", f"/api/rag/notes/{note['id']}", changes)


def add_notebook(caller: Caller) -> Answer:
    return caller.call("notebooks", "POST", "/api/rag/notebooks", {"title": "House"})


def call_tool(caller: Caller) -> Json:
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    answer = caller.call("mcp", "POST", "/mcp", TOOL_CALL, headers=headers)
    assert answer.status == 200, answer.content
    result: Json = answer.json["result"]
    return result


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_over_the_quota_gets_a_429_with_retry_after(caller: Caller, admin: Caller, stream: bool) -> None:
    limit(admin, questions_per_day=1)
    assert ask(caller).status == 200
    refused = ask(caller, stream=stream)
    assert refused.problem == (429, "quota_exceeded")
    assert "1 questions today" in refused.json["detail"]
    assert 0 < int(refused.headers["retry-after"]) <= 24 * 3600


@pytest.mark.parametrize("stream", [False, True])
def test_openai_clients_get_the_429_in_openais_form(caller: Caller, admin: Caller, stream: bool) -> None:
    """CHAT-10"""
    limit(admin, requests_per_minute=1)
    assert complete(caller).status == 200
    refused = complete(caller, stream=stream)
    assert (refused.status, refused.json["error"]["type"], refused.json["error"]["code"]) == (
        429,
        "rate_limit_error",
        "rate_limited",
    )
    assert 0 < int(refused.headers["retry-after"]) <= 60


def test_a_refused_question_is_not_saved(caller: Caller, admin: Caller) -> None:
    limit(admin, requests_per_minute=1)
    ask(caller), ask(caller)
    assert caller.row("select count(*) as n from rag.conversations where owner_id = %s", caller.user.id) == {"n": 1}


def test_questions_searches_and_tool_calls_share_one_quota_per_minute(caller: Caller, admin: Caller) -> None:
    limit(admin, requests_per_minute=3)
    assert [ask(caller).status, search(caller).status, call_tool(caller)["isError"]] == [200, 200, False]
    assert [ask(caller).problem, search(caller).problem] == [(429, "rate_limited")] * 2
    said = call_tool(caller)
    assert said["isError"] is True
    assert "within a minute. Try again in" in said["content"][0]["text"]


def test_concurrent_questions_cannot_exceed_the_quota(caller: Caller, admin: Caller) -> None:
    limit(admin, questions_per_day=3)

    def is_answered(_: int) -> bool:
        try:
            return [*asking.ask(caller.services, caller.user, asking.Question("Anything?"))] != []
        except errors.QuotaExceededError:
            return False

    with ThreadPoolExecutor(6) as pool:  # a handler serves one request at a time
        assert sum(pool.map(is_answered, range(12))) == 3


def test_a_full_library_refuses_uploads(caller: Caller, admin: Caller) -> None:
    limit(admin, max_documents=1)
    assert announce(caller).status == 201
    refused = announce(caller)
    assert refused.problem == (429, "quota_exceeded")
    assert "holds 1 documents" in refused.json["detail"]


def test_announced_bytes_count_before_they_are_sent(caller: Caller, admin: Caller) -> None:
    limit(admin, max_library_megabytes=1)
    assert announce(caller, 1024 * 1024 + 1).problem == (429, "quota_exceeded")
    assert announce(caller, 1024 * 1024).status == 201


def test_a_duplicate_does_not_count_towards_the_quota(caller: Caller, admin: Caller) -> None:
    document = caller.add(b"The boiler burns wood chips in winter.")
    limit(admin, max_documents=1)
    body = {"file_name": "b.txt", "size": document["size_bytes"], "sha256": document["sha256"]}
    again = caller.call("documents", "POST", "/api/rag/documents", body)
    assert (again.status, again.json["duplicate"]) == (200, True)


def test_uploads_have_their_own_quota_per_minute(caller: Caller, admin: Caller) -> None:
    limit(admin, uploads_per_minute=1, requests_per_minute=1)
    assert [announce(caller).status, search(caller).status, announce(caller).status] == [201, 200, 429]


@pytest.mark.parametrize("again", ["retry", "reindex"])
def test_indexing_a_document_again_counts_as_an_upload(caller: Caller, admin: Caller, again: str) -> None:
    document = caller.add(b"The boiler burns wood chips in winter.")
    limit(admin, uploads_per_minute=2)  # the first was the upload
    act = ("documents", "POST", f"/api/rag/documents/{document['id']}/{again}")
    assert [caller.call(*act).status, caller.call(*act).problem] == [200, (429, "rate_limited")]


def test_finalizing_is_counted_with_its_upload(caller: Caller, admin: Caller) -> None:
    """LIB-3"""
    limit(admin, uploads_per_minute=1)
    document = caller.announce("boiler.txt", 1000)
    caller.store(document, b"The boiler burns wood chips in winter.")
    assert caller.call("documents", "POST", f"/api/rag/documents/{document['id']}/finalize").status == 200


def test_notes_and_notebooks_share_the_quota_of_uploads(caller: Caller, admin: Caller) -> None:
    limit(admin, uploads_per_minute=4)
    note = write_note(caller).json
    assert [change_note(caller, note, title="Heating").status, add_notebook(caller).status] == [200, 201]
    reindex = ("notebooks", "POST", f"/api/rag/notes/{note['id']}/reindex")
    assert caller.call(*reindex).status == 200
    refused = [
        caller.call(*reindex),
        write_note(caller),
        change_note(caller, note, content="New"),
        add_notebook(caller),
    ]
    assert [answer.problem for answer in refused] == [(429, "rate_limited")] * 4
    assert "saved or re-indexed more than 4 items within a minute" in refused[0].json["detail"]


def test_moving_a_note_costs_nothing(caller: Caller, admin: Caller) -> None:
    note, notebook = write_note(caller).json, add_notebook(caller).json
    limit(admin, uploads_per_minute=1)
    assert change_note(caller, note, notebook_id=notebook["id"]).status == 200


def test_a_full_library_refuses_notes_and_notebooks(caller: Caller, admin: Caller) -> None:
    limit(admin, max_documents=2)
    note = write_note(caller).json
    assert add_notebook(caller).status == 201
    refused = [announce(caller), write_note(caller), add_notebook(caller)]
    assert [answer.problem for answer in refused] == [(429, "quota_exceeded")] * 3
    assert change_note(caller, note, content="It adds nothing to the library.").status == 200


def test_the_text_of_notes_counts_as_bytes(caller: Caller, admin: Caller) -> None:
    """Each "é" has two bytes. A note may always become shorter."""
    limit(admin, max_library_megabytes=1)
    *_, full = [write_note(caller, "é" * 100_000).json for _ in range(5)]
    small = write_note(caller, "").json
    assert write_note(caller, "é" * 30_000).problem == (429, "quota_exceeded")
    assert change_note(caller, small, content="é" * 30_000).problem == (429, "quota_exceeded")
    assert change_note(caller, full, content="é" * 50_000).status == 200
    assert change_note(caller, small, content="é" * 30_000).status == 200


def test_page_images_count_as_requests(caller: Caller, admin: Caller, tmp_path: Path) -> None:
    content = documents.make_pdf(tmp_path / "boiler.pdf", "The boiler burns wood chips.").read_bytes()
    document = caller.add(content, "boiler.pdf")
    limit(admin, requests_per_minute=1)
    act = ("documents", "GET", f"/api/rag/documents/{document['id']}/pages/1.png")
    assert [caller.call(*act).status, caller.call(*act).problem] == [200, (429, "rate_limited")]


def test_a_counted_search_is_still_one_round_trip(
    caller: Caller, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.policy()
    statements: list[tuple[int, str]] = []
    assert services.config.database_url is not None
    execute, dsn = psycopg.Cursor.execute, services.config.database_url.get_secret_value()

    def count(self: Any, query: Any, *rest: Any, **options: Any) -> Any:
        if self.connection.info.dbname in dsn:  # another test's server may run in this process
            statements.append((threading.get_ident(), str(query)))
        return execute(self, query, *rest, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", count)
    assert search(caller).status == 200
    (searching,) = [thread for thread, query in statements if "hybrid_search" in query]
    assert [thread for thread, _ in statements].count(searching) == 1  # a worker may run statements in its own thread


def test_every_user_has_their_own_daily_quota(caller: Caller, admin: Caller) -> None:
    limit(admin, questions_per_day=1)
    assert [ask(someone).status for someone in (caller, Caller(caller.services), caller)] == [200, 200, 429]


def test_quotas_are_settings(admin: Caller) -> None:
    """SET-3"""
    refused = admin.call("settings", "PATCH", "/api/rag/settings", {"questions_per_day": -1})
    assert refused.problem == (400, "invalid_settings")
    rows = admin.call("settings", "GET", "/api/rag/settings/schema").json["settings"]
    assert {"questions_per_day", "requests_per_minute", "max_documents"} <= {row["key"] for row in rows}
