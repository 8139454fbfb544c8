"""A chat model that calls tools: what they find is cited and saved, and stays within the scope of the question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fakes.model_server import Call, FakeModelServer, Reply, answer, pieces
from tests.support.local_server import Json, LocalServer, Person

BOILER = "The boiler burns wood chips. The chimney is forty metres tall."
LEASE = "The lease of the house in Bergen ends in March 2031."
NOTE = "The spare key of the boiler room hangs behind the clock."
FOREIGN = "The neighbour's zeppelin is moored behind the barn."
QUESTION = "What does the boiler burn?"
SEARCH_CALL = Call("document_search", {"query": "When does the lease of the house end?"})
LEASE_END = "The lease ends in March 2031."
QUOTE = "lease of the house in Bergen ends in March 2031"


@pytest.fixture(scope="module", autouse=True)
def narrow(server: LocalServer, thinking: LocalServer) -> Iterator[None]:
    """Gives the model one passage only, so that it can find everything else by tools alone."""
    with thinking.person("admin", admin=True) as admin:
        admin.http.patch("/api/rag/settings", json={"context_passages": 1})
        yield
        admin.http.patch("/api/rag/settings", json={"context_passages": 8})
    server.services.forget_policy()  # the settings may have been read meanwhile and are cached for seconds


@pytest.fixture(scope="module")
def owned(thinking: LocalServer) -> Iterator[dict[str, Any]]:
    with thinking.person("asker") as person, thinking.person("neighbour") as neighbour:
        notebook_id = person.post("/notebooks", title="House")["id"]
        ids = {
            "boiler": person.add_bytes("boiler.txt", BOILER.encode(), notebook_id=notebook_id)["id"],
            "lease": person.add_bytes("lease.txt", LEASE.encode())["id"],
            "note": person.post("/notes", title="Keys", content=NOTE)["id"],
        }
        foreign = neighbour.add_bytes("zeppelin.txt", FOREIGN.encode())["id"]
        secret = neighbour.post("/notes", title="Secret", content=FOREIGN)["id"]
        for who, document_id in ((person, ids["boiler"]), (person, ids["lease"]), (neighbour, foreign)):
            assert who.follow(document_id)["status"] == "indexed"
        for who, note_id in ((person, ids["note"]), (neighbour, secret)):
            assert who.get(f"/notes/{note_id}", wait=25)["status"] == "indexed"
        yield ids | {"person": person, "notebook_id": notebook_id, "foreign": foreign, "secret": secret}


@pytest.fixture
def asker(owned: dict[str, Any], model: FakeModelServer) -> Person:
    model.requests.clear()
    assert not model._replies
    person: Person = owned["person"]
    return person


def tool_results(model: FakeModelServer) -> list[str]:
    """The results of the tools that the model was sent."""
    return [str(m["content"]) for m in model.chats[-1]["messages"] if m["role"] == "tool"]


def lease_answer(owned: dict[str, Any]) -> Reply:
    return answer((LEASE_END, [f"{owned['lease']}:0"], [QUOTE]))


def test_a_passage_found_by_a_tool_is_cited_and_saved(
    asker: Person, owned: dict[str, Any], model: FakeModelServer
) -> None:
    """CHAT-9, CHAT-5"""
    model.script(Reply(["Let me look."], calls=[SEARCH_CALL]), lease_answer(owned))
    given = asker.ask(QUESTION)
    assert LEASE in tool_results(model)[0]
    assert LEASE not in str(model.chats[0])
    assert (given["answer"], given["status"], given["mode"]) == (f"{LEASE_END} [1]", "complete", "model")
    (source,) = given["sources"]
    assert (source["file_name"], source["quote"], source["check"]) == ("lease.txt", QUOTE, "exact")
    assert LEASE[source["start_offset"] : source["end_offset"]] == QUOTE
    assert source["score"] > 0.3
    saved = asker.get(f"/conversations/{given['conversation_id']}/messages")["items"][1]
    assert (saved["content"], saved["usage"]) == (given["answer"], given["usage"])
    assert [{key: kept[key] for key in source} for kept in saved["sources"]] == [source]


def test_an_answer_after_a_tool_call_is_streamed_once(
    asker: Person, owned: dict[str, Any], model: FakeModelServer
) -> None:
    """CHAT-2, CHAT-9"""
    long = "I shall look for the lease, since the passages that I was given speak of the boiler and its chimney. " * 3
    model.script(Reply(pieces(long), calls=[SEARCH_CALL]), lease_answer(owned))
    with asker.http.stream("POST", "/api/rag/chat", json={"query": QUESTION, "stream": True}) as response:
        lines = "".join(response.iter_text()).split("\n\n")
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    text = "".join(event.get("text", "") for event in events if not event.get("done"))
    assert text.startswith(f"{long.strip()}\n\n")
    assert text.endswith(LEASE_END)
    assert text.count(LEASE_END) == 1
    assert events[-1]["sources"][-1]["file_name"] == "lease.txt"


def test_a_note_read_by_a_tool_is_cited(asker: Person, owned: dict[str, Any], model: FakeModelServer) -> None:
    """CHAT-9, RET-7"""
    model.script(
        Reply(calls=[Call("note_search", {"query": "key"})]),
        Reply(calls=[Call("note_read", {"note_id": owned["note"]})]),
        answer(("It hangs behind the clock.", [f"{owned['note']}:0"], ["hangs behind the clock"])),
    )
    (source,) = asker.ask(QUESTION)["sources"]
    assert (source["source"], source["document_id"], source["check"]) == ("note", owned["note"], "exact")
    assert "tools" not in model.chats[-1]


def test_an_administrator_can_switch_tools_off(
    asker: Person, admin: Person, thinking: LocalServer, model: FakeModelServer
) -> None:
    """CHAT-9, SET-3"""
    try:
        admin.http.patch("/api/rag/settings", json={"tool_rounds": 0})
        thinking.services.forget_policy()
        assert asker.ask(QUESTION)["mode"] == "model"
        assert "tools" not in model.chats[-1]
    finally:
        admin.http.patch("/api/rag/settings", json={"tool_rounds": 2})
        thinking.services.forget_policy()


@pytest.mark.parametrize(
    ("call", "scope"),
    [
        (SEARCH_CALL, "document_ids"),
        (SEARCH_CALL, "notebook_id"),
        (Call("document_search", {"query": "lease", "document_ids": ["lease"]}), "document_ids"),
        (Call("document_search", {"query": "lease", "document_ids": ["lease"]}), "notebook_id"),
        (Call("note_search", {"query": "key"}), "document_ids"),
        (Call("note_search", {"query": "key"}), "notebook_id"),
        (Call("note_read", {"note_id": "note"}), "document_ids"),
        (Call("note_read", {"note_id": "note"}), "notebook_id"),
    ],
)
def test_tools_stay_within_the_scope_of_the_question(
    asker: Person, owned: dict[str, Any], model: FakeModelServer, call: Call, scope: str
) -> None:
    """CHAT-3, CHAT-9"""
    arguments = {
        key: [owned[v] for v in value] if isinstance(value, list) else owned.get(value, value)
        for key, value in call.arguments.items()
    }
    place: Json = {"document_ids": [owned["boiler"]]} if scope == "document_ids" else {scope: owned["notebook_id"]}
    model.script(Reply(calls=[Call(call.name, arguments)]), lease_answer(owned))
    given = asker.ask(QUESTION, **place)
    assert "2031" not in tool_results(model)[0]
    assert "clock" not in tool_results(model)[0]
    assert "lease.txt" not in {source["file_name"] for source in given["sources"]}


@pytest.mark.parametrize(
    "call",
    [
        Call("document_search", {"query": "Where is the zeppelin moored?"}),
        Call("document_search", {"query": "zeppelin", "document_ids": ["foreign"]}),
        Call("note_search", {"query": "zeppelin"}),
        Call("note_read", {"note_id": "secret"}),
    ],
)
def test_tools_never_return_another_users_content(
    asker: Person, owned: dict[str, Any], model: FakeModelServer, call: Call
) -> None:
    """SEC-2, SEC-3, CHAT-9"""
    arguments = {
        key: [owned[v] for v in value] if isinstance(value, list) else owned.get(value, value)
        for key, value in call.arguments.items()
    }
    model.script(Reply(calls=[Call(call.name, arguments)]), answer((FOREIGN, [f"{owned['foreign']}:0"])))
    given = asker.ask(QUESTION)
    assert "moored" not in tool_results(model)[0]
    assert given["sources"] == []


@pytest.mark.parametrize(
    "calls",
    [
        [Call("drop_table", {"name": "documents"})],
        [Call("document_search", '{"query": ')],
        [Call("document_search", {"query": "\x00"})],
        [Call("document_search", {"query": "x" * 4000, "filters": {"author": "\\m(.*"}})],
        [Call("note_read", {"note_id": "00000000-0000-4000-8000-000000000000", "offset": 10**30})],
        [SEARCH_CALL] * 40,
    ],
    ids=["invented", "broken", "unstorable", "hostile", "nowhere", "many"],
)
def test_invalid_calls_use_up_a_round_but_the_answer_comes(
    asker: Person, owned: dict[str, Any], model: FakeModelServer, calls: list[Call]
) -> None:
    """CHAT-9"""
    made = [Call(call.name, call.arguments, f"call_{at}") for at, call in enumerate(calls)]
    model.script(Reply(calls=made), answer(("The boiler burns wood chips.", [f"{owned['boiler']}:0"])))
    given = asker.ask(QUESTION)
    assert (given["status"], given["sources"][0]["file_name"]) == ("complete", "boiler.txt")
    assert all(tool_results(model))
