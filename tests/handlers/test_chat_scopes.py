"""The scope of a question: every scope that a request can name or a conversation implies, and every invalid one."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from functions.runtime.services import Services
from tests.handlers.conftest import Caller
from tests.handlers.events import Answer, Json

QUESTION = "What does the boiler burn in winter?"


class Shelf:
    """A user's library with one source in each place that answers the question; `ids` maps names to ids."""

    def __init__(self, services: Services) -> None:
        self.owner = Caller(services)
        self.foreign = Caller(services)
        self.ids: dict[str, str] = {}
        self.add("library.txt", "wood")
        self.ids["notebook"] = self.create("notebooks", title="Heating")
        self.add("in_notebook.txt", "peat", notebook_id=self.ids["notebook"])
        self.ids["note"] = self.create("notes", title="Note", content=_fact("coal"), notebook_id=self.ids["notebook"])
        self.add("attached.txt", "straw", note_id=self.ids["note"])
        self.ids["trashed note"] = self.create("notes", title="Old", content=_fact("tyres"))
        self.add("attached_to_trash.txt", "rubber", note_id=self.ids["trashed note"])
        assert self.owner.call("notebooks", "POST", f"/api/rag/notes/{self.ids['trashed note']}/trash").status == 200
        self.ids["awaited.txt"] = self.owner.announce("awaited.txt")["id"]
        self.ids["empty notebook"] = self.create("notebooks", title="Nothing")
        self.ids["foreign document"] = self.foreign.announce("foreign.txt")["id"]
        self.ids["foreign note"] = self.create("notes", self.foreign, title="Theirs")
        self.ids["foreign notebook"] = self.create("notebooks", self.foreign, title="Theirs")
        self.ids["deleted document"] = self.add("deleted.txt", "paper")
        address = f"/api/rag/documents/{self.ids['deleted document']}"
        assert self.owner.call("documents", "DELETE", address).status == 200

    def add(self, name: str, fuel: str, **place: str) -> str:
        document = self.owner.add(_fact(fuel).encode(), name)
        if place:
            moved = self.owner.call("documents", "PATCH", f"/api/rag/documents/{document['id']}", place)
            assert moved.status == 200, moved.content
        self.ids[name] = document["id"]
        return str(document["id"])

    def create(self, kind: str, owner: Caller | None = None, **fields: str) -> str:
        created = (owner or self.owner).call("notebooks", "POST", f"/api/rag/{kind}", fields)
        assert created.status == 201, created.content
        return str(created.json["id"])

    def with_ids(self, fields: Json) -> Json:
        """The fields with each name replaced by its id."""
        return {
            key: [self.ids.get(name, name) for name in value]
            if isinstance(value, list)
            else self.ids.get(value, value)
            if isinstance(value, str)
            else value
            for key, value in fields.items()
        }

    def names(self, answer: Json) -> set[str]:
        """The sources that an answer cites, by their names in `ids`."""
        by_id = {document_id: name for name, document_id in self.ids.items()}
        return {by_id[source["document_id"]] for source in answer["sources"]}


def _fact(fuel: str) -> str:
    return f"The boiler burns {fuel} in winter."


@pytest.fixture(scope="module")
def shelf(services: Services) -> Shelf:
    services.index_notes_with(lambda job_id: services.make_worker().ingest_next(job_id))
    return Shelf(services)


def send(caller: Caller, path: str = "/api/rag/chat", **body: Any) -> Answer:
    return caller.call("chat", "POST", path, {"query": QUESTION} | body)


def ask(caller: Caller, **body: Any) -> Json:
    answer = send(caller, **body)
    assert answer.status == 200, answer.content
    return dict(answer.json)


def count_conversations(caller: Caller) -> int:
    found = caller.row("select count(*) as n from rag.conversations where owner_id = %s", caller.user.id)
    return int(found["n"])


EVERYTHING = {"library.txt", "in_notebook.txt", "note", "attached.txt"}


