"""Every function behind the API gateway, invoked with the gateway's events."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from uuid import uuid4

import pytest

from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import Caller
from tests.support import documents, page_files, service

FACT = b"The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn in winter?"
HTTP = ["chat", "conversations", "documents", "mcp", "notebooks", "page", "search", "settings"]
PLAIN = {"accept-encoding": "identity"}
CLOSED = {
    "chat": ("POST", "/api/rag/chat"),
    "conversations": ("GET", "/api/rag/conversations"),
    "documents": ("GET", "/api/rag/documents"),
    "mcp": ("POST", "/mcp"),
    "notebooks": ("GET", "/api/rag/notes"),
    "page": ("GET", "/api/rag/me"),
    "search": ("GET", "/api/rag/search"),
    "settings": ("GET", "/api/rag/settings"),
}


def test_the_list_of_modules_behind_the_gateway_is_complete() -> None:
    """FIX-3"""
    own_frames = {"functions.retention", "functions.storage_event"}  # they also answer events
    modules = {module for name, module in service.python_handlers().items() if service.routes(name)}
    assert {f"functions.{module}" for module in HTTP} == modules - own_frames


@pytest.mark.parametrize("module", HTTP)
def test_a_request_without_a_token_is_refused(services: Services, module: str) -> None:
    """SEC-1"""
    answer = events.send(module, events.http(*CLOSED[module]))
    assert answer.problem == (401, "not_signed_in")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("module", HTTP)
def test_the_route_of_another_function_is_not_found(services: Services, module: str) -> None:
    assert events.send(module, events.http("GET", "/api/rag/elsewhere")).problem == (404, "not_found")


# documents


def test_a_document_is_announced_through_the_gateway(caller: Caller) -> None:
    """LIB-3"""
    body = {"fileName": "été 👩‍🚀.txt", "size": 30, "mimeType": "text/plain"}
    answer = caller.call("documents", "POST", "/api/rag/documents", body)
    assert answer.status == 201
    assert answer.json["upload"]["url"].startswith("https://r3pmxmplak.execute-api.eu-central-1.amazonaws.com/storage/")
    stored = caller.row(
        "select owner_id, file_name, status from rag.documents where id = %s", answer.json["document"]["id"]
    )
    assert (str(stored["owner_id"]), stored["file_name"], stored["status"]) == (
        caller.user.id,
        "été 👩‍🚀.txt",
        "awaiting_upload",
    )


def test_a_body_in_base64_is_read(caller: Caller) -> None:
    body = {"file_name": "a.txt", "size": 5}
    assert caller.call("documents", "POST", "/api/rag/documents", body, encoded=True).status == 201


def test_an_uploaded_document_can_be_found_read_and_deleted(services: Services, caller: Caller) -> None:
    """LIB-8, LIB-9"""
    document = caller.add(FACT)
    address = f"/api/rag/documents/{document['id']}"
    assert caller.call("documents", "GET", "/api/rag/documents", query="status=indexed&limit=5").json["items"] == [
        document
    ]
    assert caller.call("documents", "GET", f"{address}/text", query="page=1").json["pages"][0]["text"] == FACT.decode()
    removed = caller.call("documents", "DELETE", address).json["removed"]
    assert removed == {"documents": 1, "pages": 1, "chunks": 1, "vectors": 1, "jobs": 1, "objects": 1}
    assert caller.row("select count(*) as n from rag.chunks where owner_id = %s", caller.user.id) == {"n": 0}
    assert not list((services.config.home / "storage" / "documents" / caller.user.id).rglob("*.txt"))


def test_finalizing_starts_a_worker(services: Services, caller: Caller, nudges: list[int]) -> None:
    """LIB-3, ING-10"""
    document = caller.announce()
    job_id = caller.store(document, FACT)
    # as without the storage trigger
    caller.row("delete from rag.ingest_jobs where id = %s returning id", job_id)
    caller.row("update rag.documents set status = 'awaiting_upload' where id = %s returning id", document["id"])
    answer = caller.call("documents", "POST", f"/api/rag/documents/{document['id']}/finalize")
    assert (answer.status, answer.json["status"]) == (200, "uploaded")
    assert nudges == [caller.row("select id from rag.ingest_jobs where document_id = %s", document["id"])["id"]]


def test_a_page_image_passes_through_the_gateway(caller: Caller, tmp_path: Path) -> None:
    """LIB-9"""
    pdf = documents.make_pdf(tmp_path / "a.pdf", FACT.decode()).read_bytes()
    document = caller.add(pdf, "a.pdf")
    answer = caller.call("documents", "GET", f"/api/rag/documents/{document['id']}/pages/1.png", query="start=4&end=10")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
    assert answer.content.startswith(documents.PNG_HEADER)


def test_another_users_document_is_not_found(services: Services, caller: Caller) -> None:
    """SEC-3"""
    document = caller.announce()
    answer = Caller(services).call("documents", "DELETE", f"/api/rag/documents/{document['id']}")
    assert answer.problem == (404, "not_found")
    assert caller.row("select count(*) as n from rag.documents where id = %s", document["id"]) == {"n": 1}


# notebooks


def test_a_saved_note_starts_a_worker_and_is_found(services: Services, caller: Caller, nudges: list[int]) -> None:
    """LIB-2"""
    notebook = caller.call("notebooks", "POST", "/api/rag/notebooks", {"title": "Heating"}).json
    body = {"title": "Été", "content": FACT.decode(), "notebookId": notebook["id"]}
    note = caller.call("notebooks", "POST", "/api/rag/notes", body)
    assert (note.status, note.json["status"]) == (201, "queued")
    (job_id,) = nudges
    outcome = services.make_worker().ingest_next(job_id)
    assert outcome is not None
    assert (outcome.source_id, outcome.status) == (note.json["id"], "done")
    hits = caller.call("search", "GET", "/api/rag/search", query=f"q=wood&notebook_id={notebook['id']}").json["hits"]
    assert [(hit["source"], hit["document_id"]) for hit in hits] == [("note", note.json["id"])]


def test_only_a_changed_text_starts_a_worker(caller: Caller, nudges: list[int]) -> None:
    note = caller.call("notebooks", "POST", "/api/rag/notes", {"title": "Empty"}).json
    address = f"/api/rag/notes/{note['id']}"
    assert caller.call("notebooks", "POST", f"{address}/trash").json["trashed_at"]
    assert caller.call("notebooks", "POST", f"{address}/restore").status == 200
    assert nudges == []
    assert caller.call("notebooks", "PATCH", address, {"content": FACT.decode()}).json["status"] == "queued"
    assert nudges == [caller.row("select id from rag.ingest_jobs where note_id = %s", note["id"])["id"]]
    assert caller.call("notebooks", "DELETE", address).json["removed"]["jobs"] == 1


# chat, conversations, search


@pytest.mark.parametrize("sample", ["http_api", "function_url"])
def test_a_question_is_answered_cited_and_saved(caller: Caller, sample: str) -> None:
    """CHAT-1"""
    document = caller.add(FACT)
    answer = caller.call("chat", "POST", "/api/rag/chat", {"query": QUESTION}, sample=sample)
    assert (answer.status, answer.json["answer"]) == (200, f"{FACT.decode()} [1]")
    source = answer.json["sources"][0]
    assert (source["document_id"], source["page_start"], source["quote"]) == (document["id"], 1, FACT.decode())
    saved = caller.row("select content, status from rag.messages where id = %s", answer.json["message_id"])
    assert saved == {"content": answer.json["answer"], "status": "complete"}


def test_a_stream_buffered_by_the_gateway_is_still_a_stream_of_events(caller: Caller) -> None:
    """CHAT-2"""
    caller.add(FACT)
    answer = caller.call("chat", "POST", "/api/rag/chat", {"query": QUESTION, "stream": True}, sample="function_url")
    assert answer.headers["content-type"].startswith("text/event-stream")
    data = [json.loads(line.removeprefix("data: ")) for line in answer.content.decode().split("\n\n") if line]
    assert [next(iter(event)) for event in data] == ["meta", "text", "done"]


def test_conversations_are_listed_read_renamed_and_deleted(caller: Caller) -> None:
    """CHAT-11"""
    conversation_id = caller.call("chat", "POST", "/api/rag/chat", {"query": QUESTION}).json["conversation_id"]
    address = f"/api/rag/conversations/{conversation_id}"
    assert [row["id"] for row in caller.call("conversations", "GET", "/api/rag/conversations").json["items"]] == [
        conversation_id
    ]
    messages = caller.call("conversations", "GET", f"{address}/messages").json["items"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert caller.call("conversations", "PATCH", address, {"title": "Heating"}).json["title"] == "Heating"
    assert caller.row("select title from rag.conversations where id = %s", conversation_id) == {"title": "Heating"}
    deleted = caller.call("conversations", "DELETE", address)
    assert (deleted.status, deleted.content) == (204, b"")
    assert caller.row("select count(*) as n from rag.messages where conversation_id = %s", conversation_id) == {"n": 0}


def test_a_search_takes_its_query_from_the_address(caller: Caller) -> None:
    """RET-11"""
    document = caller.add(FACT)
    answer = caller.call("search", "GET", "/api/rag/search", query=f"q=wood+chips%3F&document_id={document['id']}")
    assert [(hit["document_id"], hit["text"]) for hit in answer.json["hits"]] == [(document["id"], FACT.decode())]
    assert answer.json["query"] == "wood chips?"


# settings


def test_a_change_of_settings_is_saved_and_audited(admin: Caller) -> None:
    """SET-3, SET-4"""
    before = admin.call("settings", "GET", "/api/rag/settings").json
    changed = admin.call("settings", "PATCH", "/api/rag/settings", {"rrf_k": 50, "guard_message": "Désolé."})
    assert (changed.status, changed.json) == (200, before | {"rrf_k": 50, "guard_message": "Désolé."})
    audited = admin.row(
        "select array_agg(key order by key) as keys, array_agg(new_value order by key) as new,"
        " min(old_value::text) as old from rag.settings_audit where changed_by = %s",
        admin.user.id,
    )
    assert audited == {"keys": ["guard_message", "rrf_k"], "new": ["Désolé.", 50], "old": None}


def test_one_invalid_setting_prevents_all_changes_and_every_fault_is_named(admin: Caller) -> None:
    """SET-3"""
    changes = {"rrf_k": 50, "context_turns": 0, "fts_weight": "1", "nonsense": 1, "guard_message": "a\x00"}
    answer = admin.call("settings", "PATCH", "/api/rag/settings", changes)
    assert answer.problem == (400, "invalid_settings")
    assert answer.json["faults"] == [
        {"key": "context_turns", "message": "This must be between 1 and 10."},
        {"key": "fts_weight", "message": "This must be a number."},
        {"key": "nonsense", "message": "There is no such setting."},
        {"key": "guard_message", "message": "This contains a character that cannot be stored."},
    ]
    assert admin.row("select count(*) as n from rag.settings") == {"n": 0}


def test_only_an_administrator_changes_settings(caller: Caller) -> None:
    """SET-4"""
    answer = caller.call("settings", "PATCH", "/api/rag/settings", {"rrf_k": 50})
    assert answer.problem == (403, "not_admin")
    assert caller.row("select count(*) as n from rag.settings") == {"n": 0}


def test_the_schema_describes_every_setting(caller: Caller) -> None:
    """SET-5"""
    described = caller.call("settings", "GET", "/api/rag/settings/schema").json["settings"]
    values = caller.call("settings", "GET", "/api/rag/settings").json
    assert {row["key"]: row["default"] for row in described} == values
    assert all(row["description"].endswith(".") for row in described)


# page


def test_the_page_and_its_files_are_served(services: Services) -> None:
    """WEB-1"""
    page = events.send("page", events.http("GET", "/", headers=PLAIN))
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    script = events.send("page", events.http("GET", page_files.script_of(page.content.decode())))
    assert (script.status, script.headers["content-type"].partition(";")[0]) == (200, "text/javascript")
    assert events.send("page", events.http("GET", "/static/../app.py")).problem == (404, "not_found")


@pytest.mark.parametrize("accepted", ["gzip", "br;q=1.0, gzip;q=0.8", "*"])
def test_the_gateway_is_given_compressed_files_as_base64(services: Services, accepted: str) -> None:
    """WEB-1: a body of bytes would reach the browser damaged."""
    plain = events.send("page", events.http("GET", "/", headers=PLAIN))
    raw = events.invoke("page", events.http("GET", "/", headers={"accept-encoding": accepted}))
    assert (raw["isBase64Encoded"], raw["headers"]["content-encoding"]) == (True, "gzip")
    assert gzip.decompress(base64.b64decode(raw["body"])) == plain.content


def test_health_and_readiness_are_ok(services: Services) -> None:
    """OPS-4"""
    assert events.send("page", events.http("GET", "/health")).json == {"status": "ok"}
    ready = events.send("page", events.http("GET", "/ready"))
    assert (ready.status, ready.json["status"]) == (200, "ok")


def test_a_malformed_id_is_not_found(caller: Caller) -> None:
    for module in ("documents", "conversations"):
        answer = caller.call(module, "DELETE", f"/api/rag/{module}/{uuid4()}x")
        assert answer.problem == (404, "not_found")
