"""API-1: the OpenAPI document is complete: a client that is made of it alone can call every operation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import CRON_SECRET
from tests.support import documents
from tests.support.fakes.model_server import FakeModelServer
from tests.support.generated_client import GeneratedClient
from tests.support.local_server import Json, LocalServer, Person, wait_until

FACT = "The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn?"
RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
# Operations that a laptop refuses.
ONLY_IN_THE_CLOUD = {"mcp_describe_origin", "mcp_describe_resource"}


@pytest.fixture(scope="module")
def document(server: LocalServer) -> Json:
    return dict(server.http.get("/openapi.json").json())


@pytest.fixture
def client(document: Json, admin: Person) -> GeneratedClient:
    return GeneratedClient(document, admin.http)


@pytest.fixture(scope="module")
def tour(document: Json, server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GeneratedClient]:
    """A client that has called every operation, in the order in which a person would."""
    with server.person("Ada", admin=True) as ada:
        client = GeneratedClient(document, ada.http)
        file = documents.make_pdf(tmp_path_factory.mktemp("tour") / "boiler.pdf", FACT)
        notebook = client.call("notebooks_create_notebook", {"title": "House"})["id"]
        walk_documents(client, ada, file, notebook)
        walk_notes(client, ada, notebook)
        walk_answers(client, ada)
        walk_settings(client)
        walk_servers(client)
        walk_translation(client, ada)
        walk_service(client, server)
        client.call("notebooks_delete_notebook", notebook_id=notebook)
        yield client


def walk_translation(client: GeneratedClient, ada: Person) -> None:
    """With a translator whose models are missing: the document is ready all the same."""
    client.call("settings_change_settings", {"translate_documents": "both"})
    document = ada.follow(ada.add_bytes("tour.txt", b"The stove burns peat. It is in the cellar.")["id"])
    client.call("documents_request_translation", document_id=document["id"])
    client.call("settings_change_settings", {"translate_documents": "off"})


def walk_documents(client: GeneratedClient, ada: Person, file: Path, notebook: str) -> None:
    content = file.read_bytes()
    ticket = client.call("documents_create_document", {"file_name": file.name, "size": len(content)})
    assert ada.put(ticket, content).status_code == 200
    own = {"document_id": ticket["document"]["id"]}
    client.call("documents_finalize_document", **own)
    ada.follow(own["document_id"])
    client.call("documents_list_documents", status="indexed", limit=5)
    sha256 = client.call("documents_get_document", **own)["sha256"]
    client.call("documents_create_document", {"file_name": "b.pdf", "size": len(content), "sha256": sha256})
    client.call("documents_update_document", {"notebook_id": notebook}, **own)
    assert client.call("documents_get_text", **own, page=1)["pages"][0]["text"].strip() == FACT
    assert client.call("documents_get_page_image", **own, number=1, start=0, end=5).startswith(b"\x89PNG")
    client.call("documents_get_download", **own)
    assert client.call("documents_get_outline", **own)["sections"] == []
    assert client.call("documents_find_in_document", **own, q="boiler")["matches"][0]["page"] == 1
    for again in ("documents_request_ingestion", "documents_retry"):
        client.call(again, **own)
        ada.follow(own["document_id"])
    extra = ada.add_bytes("extra.txt", b"The stove burns peat.")["id"]
    client.call("documents_trash_document", document_id=extra)
    client.call("documents_restore_document", document_id=extra)
    client.call("documents_delete_document", document_id=extra)


def walk_notes(client: GeneratedClient, ada: Person, notebook: str) -> None:
    client.call("notebooks_list_notebooks", title="Hou")
    client.call("notebooks_get_notebook", notebook_id=notebook)
    client.call("notebooks_rename_notebook", {"title": "Home", "instructions": "briefly"}, notebook_id=notebook)
    note = client.call("notes_create_note", {"title": "Boiler", "content": FACT, "notebook_id": notebook})
    own = {"note_id": note["id"]}
    client.call("notes_get_note", **own, wait=20)
    client.call("notes_update_note", {"title": "The boiler"}, **own)
    client.call("notes_list_notes", notebook_id=notebook)
    client.call("notes_reindex_note", **own)
    assert client.call("notes_get_note", **own, wait=20)["status"] == "indexed"
    client.call("notes_get_text", **own)
    client.call("notes_trash_note", **own)
    client.call("notes_restore_note", **own)
    client.call("notes_delete_note", **own, attachments="keep")


def walk_answers(client: GeneratedClient, ada: Person) -> None:
    client.call("search_search", q=QUESTION)
    assert client.call("search_search", q=QUESTION, debug=True, limit=3)["hits"][0]["arms"]["fts_rank"] == 1
    answer = client.call("chat_ask", {"query": QUESTION})
    assert client.call("chat_ask", {"query": QUESTION, "stream": True}).startswith(b"data: ")
    client.call("search_suggest_questions", lang="fr")
    own = {"conversation_id": answer["conversation_id"]}
    client.call("conversations_list_conversations", q="boiler")
    again = {"query": QUESTION, "conversation_id": own["conversation_id"], "replaces": answer["question_id"]}
    answer = client.call("chat_ask", again)
    client.call("conversations_rate_answer", {"rating": "down", "reason": "?"}, **own, message_id=answer["message_id"])
    assert client.call("conversations_list_ratings")["items"][0]["question"] == QUESTION
    client.call("conversations_rename_conversation", {"title": "Heating"}, **own)
    client.call("conversations_list_messages", **own)
    attached: Json = {"document_ids": [answer["sources"][0]["document_id"]]}
    client.call("conversations_replace_documents", attached, **own)
    client.call("conversations_attach_documents", attached, **own)
    client.call("conversations_list_documents", **own)
    client.call("conversations_detach_document", **own, document_id=attached["document_ids"][0])
    assert client.call("conversations_export_conversation", **own, lang="fr").startswith(b"# ")
    client.call("conversations_save_answer_as_note", {}, **own, message_id=answer["message_id"])
    client.call("conversations_withdraw_rating", **own, message_id=answer["message_id"])
    client.call("conversations_delete_conversation", **own)
    client.call("completions_list_models")
    client.call("completions_get_model", model="ibid")
    body = {"model": "ibid", "messages": [{"role": "user", "content": QUESTION}]}
    assert client.call("completions_complete", body)["ibid"]["sources"]
    client.call("completions_complete", body | {"stream": True})


def walk_settings(client: GeneratedClient) -> None:
    before = client.call("settings_get_settings")
    client.call("settings_get_schema", lang="fr")
    client.call("settings_change_settings", {"rrf_k": 11})
    client.call("settings_list_changes", limit=5)
    client.call("settings_change_settings", {"rrf_k": before["rrf_k"]})
    assert client.call("settings_get_usage", everyone=True, days=2)["days"][-1]["questions"] > 0
    key = client.call("keys_create_key", {"name": "script", "scopes": ["read"]})
    client.call("keys_list_keys")
    client.call("keys_revoke_key", key_id=key["id"])


def walk_servers(client: GeneratedClient) -> None:
    with FakeModelServer(dimensions=64) as model:
        [first] = client.call("embedding_servers_get_servers")["servers"]
        body = {"name": "other", "model": "other-model", "base_url": model.base_url}
        own = {"server_id": client.call("embedding_servers_add_server", body)["id"]}
        client.call("embedding_servers_try_server", **own)
        client.call("embedding_servers_change_server", {"batch_size": 10}, **own)
        client.call("embedding_servers_embed_texts", {"texts": [FACT], **own})
        client.call("embedding_servers_estimate_move", **own)
        client.call("embedding_servers_begin_move", **own)
        client.call("embedding_servers_steer_move", action="cancel")
        client.call("embedding_servers_retry_sources")
        client.call("embedding_servers_adopt_server")
        client.call("embedding_servers_change_server", {"is_default": True}, server_id=first["id"])
        wait_until(lambda: client.call("embedding_servers_get_servers")["reindexing"] is None)
        client.call("embedding_servers_remove_server", **own)


def walk_service(client: GeneratedClient, server: LocalServer) -> None:
    for operation_id in ("page_get_me", "page_get_sign_in", "health_get_health", "health_get_ready"):
        client.call(operation_id)
    client.http.headers["Accept"] = "application/json, text/event-stream"
    client.call("mcp_exchange", RPC)
    assert b"ai_rag_retrieve_total" in client.call("health_get_metrics")
    with server.open_client(Authorization=f"Bearer {CRON_SECRET}") as http:
        cron = GeneratedClient(client.document, http)
        cron.call("routes_run_retention")
        client.called |= cron.called


def test_every_operation_answers_as_the_document_says(tour: GeneratedClient) -> None:
    """API-1"""
    assert sorted(tour.operation_ids) == sorted(tour.called | ONLY_IN_THE_CLOUD)


def test_every_operation_describes_its_success_and_its_errors(client: GeneratedClient) -> None:
    """API-1"""
    assert len(client.operation_ids) == len(set(client.operation_ids))
    for operations in client.document["paths"].values():
        for operation in operations.values():
            assert re.fullmatch(r"[a-z_]+", operation["operationId"])
            assert "HTTPValidationError" not in str(operation["responses"])  # of FastAPI; we answer 400
            success = {status: r for status, r in operation["responses"].items() if status.startswith("2")}
            assert success
            assert all(r["content"] for status, r in success.items() if status not in ("202", "204"))


def test_every_reference_leads_to_a_schema(document: Json) -> None:
    """API-1"""
    references = set(re.findall(r'"\$ref": ?"#/components/schemas/([^"]+)"', httpx.Response(200, json=document).text))
    assert references == set(document["components"]["schemas"])


OPTIONAL = ("/metrics", "/ready")  # take the metrics token, but a laptop answers without it


def test_exactly_the_protected_routes_ask_for_a_token(document: Json, server: LocalServer) -> None:
    """API-1, SEC-1"""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            ids = dict.fromkeys(re.findall(r"\{(\w+)\}", path), "1")
            answer = server.http.request(method, path.format_map(ids))
            assert ("security" in operation) == (answer.status_code == 401 or path in OPTIONAL), (method, path)


@pytest.mark.parametrize(
    ("operation_id", "body", "code"),
    [
        ("chat_ask", {"query": ""}, "invalid_input"),
        ("settings_change_settings", {"rrf_k": 0}, "invalid_settings"),
        ("completions_complete", {"model": "gpt", "messages": [{"role": "user", "content": "?"}]}, "model_not_found"),
        ("mcp_describe_resource", None, "not_found"),
    ],
)
def test_an_error_has_the_form_that_the_document_describes(
    client: GeneratedClient, operation_id: str, body: Any, code: str
) -> None:
    """API-1, SEC-6"""
    assert client.refuse(operation_id, body) == code


def test_the_fields_of_requests_are_in_snake_case_as_in_responses(document: Json) -> None:
    """API-1"""
    names = [name for schema in document["components"]["schemas"].values() for name in schema.get("properties", {})]
    assert [name for name in names if name != name.lower()] == []


def test_the_page_of_the_api_needs_no_other_host(server: LocalServer, document: Json) -> None:
    """API-1, WEB-1"""
    page = server.http.get("/docs")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert re.findall(r"(?:src|href)=[\"']([^#\"'][^\"']*)", page.text) == ["/openapi.json"]
    assert "<script" not in page.text
    listed = re.findall(r"<h3 id=\"[a-z_]+\"><code>([A-Z]+ [^<]+)</code>", page.text)
    assert sorted(listed) == sorted(f"{m.upper()} {p}" for p, ms in document["paths"].items() for m in ms)