def name_case(value: object) -> str:
    """A short id that is the same in every process, unlike the order of a set."""
    return (" ".join(sorted(value)) if isinstance(value, set | frozenset) else str(value))[:60]


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize(
    ("fields", "kind", "cited"),
    [
        ({}, "library", EVERYTHING),
        ({"scope": "library"}, "library", EVERYTHING),
        ({"scope": None, "document_ids": []}, "library", EVERYTHING),
        ({"document_ids": ["library.txt"]}, "documents", {"library.txt"}),
        ({"documentIds": ["library.txt", "attached.txt"]}, "documents", {"library.txt", "attached.txt"}),
        ({"document_ids": ["library.txt"] * 100}, "documents", {"library.txt"}),
        ({"document_ids": ["library.txt", "awaited.txt"]}, "documents", {"library.txt"}),
        ({"document_ids": ["library.txt", "attached_to_trash.txt"]}, "documents", {"library.txt"}),
        ({"notebook_id": "notebook"}, "notebook", {"in_notebook.txt", "note", "attached.txt"}),
        ({"notebookId": "notebook", "filters": {"source": "note"}}, "notebook", {"note"}),
        ({"note_id": "note"}, "note", {"note", "attached.txt"}),
        ({"noteId": "note", "filters": {"fileType": "txt"}}, "note", {"attached.txt"}),
        ({"note_id": "note", "notebook_id": "notebook"}, "note", {"note", "attached.txt"}),
        ({"document_ids": ["library.txt"], "notebook_id": "notebook"}, "documents", {"library.txt"}),
        ({"document_ids": ["awaited.txt"]}, "documents", set()),
        ({"notebook_id": "empty notebook"}, "notebook", set()),
    ],
    ids=name_case,
)
def test_each_scope_is_searched_and_reported(
    shelf: Shelf, fields: Json, kind: str, cited: set[str], streamed: bool
) -> None:
    """CHAT-1, CHAT-3, LIB-2"""
    answer = send(shelf.owner, stream=streamed, **shelf.with_ids(fields))
    assert answer.status == 200, answer.content
    given = read_events(answer)[-1] if streamed else answer.json
    assert (given["scope"]["kind"], shelf.names(given)) == (kind, cited)
    assert given["status"] == ("complete" if cited else "guarded")


def read_events(answer: Answer) -> list[Json]:
    return [json.loads(line.removeprefix("data: ")) for line in answer.content.decode().split("\n\n") if line]


def test_a_scope_lists_each_given_id_once(shelf: Shelf) -> None:
    """CHAT-3"""
    one, other = shelf.ids["library.txt"], shelf.ids["attached.txt"]
    given = ask(shelf.owner, document_ids=[one, other, one.upper()], filters={"lang": "en"})
    assert given["scope"] == {"kind": "documents", "document_ids": [one, other], "filters": {"lang": "en"}}


WRONG = [
    ({"document_ids": ["foreign document"]}, 404, "not_found", "no such document"),
    ({"document_ids": ["deleted document"]}, 404, "not_found", "no such document"),
    ({"document_ids": ["library.txt", "nowhere"]}, 404, "not_found", "no such document"),
    ({"document_ids": ["note"]}, 404, "not_found", "no such document"),
    ({"notebook_id": "foreign notebook"}, 404, "not_found", "no such notebook"),
    ({"notebook_id": "note"}, 404, "not_found", "no such notebook"),
    ({"note_id": "foreign note"}, 404, "not_found", "no such"),
    ({"note_id": "notebook"}, 404, "not_found", "no such"),
    ({"document_ids": ["mine"]}, 400, "invalid_input", "document_ids.0"),
    ({"document_ids": ["nowhere"] * 101}, 400, "invalid_input", "at most 100 items"),
    ({"document_ids": "library.txt"}, 400, "invalid_input", "valid list"),
    ({"notebook_id": "mine"}, 400, "invalid_input", "notebook_id"),
    ({"note_id": 7}, 400, "invalid_input", "note_id"),
    ({"filters": {"published_from": "2021-02-30"}}, 400, "invalid_input", "filters.published_from"),
    ({"filters": {"year": 2021}}, 400, "invalid_input", "filters.year"),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize(("fields", "status", "code", "words"), WRONG, ids=name_case)
def test_an_invalid_scope_is_refused_by_name_and_nothing_is_saved(
    shelf: Shelf, fields: Json, status: int, code: str, words: str, streamed: bool
) -> None:
    """CHAT-3, SEC-3, SEC-6"""
    before = count_conversations(shelf.owner)
    nowhere = {"nowhere": str(uuid4())}
    filled = shelf.with_ids(fields)
    if isinstance(filled.get("document_ids"), list):
        filled["document_ids"] = [nowhere.get(name, name) for name in filled["document_ids"]]
    answer = send(shelf.owner, stream=streamed, **filled)
    assert answer.problem == (status, code)
    assert words in answer.json["detail"]
    assert count_conversations(shelf.owner) == before


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"note_id": "trashed note"}, "The note is in the trash"),
        ({"document_ids": ["attached_to_trash.txt"]}, "attached to a note in the trash"),
    ],
    ids=["note", "attachments"],
)
def test_asking_about_trashed_content_returns_409(shelf: Shelf, fields: Json, words: str) -> None:
    """CHAT-3, LIB-2"""
    before = count_conversations(shelf.owner)
    answer = send(shelf.owner, **shelf.with_ids(fields))
    assert answer.problem == (409, "conflict")
    assert words in answer.json["detail"]
    assert count_conversations(shelf.owner) == before


# Conversations


