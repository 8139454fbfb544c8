"""Conversations: attached documents, questions to the whole library, exports, and answers kept as notes."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from functions.runtime.services import Services
from tests.handlers.conftest import Caller
from tests.handlers.events import Answer, Json

WOOD = b"The boiler burns wood chips in winter."
PEAT = b"The boiler burns peat bricks in summer."
QUESTION = "What does the boiler burn?"


def ask(caller: Caller, query: str = QUESTION, **fields: Any) -> Json:
    answer = caller.call("chat", "POST", "/api/rag/chat", {"query": query} | fields)
    assert answer.status == 200, answer.content
    return dict(answer.json)


def call(caller: Caller, method: str, asked: Json, path: str, body: Any = None, **options: Any) -> Answer:
    """Sends a request about the conversation of an answer."""
    address = f"/api/rag/conversations/{asked['conversation_id']}{path}"
    return caller.call("conversations", method, address, body, **options)


def attach(caller: Caller, method: str, asked: Json, *ids: str) -> list[str]:
    """Attaches documents; returns the ids that are attached afterwards."""
    answer = call(caller, method, asked, "/documents", {"document_ids": list(ids)})
    assert answer.status == 200, answer.content
    return [item["id"] for item in answer.json["items"]]


def sources(answer: Json) -> set[str]:
    return {source["document_id"] for source in answer["sources"]}


# Attached documents


def test_further_questions_search_the_attached_documents_only(caller: Caller) -> None:
    """CHAT-3, CHAT-11"""
    wood, peat = caller.add(WOOD, "wood.txt")["id"], caller.add(PEAT, "peat.txt")["id"]
    first = ask(caller)
    assert sources(first) == {wood, peat}
    assert attach(caller, "PUT", first, peat) == [peat]
    attached = ask(caller, conversation_id=first["conversation_id"])
    assert (attached["scope"], sources(attached)) == ({"kind": "conversation", "document_ids": [peat]}, {peat})
    explicit = ask(caller, conversation_id=first["conversation_id"], document_ids=[wood])
    assert (explicit["scope"], sources(explicit)) == ({"kind": "documents", "document_ids": [wood]}, {wood})


def test_attached_documents_override_the_notebook_of_the_conversation(caller: Caller) -> None:
    """CHAT-3"""
    peat = caller.add(PEAT)["id"]
    notebook = caller.call("notebooks", "POST", "/api/rag/notebooks", {"title": "Heating"}).json["id"]
    first = ask(caller, notebook_id=notebook)
    attach(caller, "PUT", first, peat)
    assert ask(caller, conversation_id=first["conversation_id"])["scope"]["kind"] == "conversation"
    assert attach(caller, "PUT", first) == []
    assert ask(caller, conversation_id=first["conversation_id"])["scope"]["kind"] == "notebook"


def test_documents_are_added_replaced_listed_and_detached(caller: Caller) -> None:
    """CHAT-11"""
    one, two, three = (caller.announce(f"{name}.txt")["id"] for name in ("one", "two", "three"))
    first = ask(caller)
    assert attach(caller, "POST", first, one, one) == [one]
    assert attach(caller, "POST", first, two) == [one, two]
    assert attach(caller, "PUT", first, three, two) == [two, three]
    for _ in range(2):
        assert call(caller, "DELETE", first, f"/documents/{two}").status == 204
    assert call(caller, "DELETE", first, f"/documents/{uuid4()}").status == 204
    listed = call(caller, "GET", first, "/documents").json["items"]
    assert [(item["id"], item["file_name"], item["status"]) for item in listed] == [
        (three, "three.txt", "awaiting_upload")
    ]


def test_a_duplicate_is_attached_and_detached_as_its_original_document(caller: Caller) -> None:
    original, twin = caller.add(WOOD)["id"], caller.announce("twin.txt", len(WOOD))
    first = ask(caller)
    attach(caller, "PUT", first, twin["id"])
    caller.services.make_worker().ingest_next(caller.store(twin, WOOD))
    assert [item["id"] for item in call(caller, "GET", first, "/documents").json["items"]] == [original]
    assert call(caller, "DELETE", first, f"/documents/{original}").status == 204
    assert call(caller, "GET", first, "/documents").json == {"items": []}


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_an_unknown_document_is_not_found_and_nothing_is_attached(
    services: Services, caller: Caller, method: str
) -> None:
    """SEC-3"""
    own, foreign = caller.announce()["id"], Caller(services).announce()["id"]
    first = ask(caller)
    for unknown in (foreign, str(uuid4())):
        answer = call(caller, method, first, "/documents", {"document_ids": [own, unknown]})
        assert answer.problem == (404, "not_found")
    assert call(caller, "GET", first, "/documents").json == {"items": []}


def test_no_more_than_100_documents_are_attached(caller: Caller) -> None:
    first = ask(caller)
    many = [str(uuid4()) for _ in range(101)]
    assert call(caller, "PUT", first, "/documents", {"document_ids": many}).problem == (400, "invalid_input")
    caller.row(
        """
        with added as (
            insert into rag.documents (owner_id, file_name, file_type, size_bytes, object_path)
            select %s, n || '.txt', 'txt', 1, %s || n from generate_series(1, 100) n returning id, owner_id
        ), attached as (
            insert into rag.conversation_documents (conversation_id, document_id, owner_id)
            select %s, id, owner_id from added returning 1
        ) select count(*) from attached
        """,
        caller.user.id,
        f"{caller.user.id}/",
        first["conversation_id"],
    )
    one_more = {"document_ids": [caller.announce()["id"]]}
    assert call(caller, "POST", first, "/documents", one_more).problem == (400, "invalid_input")
    assert len(call(caller, "GET", first, "/documents").json["items"]) == 100


# The whole library


def test_one_question_can_ignore_the_scope_of_its_conversation(caller: Caller) -> None:
    """CHAT-3"""
    wood, peat = caller.add(WOOD, "wood.txt")["id"], caller.add(PEAT, "peat.txt")["id"]
    first = ask(caller)
    attach(caller, "PUT", first, peat)
    whole = ask(caller, conversation_id=first["conversation_id"], scope="library")
    assert (whole["scope"], sources(whole)) == ({"kind": "library"}, {wood, peat})
    assert ask(caller, conversation_id=first["conversation_id"])["scope"]["kind"] == "conversation"


@pytest.mark.parametrize("scope", ["notebook", "", 7])
def test_library_is_the_only_scope_name(caller: Caller, scope: object) -> None:
    answer = caller.call("chat", "POST", "/api/rag/chat", {"query": QUESTION, "scope": scope})
    assert answer.problem == (400, "invalid_input")
    assert "'library'" in answer.json["detail"]


@pytest.mark.parametrize("field", ["document_ids", "notebook_id", "note_id"])
def test_the_library_scope_cannot_be_combined_with_ids(caller: Caller, field: str) -> None:
    part: Any = [str(uuid4())] if field == "document_ids" else str(uuid4())
    answer = caller.call("chat", "POST", "/api/rag/chat", {"query": QUESTION, "scope": "library", field: part})
    assert answer.problem == (400, "invalid_input")


# Export


def test_a_conversation_is_exported_as_a_markdown_file(caller: Caller) -> None:
    """CHAT-11"""
    caller.add(WOOD, "wood_[1].txt")
    asked = ask(caller)
    call(caller, "PATCH", asked, "", {"title": "Été / # <b>"})
    answer = call(caller, "GET", asked, "/export")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/markdown; charset=utf-8")
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"conversation.md\"; filename*=UTF-8''%C3%89t%C3%A9%20%23%20b.md"
    )
    text = answer.content.decode()
    assert text.startswith("# Été / \\# \\<b\\>\n\n*Conversation of 2")
    assert f"\n\n{QUESTION}\n\n### Answer\n\n{WOOD.decode()} [1]\n\n**Sources**\n\n" in text
    assert text.endswith(f"1. **wood\\_\\[1\\].txt**, part 1 (exact)\n\n   > {WOOD.decode()}\n")


def test_an_export_marks_replaced_and_deleted_sources(caller: Caller) -> None:
    """CHAT-11, LIB-8"""
    document = caller.add(WOOD)
    asked = ask(caller)
    newer = caller.add(PEAT)["id"]
    assert "(exact; superseded by a newer version)" in call(caller, "GET", asked, "/export").content.decode()
    caller.call("documents", "DELETE", f"/api/rag/documents/{newer}")
    caller.call("documents", "DELETE", f"/api/rag/documents/{document['id']}")
    french = call(caller, "GET", asked, "/export", query="lang=fr").content.decode()
    assert "(exact; source supprimée)" in french
    assert f"> {WOOD.decode()}" in french


# Answers as notes


def test_an_answer_becomes_a_note_that_is_indexed(services: Services, caller: Caller, nudges: list[int]) -> None:
    """CHAT-12"""
    document = caller.add(WOOD)["id"]
    notebook = caller.call("notebooks", "POST", "/api/rag/notebooks", {"title": "Heating"}).json["id"]
    asked = ask(caller)
    path = f"/messages/{asked['message_id']}/note"
    saved = call(caller, "POST", asked, path, {"notebookId": notebook})
    assert saved.status == 201, saved.content
    note = saved.json
    assert (note["title"], note["notebook_id"], note["status"]) == (QUESTION, notebook, "queued")
    assert note["content"] == (
        f"{WOOD.decode()} [1]\n\n**Sources**\n\n"
        f"1. [boiler.txt](/#d={document}&page=1&start=0&end={len(WOOD)}), part 1 (exact)\n\n   > {WOOD.decode()}\n"
    )
    outcome = services.make_worker().ingest_next(nudges[-1])
    assert outcome is not None
    assert (outcome.source_id, outcome.status) == (note["id"], "done")
    assert call(caller, "POST", asked, path, {"title": "Wood"}).json["title"] == "Wood"


def test_an_interrupted_answer_can_also_be_saved_as_a_note(caller: Caller) -> None:
    """CHAT-12"""
    asked = ask(caller)
    caller.row("update rag.messages set status = 'interrupted' where id = %s returning id", asked["message_id"])
    note = call(caller, "POST", asked, f"/messages/{asked['message_id']}/note", {}).json
    assert note["content"].endswith("*This answer was interrupted before it was complete.*\n")


def test_only_answers_of_this_conversation_become_notes(services: Services, caller: Caller) -> None:
    """CHAT-12, SEC-3"""
    asked, other = ask(caller), ask(caller)
    question = call(caller, "GET", asked, "/messages").json["items"][0]["id"]
    for message_id in (question, other["message_id"], ask(Caller(services))["message_id"], str(uuid4()), "mine"):
        answer = call(caller, "POST", asked, f"/messages/{message_id}/note", {})
        assert answer.problem == (404, "not_found")
    assert caller.call("notebooks", "GET", "/api/rag/notes").json["items"] == []
