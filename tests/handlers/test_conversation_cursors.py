"""Paging through conversations and messages, and the limits of renaming, deleting, attaching, exporting and keeping."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import uuid4

import pytest

from functions.runtime.services import Services
from tests.handlers.conftest import Caller
from tests.handlers.events import Answer, Json

UNKNOWN_ID = "00000000-0000-4000-8000-00000000000f"
FACT = "The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn in winter?"
LIST = "/api/rag/conversations"


def ask(caller: Caller, query: str = QUESTION, **fields: Any) -> Json:
    answer = caller.call("chat", "POST", "/api/rag/chat", {"query": query} | fields)
    assert answer.status == 200, answer.content
    return dict(answer.json)


def call(caller: Caller, method: str, path: str, body: Any = None, **options: Any) -> Answer:
    return caller.call("conversations", method, path, body, **options)


def page(caller: Caller, path: str = LIST, **params: Any) -> Json:
    answer = call(caller, "GET", path, query="&".join(f"{key}={value}" for key, value in params.items()))
    assert answer.status == 200, answer.content
    return dict(answer.json)


def read_all(caller: Caller, path: str, limit: int) -> list[list[Json]]:
    """All pages of a list."""
    pages = [page(caller, path, limit=limit)]
    while cursor := pages[-1]["next_cursor"]:
        pages.append(page(caller, path, limit=limit, cursor=cursor))
    return [found["items"] for found in pages]


def encode(*values: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


@pytest.fixture(scope="module")
def talker(services: Services) -> tuple[Caller, list[str]]:
    """A user with five conversations and their ids, last used first; the first has three turns."""
    talker = Caller(services)
    ids = [ask(talker, f"Question {n}?")["conversation_id"] for n in range(5)]
    for n in range(2):
        ask(talker, f"Later {n}?", conversation_id=ids[0])
    return talker, [ids[0], *reversed(ids[1:])]


# Conversations


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6, 100])
def test_conversations_are_listed_last_used_first_and_once_each(talker: tuple[Caller, list[str]], limit: int) -> None:
    """CHAT-11"""
    person, ids = talker
    pages = read_all(person, LIST, limit)
    assert [item["id"] for items in pages for item in items] == ids
    assert [len(items) for items in pages[:-1]] == [limit] * (len(pages) - 1)
    assert pages[-1]


def test_a_page_has_30_conversations_by_default(services: Services) -> None:
    """CHAT-11"""
    person = Caller(services)
    person.row(
        "with made as (insert into rag.conversations (owner_id) select %s from generate_series(1, 101) returning 1)"
        " select count(*) from made",
        person.user.id,
    )
    assert len(page(person)["items"]) == 30
    assert [len(items) for items in read_all(person, LIST, 100)] == [100, 1]


def test_an_empty_list_is_one_empty_page(caller: Caller) -> None:
    """CHAT-11"""
    assert page(caller) == {"items": [], "next_cursor": None}


def test_conversations_that_change_while_paging_are_not_lost(caller: Caller) -> None:
    """CHAT-11: a conversation in use moves to the top, where the next listing finds it; the others still follow."""
    ids = [ask(caller, f"Question {n}?")["conversation_id"] for n in range(5)]
    first = page(caller, limit=2)
    ask(caller, "And?", conversation_id=ids[0])
    assert call(caller, "DELETE", f"{LIST}/{ids[1]}").status == 204
    assert call(caller, "DELETE", f"{LIST}/{ids[3]}").status == 204  # the conversation that the cursor names
    added = ask(caller, "New?")["conversation_id"]
    rest = page(caller, limit=2, cursor=first["next_cursor"])
    assert [item["id"] for item in first["items"] + rest["items"]] == [ids[4], ids[3], ids[2]]
    assert [item["id"] for item in page(caller)["items"]] == [added, ids[0], ids[4], ids[2]]


def test_renaming_does_not_reorder_conversations(caller: Caller) -> None:
    """CHAT-11: `updated_at` is when it was last used."""
    ids = [ask(caller, f"Question {n}?")["conversation_id"] for n in range(2)]
    assert call(caller, "PATCH", f"{LIST}/{ids[0]}", {"title": "Renamed"}).status == 200
    assert [item["id"] for item in page(caller)["items"]] == ids[::-1]


# Messages


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 100])
def test_messages_are_listed_oldest_first_and_once_each(talker: tuple[Caller, list[str]], limit: int) -> None:
    """CHAT-11"""
    person, ids = talker
    items = [item for found in read_all(person, f"{LIST}/{ids[0]}/messages", limit) for item in found]
    assert [item["role"] for item in items] == ["user", "assistant"] * 3
    assert [item["content"] for item in items[::2]] == ["Question 0?", "Later 0?", "Later 1?"]


def test_messages_added_while_paging_are_on_the_last_page(caller: Caller) -> None:
    """CHAT-11"""
    conversation_id = ask(caller, "First?")["conversation_id"]
    address = f"{LIST}/{conversation_id}/messages"
    first = page(caller, address, limit=1)
    ask(caller, "Second?", conversation_id=conversation_id)
    rest = page(caller, address, limit=100, cursor=first["next_cursor"])
    assert [item["role"] for item in rest["items"]] == ["assistant", "user", "assistant"]
    assert rest["next_cursor"] is None


# Limits and invalid cursors


@pytest.mark.parametrize("path", [LIST, f"{LIST}/{{}}/messages"], ids=["conversations", "messages"])
@pytest.mark.parametrize("limit", ["0", "101", "-1", "many", "1.5", ""])
def test_a_page_has_1_to_100_items(talker: tuple[Caller, list[str]], path: str, limit: str) -> None:
    """CHAT-11"""
    person, ids = talker
    answer = call(person, "GET", path.format(ids[0]), query=f"limit={limit}")
    assert answer.problem == (400, "invalid_input")
    assert answer.json["faults"][0]["key"] == "limit"


@pytest.mark.parametrize("path", [LIST, f"{LIST}/{{}}/messages"], ids=["conversations", "messages"])
@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param("nonsense", id="nonsense"),
        pytest.param("%00", id="nul"),
        pytest.param("%F0%9F%98%80", id="emoji"),
        pytest.param("e30", id="object"),
        pytest.param(encode("2026-01-01"), id="short"),
        pytest.param(encode("soon", "mine"), id="other-values"),
        pytest.param(encode("2026-01-01", "1", "2"), id="long"),
        pytest.param(encode(1, 2), id="numbers"),
        pytest.param(encode("9" * 40, "9" * 40), id="too-large"),
        pytest.param(encode("1; drop table rag.messages", "1"), id="sql"),
        pytest.param("x" * 501, id="501-characters"),
    ],
)
def test_an_invalid_cursor_is_refused(talker: tuple[Caller, list[str]], path: str, cursor: str) -> None:
    """CHAT-11, SEC-6"""
    person, ids = talker
    answer = call(person, "GET", path.format(ids[0]), query=f"cursor={cursor}")
    assert answer.problem == (400, "invalid_input")
    assert "psycopg" not in answer.content.decode()


def test_a_cursor_of_another_list_is_refused(talker: tuple[Caller, list[str]]) -> None:
    """CHAT-11"""
    person, ids = talker
    of_list, of_messages = page(person, limit=1)["next_cursor"], page(person, f"{LIST}/{ids[0]}/messages", limit=1)
    swapped = {LIST: of_messages["next_cursor"], f"{LIST}/{ids[0]}/messages": of_list}
    for path, cursor in swapped.items():
        assert call(person, "GET", path, query=f"cursor={cursor}").problem == (400, "invalid_input")


def test_another_users_cursor_shows_none_of_their_data(talker: tuple[Caller, list[str]], caller: Caller) -> None:
    """SEC-2"""
    cursor = page(talker[0], limit=1)["next_cursor"]
    assert page(caller, cursor=cursor) == {"items": [], "next_cursor": None}


# Titles


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("x" * 255, "x" * 255),
        ("é👩‍🚀" * 63, "é👩‍🚀" * 63),
        (f"  {'x' * 255}\n", "x" * 255),
        ("حساب <b>\0", "حساب <b>\ufffd"),
        ("?", "?"),
    ],
    ids=["255", "unicode", "255-and-spaces", "any-script", "one-sign"],
)
def test_a_title_is_stored_as_sent(talker: tuple[Caller, list[str]], sent: str, kept: str) -> None:
    """CHAT-11"""
    person, ids = talker
    answer = call(person, "PATCH", f"{LIST}/{ids[-1]}", {"title": sent})
    assert (answer.status, answer.json["title"]) == (200, kept)
    assert page(person, limit=100)["items"][-1] == answer.json


@pytest.mark.parametrize(
    "body",
    [
        {"title": "x" * 256},
        {"title": ""},
        {"title": " \n\u00a0"},
        {"title": "\u200b\u2060"},
        {"title": "\0"},
        {"title": None},
        {"title": 7},
        {},
        {"title": "a", "owner_id": UNKNOWN_ID},
        [],
    ],
    ids=["256", "empty", "blank", "zero-width", "nul", "null", "number", "nothing", "more", "list"],
)
def test_an_invalid_title_changes_nothing(talker: tuple[Caller, list[str]], body: Any) -> None:
    """CHAT-11"""
    person, ids = talker
    before = page(person)
    assert call(person, "PATCH", f"{LIST}/{ids[1]}", body).problem == (400, "invalid_input")
    assert page(person) == before


# Deleting


def test_deleting_a_conversation_deletes_its_messages_and_keeps_its_documents(caller: Caller) -> None:
    """CHAT-11"""
    document = caller.add(FACT.encode())["id"]
    conversation_id = ask(caller)["conversation_id"]
    address = f"{LIST}/{conversation_id}"
    assert call(caller, "PUT", f"{address}/documents", {"document_ids": [document]}).status == 200
    deleted = call(caller, "DELETE", address)
    assert (deleted.status, deleted.content) == (204, b"")
    left = caller.row(
        "select (select count(*) from rag.conversations where id = %s) as conversations,"
        " (select count(*) from rag.messages where conversation_id = %s) as messages,"
        " (select count(*) from rag.conversation_documents where conversation_id = %s) as attached,"
        " (select count(*) from rag.documents where owner_id = %s) as documents",
        *[conversation_id] * 3,
        caller.user.id,
    )
    assert left == {"conversations": 0, "messages": 0, "attached": 0, "documents": 1}


NEEDED: dict[tuple[str, str], Any] = {
    ("GET", "/messages"): None,
    ("PATCH", ""): {"title": "Mine"},
    ("DELETE", ""): None,
    ("GET", "/documents"): None,
    ("PUT", "/documents"): {"document_ids": []},
    ("POST", "/documents"): {"document_ids": []},
    ("DELETE", f"/documents/{UNKNOWN_ID}"): None,
    ("GET", "/export"): None,
    ("POST", f"/messages/{UNKNOWN_ID}/note"): {},
}


@pytest.mark.parametrize(("method", "path"), NEEDED, ids=lambda value: value[:20])
def test_another_users_deleted_or_malformed_conversation_id_is_not_found(
    services: Services, caller: Caller, method: str, path: str
) -> None:
    """CHAT-11, SEC-3"""
    other_users, gone = ask(Caller(services))["conversation_id"], ask(caller)["conversation_id"]
    assert call(caller, "DELETE", f"{LIST}/{gone}").status == 204
    for conversation_id in (other_users, gone, str(uuid4()), "mine", f"{gone}x"):
        answer = call(caller, method, f"{LIST}/{conversation_id}{path}", NEEDED[method, path])
        assert answer.problem == (404, "not_found")


# Attached documents


def test_at_most_a_hundred_documents_can_be_attached_at_once(caller: Caller) -> None:
    """CHAT-11"""
    ids = [str(uuid4()) for _ in range(101)]
    caller.row(
        "with added as ("
        "insert into rag.documents (id, owner_id, file_name, file_type, size_bytes, object_path)"
        " select i, %s, i || '.txt', 'txt', 1, i::text from unnest(%s::uuid[]) i returning 1"
        ") select count(*) from added",
        caller.user.id,
        ids,
    )
    address = f"{LIST}/{ask(caller)['conversation_id']}/documents"
    for method, sent, status in (
        ("PUT", ids[:100], 200),
        ("POST", ids[:100], 200),
        ("POST", ids[100:], 400),
        ("PUT", ids, 400),
        ("POST", [ids[0]] * 101, 400),
        ("PUT", ids[1:], 200),
    ):
        assert call(caller, method, address, {"document_ids": sent}).status == status
    assert {item["id"] for item in page(caller, address)["items"]} == set(ids[1:])
    assert call(caller, "PUT", address, {"documentIds": []}).json == {"items": []}


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({}, "document_ids"),
        ({"document_ids": None}, "document_ids"),
        ({"document_ids": "all"}, "document_ids"),
        ({"document_ids": ["mine"]}, "document_ids.0"),
        ({"document_ids": [], "replace": True}, "replace"),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_an_invalid_list_of_documents_is_refused(caller: Caller, method: str, body: Json, key: str) -> None:
    """CHAT-11, SEC-6"""
    address = f"{LIST}/{ask(caller)['conversation_id']}/documents"
    answer = call(caller, method, address, body)
    assert answer.problem == (400, "invalid_input")
    assert key in answer.json["faults"][0]["key"].replace("documentIds", "document_ids")


# Exports


def test_the_export_of_an_empty_conversation_is_its_title(caller: Caller) -> None:
    """CHAT-11"""
    made = caller.row(
        "insert into rag.conversations (owner_id, title) values (%s, 'Nothing yet') returning id", caller.user.id
    )
    answer = call(caller, "GET", f"{LIST}/{made['id']}/export")
    assert answer.status == 200
    assert answer.content.decode().startswith("# Nothing yet\n\n*Conversation of ")
    assert "##" not in answer.content.decode()


def test_an_export_marks_interrupted_and_missing_answers(caller: Caller) -> None:
    """CHAT-2, CHAT-11"""
    caller.add(FACT.encode())
    given = ask(caller)
    caller.row("update rag.messages set status = 'interrupted' where id = %s returning id", given["message_id"])
    caller.row(
        "insert into rag.messages (conversation_id, owner_id, role, content) values (%s, %s, 'user', 'And then?')"
        " returning id",
        given["conversation_id"],
        caller.user.id,
    )
    for lang, remark in (
        ("en", "*This answer was interrupted before it was complete.*"),
        ("fr", "*Cette réponse a été interrompue avant la fin.*"),
    ):
        text = call(caller, "GET", f"{LIST}/{given['conversation_id']}/export", query=f"lang={lang}").content.decode()
        assert f"{FACT} [1]" in text
        assert remark in text
        assert "And then?" in text


def test_an_export_is_in_english_or_french(caller: Caller) -> None:
    """CHAT-11"""
    address = f"{LIST}/{ask(caller)['conversation_id']}/export"
    answer = call(caller, "GET", address, query="lang=de")
    assert answer.problem == (400, "invalid_input")
    assert answer.json["faults"][0]["key"] == "lang"


# Notes


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"title": "x" * 255}, 201),
        ({"title": ""}, 201),
        ({"title": "x" * 256}, 400),
        ({"notebook_id": UNKNOWN_ID}, 404),
        ({"notebook_id": "mine"}, 400),
        ({"content": "Mine."}, 400),
    ],
    ids=str,
)
def test_an_answer_saved_as_a_note_needs_a_title_of_at_most_255_characters_and_a_notebook_of_the_user(
    caller: Caller, nudges: list[int], body: Json, status: int
) -> None:
    """CHAT-12, SEC-3"""
    given = ask(caller)
    address = f"{LIST}/{given['conversation_id']}/messages/{given['message_id']}/note"
    answer = call(caller, "POST", address, body)
    assert answer.status == status
    assert len(caller.call("notebooks", "GET", "/api/rag/notes").json["items"]) == (status == 201)
    if status == 201:
        assert answer.json["title"] == (body["title"] or QUESTION)