def test_a_conversation_about_a_trashed_note_returns_409(services: Services, caller: Caller) -> None:
    """CHAT-3, LIB-2"""
    services.index_notes_with(lambda job_id: services.make_worker().ingest_next(job_id))
    note = caller.call("notebooks", "POST", "/api/rag/notes", {"title": "N", "content": _fact("coal")}).json["id"]
    first = ask(caller, note_id=note)
    caller.call("notebooks", "POST", f"/api/rag/notes/{note}/trash")
    answer = send(caller, conversation_id=first["conversation_id"])
    assert answer.problem == (409, "conflict")
    assert ask(caller, conversation_id=first["conversation_id"], scope="library")["status"] == "guarded"
    caller.call("notebooks", "POST", f"/api/rag/notes/{note}/restore")
    again = ask(caller, conversation_id=first["conversation_id"])
    assert (again["scope"], again["status"]) == ({"kind": "note", "note_id": note}, "complete")


@pytest.mark.parametrize(
    ("begun_with", "kind", "cited"),
    [
        ({"notebook_id": "notebook"}, "notebook", {"in_notebook.txt", "note", "attached.txt"}),
        ({"note_id": "note"}, "note", {"note", "attached.txt"}),
        ({"document_ids": ["library.txt"]}, "library", EVERYTHING),
        ({}, "library", EVERYTHING),
    ],
    ids=["notebook", "note", "documents", "library"],
)
def test_later_questions_keep_the_first_scope_of_the_conversation(
    shelf: Shelf, begun_with: Json, kind: str, cited: set[str]
) -> None:
    """CHAT-3: ids given with one question apply to that question only."""
    first = ask(shelf.owner, **shelf.with_ids(begun_with))
    later = ask(shelf.owner, conversationId=first["conversation_id"])
    assert (later["conversation_id"], later["scope"]["kind"]) == (first["conversation_id"], kind)
    assert shelf.names(later) == cited


def test_explicit_ids_override_attached_documents_which_override_the_notebook(shelf: Shelf) -> None:
    """CHAT-3"""
    first = ask(shelf.owner, notebook_id=shelf.ids["notebook"])
    address = f"/api/rag/conversations/{first['conversation_id']}/documents"
    body = {"document_ids": [shelf.ids["library.txt"]]}
    assert shelf.owner.call("conversations", "PUT", address, body).status == 200
    conversation = {"conversation_id": first["conversation_id"]}
    for fields, kind, cited in (
        ({}, "conversation", {"library.txt"}),
        ({"note_id": "note"}, "note", {"note", "attached.txt"}),
        ({"document_ids": ["in_notebook.txt"]}, "documents", {"in_notebook.txt"}),
        ({"scope": "library"}, "library", EVERYTHING),
    ):
        given = ask(shelf.owner, **conversation, **shelf.with_ids(fields))
        assert (given["scope"]["kind"], shelf.names(given)) == (kind, cited)


def test_a_conversation_whose_documents_are_all_trashed_returns_409(caller: Caller) -> None:
    """CHAT-3, LIB-2"""
    note = caller.call("notebooks", "POST", "/api/rag/notes", {"title": "Empty"}).json["id"]
    attached = caller.add(_fact("straw").encode())["id"]
    caller.call("documents", "PATCH", f"/api/rag/documents/{attached}", {"note_id": note})
    first = ask(caller)
    address = f"/api/rag/conversations/{first['conversation_id']}/documents"
    assert caller.call("conversations", "PUT", address, {"document_ids": [attached]}).status == 200
    assert ask(caller, conversation_id=first["conversation_id"])["scope"]["kind"] == "conversation"
    caller.call("notebooks", "POST", f"/api/rag/notes/{note}/trash")
    assert send(caller, conversation_id=first["conversation_id"]).problem == (409, "conflict")


def test_the_id_of_a_replaced_or_duplicate_document_means_its_current_document(caller: Caller) -> None:
    """CHAT-3, LIB-5"""
    older = caller.add(_fact("wood").encode(), "boiler.txt")["id"]
    newer = caller.add(_fact("peat").encode(), "boiler.txt")["id"]
    twin = caller.announce("twin.txt", len(_fact("peat")))
    caller.services.make_worker().ingest_next(caller.store(twin, _fact("peat").encode()))
    for named in (older, newer, twin["id"]):
        given = ask(caller, document_ids=[named])
        assert [source["document_id"] for source in given["sources"]] == [newer]


def test_a_conversation_whose_documents_are_deleted_searches_the_whole_library(caller: Caller) -> None:
    """CHAT-3, LIB-8"""
    gone, kept = caller.add(_fact("wood").encode(), "a.txt")["id"], caller.add(_fact("peat").encode(), "b.txt")["id"]
    first = ask(caller)
    address = f"/api/rag/conversations/{first['conversation_id']}/documents"
    caller.call("conversations", "PUT", address, {"document_ids": [gone]})
    caller.call("documents", "DELETE", f"/api/rag/documents/{gone}")
    later = ask(caller, conversation_id=first["conversation_id"])
    assert (later["scope"], [s["document_id"] for s in later["sources"]]) == ({"kind": "library"}, [kept])


