"""Questions without a language model: cited answers, the guard, scopes, and saved conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support import documents, library
from tests.support.local_server import Json, LocalServer, Person, problem_of

TURBINE = (
    "The turbine hall was built in 1931. It has tall windows.",
    "In winter the turbine turns at 3000 revolutions per minute. Every Monday it is stopped for an inspection.",
)
HEAT_PUMP = "# Heating\n\nThe heat pump draws four kilowatts. It was installed by Marta Olsen in 2019.\n"
BEES = "# Les abeilles\n\nLa ruche produit douze kilos de miel par an. Elle est installée sur le toit du lycée.\n"
SPEED = "How fast does the turbine turn in winter?"
OFF_TOPIC = "Which prince married the dancer of the Bolshoi?"


class Reader:
    """A user with three indexed documents."""

    def __init__(self, person: Person, ids: dict[str, str]) -> None:
        self.person = person
        self.ids = ids


@pytest.fixture(scope="module")
def reader(server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("chat")
    (folder / "heating.md").write_text(HEAT_PUMP, encoding="utf-8")
    (folder / "abeilles.md").write_text(BEES, encoding="utf-8")
    documents.make_pdf(folder / "turbine.pdf", *TURBINE)
    with server.person("reader") as person:
        yield Reader(
            person, {name: person.add(folder / name)["id"] for name in ("turbine.pdf", "heating.md", "abeilles.md")}
        )


def read_events(response: httpx.Response) -> list[Json]:
    """The data of each event of a stream, without comments."""
    lines = [line for line in response.text.split("\n\n") if line]
    return [json.loads(line.removeprefix("data: ")) for line in lines if not line.startswith(":")]


def stream(person: Person, query: str, **fields: Any) -> list[Json]:
    response = person.http.post("/api/rag/chat", json={"query": query, "stream": True} | fields)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "no-cache" in response.headers["cache-control"]
    return read_events(response)


def messages(person: Person, conversation_id: str) -> list[Json]:
    items: list[Json] = person.get(f"/conversations/{conversation_id}/messages")["items"]
    return items


def page_text(person: Person, source: Json) -> str:
    pages = person.get(f"/documents/{source['document_id']}/text", page=source["page_start"])["pages"]
    return str(pages[0]["text"])


# Answers


def test_a_citation_has_file_page_and_offsets(reader: Reader) -> None:
    """CHAT-1, CHAT-5, CHAT-6"""
    answer = reader.person.ask(SPEED)
    assert answer["answer"].startswith("In winter the turbine turns at 3000 revolutions per minute.")
    assert (answer["status"], answer["mode"], answer["scope"]) == ("complete", "extractive", {"kind": "library"})
    source = answer["sources"][0]
    place = ("document_id", "file_name", "file_type", "page_start", "page_end", "start_offset", "check", "source")
    expected = (reader.ids["turbine.pdf"], "turbine.pdf", "pdf", 2, 2, 0, "exact", "document")
    assert tuple(source[key] for key in place) == expected
    assert f"[{source['number']}]" in answer["answer"]
    assert answer["sections"][0]["source_ids"] == [f"{source['document_id']}:{source['chunk_index']}"]


@pytest.mark.parametrize(
    "query",
    [
        SPEED,
        "Who installed the heat pump?",
        "Combien de kilos de miel par an ?",
        "turbine OR heat & pump | miel :* ( '",
    ],
)
def test_every_quote_is_verbatim_at_its_offsets(reader: Reader, query: str) -> None:
    """CHAT-5"""
    sources = reader.person.ask(query)["sources"]
    assert sources
    for source in sources:
        assert page_text(reader.person, source)[source["start_offset"] : source["end_offset"]] == source["quote"]
        assert source["quote"].startswith(source["snippet_preview"][:100].rstrip("…"))


def test_a_streamed_answer_equals_the_whole_answer(reader: Reader) -> None:
    """CHAT-2"""
    whole = reader.person.ask(SPEED)
    meta, *pieces, done = stream(reader.person, SPEED)
    ids = {key: done[key] for key in ("conversation_id", "question_id")}
    assert meta == {"meta": {**ids, "scope": {"kind": "library"}}}
    assert all(set(piece) == {"text"} for piece in pieces)
    assert "".join(piece["text"] for piece in pieces) == "\n\n".join(s["text"] for s in whole["sections"])
    own = {*ids, "message_id", "done"}
    assert {k: v for k, v in done.items() if k not in own} == {k: v for k, v in whole.items() if k not in own}
    assert done["done"] is True


def test_a_french_question_is_answered_from_a_french_document(reader: Reader) -> None:
    """LANG-1"""
    answer = reader.person.ask("Combien de kilos de miel la ruche produit-elle ?")
    assert "douze kilos de miel" in answer["sources"][0]["quote"]


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
def test_an_off_topic_question_is_refused_without_sources(reader: Reader, streamed: bool) -> None:
    """RET-8"""
    answer = stream(reader.person, OFF_TOPIC)[-1] if streamed else reader.person.ask(OFF_TOPIC)
    assert (answer["status"], answer["mode"], answer["sources"]) == ("guarded", "guard", [])
    assert answer["answer"].startswith("I found nothing in your documents that answers this question.")
    asked, answered = messages(reader.person, answer["conversation_id"])
    assert (asked["content"], answered["content"], answered["status"]) == (OFF_TOPIC, answer["answer"], "guarded")


def test_a_refusal_names_documents_that_are_not_searchable_yet(server: LocalServer, ada: Person) -> None:
    """RET-8"""
    with server.worker.paused():
        ada.add_bytes("late.txt", b"The boiler burns wood.")
        assert "late.txt" in ada.ask("What does the boiler burn?")["answer"]


def test_a_question_to_an_empty_library_is_refused_and_no_error(ada: Person) -> None:
    assert ada.ask(SPEED)["status"] == "guarded"
    assert ada.get("/search", q=SPEED)["hits"] == []


# Conversations


def test_question_and_answer_are_saved(reader: Reader) -> None:
    """CHAT-11"""
    answer = reader.person.ask(SPEED)
    asked, answered = messages(reader.person, answer["conversation_id"])
    assert (asked["role"], asked["content"], asked["status"]) == ("user", SPEED, "complete")
    kept = ("sections", "status", "mode", "usage", "search_query")
    assert {key: answered[key] for key in kept} == {key: answer[key] for key in kept}
    since = {"state": "current", "superseded_by": None, "place": "unchanged"}
    assert answered["sources"] == [source | since for source in answer["sources"]] != []
    assert (answered["id"], answered["content"]) == (answer["message_id"], answer["answer"])


def test_a_follow_up_extends_its_conversation_and_moves_it_to_the_top(reader: Reader) -> None:
    """CHAT-11"""
    first = reader.person.ask("Who installed the heat pump?")
    other = reader.person.ask(SPEED)
    again = reader.person.ask("When was the turbine hall built?", conversation_id=first["conversation_id"])
    listed = reader.person.get("/conversations", limit=2)["items"]
    assert [item["id"] for item in listed] == [again["conversation_id"], other["conversation_id"]]
    assert again["conversation_id"] == first["conversation_id"]
    assert (listed[0]["title"], listed[0]["message_count"]) == ("Who installed the heat pump?", 4)


def test_a_long_question_makes_a_short_title(ada: Person) -> None:
    ada.ask("Why\n is " + "the boiler " * 30)
    title = ada.get("/conversations")["items"][0]["title"]
    assert len(title) <= 80
    assert title.startswith("Why is the boiler")
    assert title.endswith("…")


def test_a_conversation_is_renamed_and_deleted(ada: Person) -> None:
    """CHAT-11"""
    conversation_id = ada.ask("Anything?")["conversation_id"]
    address = f"/api/rag/conversations/{conversation_id}"
    renamed = ada.http.patch(address, json={"title": "  Boiler\x00 "}).json()
    assert (renamed["title"], renamed["message_count"]) == ("Boiler\ufffd", 2)
    assert renamed == ada.get("/conversations")["items"][0]
    assert ada.http.delete(address).status_code == 204
    assert ada.get("/conversations") == {"items": [], "next_cursor": None}
    assert problem_of(ada.http.get(f"{address}/messages")) == (404, "not_found")
    assert problem_of(ada.http.delete(address)) == (404, "not_found")


@pytest.mark.parametrize("title", ["", "   ", "x" * 256, None, 7])
def test_a_title_has_1_to_255_characters(ada: Person, title: object) -> None:
    conversation_id = ada.ask("Anything?")["conversation_id"]
    answer = ada.http.patch(f"/api/rag/conversations/{conversation_id}", json={"title": title})
    assert problem_of(answer) == (400, "invalid_input")


def test_conversations_and_messages_are_paged(ada: Person) -> None:
    """CHAT-11"""
    ids = [ada.ask(f"Question {n}?")["conversation_id"] for n in range(3)]
    first = ada.get("/conversations", limit=2)
    rest = ada.get("/conversations", limit=2, cursor=first["next_cursor"])
    assert [item["id"] for item in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next_cursor"] is None
    ada.ask("Another?", conversation_id=ids[0])
    page = ada.get(f"/conversations/{ids[0]}/messages", limit=3)
    rest = ada.get(f"/conversations/{ids[0]}/messages", limit=3, cursor=page["next_cursor"])
    assert [item["role"] for item in page["items"] + rest["items"]] == ["user", "assistant"] * 2


def test_an_answer_survives_the_deletion_of_its_cited_document(ada: Person) -> None:
    """LIB-8"""
    document_id = ada.add_bytes("a.txt", b"The boiler burns wood chips in winter.")["id"]
    ada.follow(document_id)
    answer = ada.ask("What does the boiler burn?")
    ada.http.delete(f"/api/rag/documents/{document_id}")
    gone = {"state": "deleted", "superseded_by": None, "place": None}
    kept = messages(ada, answer["conversation_id"])[1]["sources"]
    assert kept == [source | gone for source in answer["sources"]] != []
    assert ada.ask("What does the boiler burn?", conversation_id=answer["conversation_id"])["status"] == "guarded"


# Scope


def test_only_the_given_documents_are_searched(reader: Reader) -> None:
    """CHAT-3"""
    heating = reader.ids["heating.md"]
    answer = reader.person.ask("When was the heat pump installed beside the turbine?", document_ids=[heating, heating])
    assert answer["scope"] == {"kind": "documents", "document_ids": [heating]}
    assert {source["document_id"] for source in answer["sources"]} == {heating}
    assert {hit["document_id"] for hit in reader.person.get("/search", q=SPEED, document_id=heating)["hits"]} == {
        heating
    }


def test_a_conversation_keeps_its_notebook_as_scope(server: LocalServer, ada: Person) -> None:
    """CHAT-3"""
    notebook = library.add_notebook(server.services.database, ada.user)
    inside = ada.add_bytes("in.txt", b"The boiler burns wood chips.", notebook_id=notebook)["id"]
    outside = ada.add_bytes("out.txt", b"The boiler burns peat bricks.")["id"]
    assert {ada.follow(inside)["status"], ada.follow(outside)["status"]} == {"indexed"}
    first = ada.ask("What does the boiler burn?", notebook_id=notebook)
    second = ada.ask("What does the boiler burn?", conversationId=first["conversation_id"])
    for answer in (first, second):
        assert answer["scope"] == {"kind": "notebook", "notebook_id": notebook}
        assert {source["document_id"] for source in answer["sources"]} == {inside}


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"conversation_id": str(uuid4())}, "conversation"),
        ({"document_ids": [str(uuid4())]}, "document"),
        ({"notebook_id": str(uuid4())}, "notebook"),
        ({"note_id": str(uuid4())}, "note"),
    ],
    ids=["conversation", "document", "notebook", "note"],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
def test_an_unknown_scope_is_not_found_and_saves_nothing(ada: Person, fields: Json, what: str, streamed: bool) -> None:
    """SEC-3"""
    answer = ada.http.post("/api/rag/chat", json={"query": SPEED, "stream": streamed} | fields)
    assert problem_of(answer) == (404, "not_found")
    assert what in answer.json()["detail"]
    assert ada.get("/conversations")["items"] == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"query": ""}',
        b'{"query": " \\n "}',
        b'{"query": "\\u202e\\u0000"}',
        json.dumps({"query": "x" * 4001}).encode(),
        b'{"query": null}',
        b'{"query": ["a"]}',
        b"{}",
        b"[]",
        b"",
        b"{nope",
        b'{"query": "\xe9"}',
        b"[" * 50_000,
        b'{"query": "a", "stream": "perhaps"}',
        b'{"query": "a", "conversation_id": "mine"}',
        json.dumps({"query": "a", "document_ids": [str(uuid4())] * 101}).encode(),
    ],
    ids=[
        "empty",
        "blank",
        "unseen",
        "long",
        "null",
        "list",
        "no-query",
        "array",
        "nothing",
        "no-json",
        "latin-1",
        "deep",
        "stream",
        "id",
        "many-ids",
    ],
)
def test_an_invalid_question_is_refused_and_saves_nothing(ada: Person, body: bytes) -> None:
    answer = ada.http.post("/api/rag/chat", content=body, headers={"Content-Type": "application/json"})
    assert problem_of(answer) == (400, "invalid_input")
    assert ada.get("/conversations")["items"] == []


def test_a_body_without_content_type_is_refused_with_advice(ada: Person) -> None:
    answer = ada.http.post("/api/rag/chat", content=b'{"query": "a"}', headers={"Content-Type": "text/plain"})
    assert problem_of(answer) == (400, "invalid_input")
    assert "Content-Type: application/json" in answer.json()["detail"]


@pytest.mark.parametrize("pieces", [1, 200], ids=["whole", "in-pieces"])
def test_a_body_of_more_than_a_megabyte_is_refused(ada: Person, pieces: int) -> None:
    content = b"x" * 2_000_000
    size = len(content) // pieces
    sent: Any = content if pieces == 1 else (content[at : at + size] for at in range(0, len(content), size))
    assert problem_of(ada.http.post("/api/rag/chat", content=sent)) == (413, "too_large")


@pytest.mark.parametrize(
    "query", ["a\x00b \ud800", "'; drop table rag.documents; --", "\u202e?\u0000", "🦄" * 1000, "%s %(x)s {}"]
)
def test_unusual_questions_are_answered_like_others(ada: Person, query: str) -> None:
    answer = ada.http.post(
        "/api/rag/chat", content=json.dumps({"query": query}), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200, answer.text
    assert len(messages(ada, answer.json()["conversation_id"])) == 2


# Search


def test_search_returns_passages_and_with_debug_their_ranks(reader: Reader) -> None:
    """RET-11"""
    plain = reader.person.get("/search", q=SPEED, limit=1)
    assert (plain["query"], plain["lang"], plain["scope"]) == (SPEED, "en", {"kind": "library"})
    assert [hit["page_start"] for hit in plain["hits"]] == [2]
    explained = reader.person.get("/search", q=SPEED, limit=1, debug=True)
    arms = explained["hits"][0]["arms"]
    assert (arms["fts_rank"], arms["vector_rank"]) == (1, 1)
    assert explained["debug"]["candidate_sources"] == 3
    assert explained["debug"]["degraded"] == []


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({}, 400),
        ({"q": " "}, 400),
        ({"q": "x" * 4001}, 400),
        ({"q": "x", "limit": 0}, 400),
        ({"q": "x", "limit": 101}, 400),
        ({"q": "x", "document_id": "mine"}, 400),
        ({"q": "x", "document_id": str(uuid4())}, 404),
        ({"q": "x", "notebook_id": str(uuid4())}, 404),
        ({"q": "x", "note_id": str(uuid4())}, 404),
    ],
    ids=["nothing", "blank", "long", "none", "many", "no-id", "document", "notebook", "note"],
)
def test_an_invalid_search_is_refused(ada: Person, params: Json, status: int) -> None:
    assert problem_of(ada.http.get("/api/rag/search", params=params))[0] == status