@pytest.mark.parametrize("name", ["notebook", "note"])
def test_a_conversation_survives_the_deletion_of_its_notebook_or_note(caller: Caller, name: str) -> None:
    """CHAT-3: it then searches the whole library."""
    caller.add(_fact("wood").encode())
    made = caller.call("notebooks", "POST", f"/api/rag/{name}s", {"title": "Gone"}).json["id"]
    first = ask(caller, **{f"{name}_id": made})
    assert caller.call("notebooks", "DELETE", f"/api/rag/{name}s/{made}").status == 200
    later = ask(caller, conversation_id=first["conversation_id"])
    assert (later["scope"], later["status"]) == ({"kind": "library"}, "complete")


# OpenAI's protocol


def complete(caller: Caller, asked: Any) -> Answer:
    messages = [{"role": "user", "content": QUESTION}]
    return send(caller, "/v1/chat/completions", model="ibid", messages=messages, ibid=asked)


@pytest.mark.parametrize(
    ("asked", "kind", "cited"),
    [
        (None, "library", EVERYTHING),
        ({}, "library", EVERYTHING),
        ({"documentIds": ["library.txt"]}, "documents", {"library.txt"}),
        ({"notebook_id": "notebook"}, "notebook", {"in_notebook.txt", "note", "attached.txt"}),
        ({"note_id": "note"}, "note", {"note", "attached.txt"}),
        ({"filters": {"source": "note"}}, "library", {"note"}),
    ],
    ids=name_case,
)
def test_a_completion_accepts_the_same_scopes(shelf: Shelf, asked: Any, kind: str, cited: set[str]) -> None:
    """CHAT-3, CHAT-10"""
    answer = complete(shelf.owner, None if asked is None else shelf.with_ids(asked))
    assert answer.status == 200, answer.content
    assert (answer.json["ibid"]["scope"]["kind"], shelf.names(answer.json["ibid"])) == (kind, cited)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"document_ids": ["foreign document"]}, 404),
        ({"notebook_id": "foreign notebook"}, 404),
        ({"note_id": "foreign note"}, 404),
        ({"document_ids": ["library.txt"] * 101}, 400),
        ({"scope": "library"}, 400),
        ("library", 400),
    ],
    ids=name_case,
)
def test_a_completion_with_an_invalid_scope_gets_an_error_in_openais_form(
    shelf: Shelf, asked: Any, status: int
) -> None:
    """CHAT-10, SEC-3"""
    answer = complete(shelf.owner, shelf.with_ids(asked) if isinstance(asked, dict) else asked)
    assert (answer.status, answer.json["error"]["type"]) == (status, "invalid_request_error")


@pytest.mark.parametrize(
    ("asked", "is_named"),
    [
        ({}, True),
        ({"filters": {"file_type": "txt"}}, True),
        ({"filters": {"file_type": "pdf"}}, False),
        ({"filters": {"source": "note"}}, False),
        ({"notebook_id": "empty notebook"}, False),
        ({"note_id": "note"}, False),
        ({"document_ids": ["library.txt"]}, False),
    ],
    ids=json.dumps,
)
def test_a_waiting_document_is_named_when_it_is_in_scope(shelf: Shelf, asked: Json, is_named: bool) -> None:
    waiting = shelf.owner.announce("waiting.txt")
    shelf.owner.store(waiting, b"The zeppelin crossed the ocean.")
    question = {"query": "Who won the chess championship of 1972?"} | shelf.with_ids(asked)
    answer = shelf.owner.call("chat", "POST", "/api/rag/chat", question)
    shelf.owner.call("documents", "DELETE", f"/api/rag/documents/{waiting['id']}")
    assert (answer.status, "waiting.txt" in answer.json["answer"]) == (200, is_named)


def test_a_waiting_document_in_the_trash_is_not_named(shelf: Shelf) -> None:
    note = shelf.create("notes", title="To be trashed", content="Nothing of note.")
    waiting = shelf.owner.announce("binned.txt")
    shelf.owner.store(waiting, b"The zeppelin crossed the ocean.")
    shelf.owner.call("documents", "PATCH", f"/api/rag/documents/{waiting['id']}", {"note_id": note})
    shelf.owner.call("notebooks", "POST", f"/api/rag/notes/{note}/trash")
    answer = shelf.owner.call("chat", "POST", "/api/rag/chat", {"query": "Who won the chess championship of 1972?"})
    shelf.owner.call("documents", "DELETE", f"/api/rag/documents/{waiting['id']}")
    assert (answer.json["mode"], "binned.txt" in answer.json["answer"]) == ("guard", False)
