"""Follow-up questions: the query that is searched in their place, and the question that the model answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions.core.answering import short_requests
from tests.support import database as database_servers
from tests.support.fakes.model_server import FakeModelServer, Reply, pieces
from tests.support.local_server import Json, LocalServer, Person, run_local_server

LYON = "The Lyon boiler burns wood chips. It was built by Marta Olsen."
PARIS = "The Paris boiler burns peat bricks. It was built by Jules Verne."
FIRST = "What does the Lyon boiler burn?"
FOLLOW_UP = "And the one in Paris?"
QUERY = "What does the Paris boiler burn?"


@pytest.fixture(scope="module")
def thinking(
    clusters: database_servers.Clusters,
    postgres_major: int,
    tmp_path_factory: pytest.TempPathFactory,
    model: FakeModelServer,
) -> Iterator[LocalServer]:
    """A server that answers with the model, on its own database, whose settings the tests may change."""
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    home = tmp_path_factory.mktemp("home")
    with run_local_server(dsn, home, chat_model="fake", openai_base_url=model.base_url) as running:
        yield running
    cluster.drop(dsn)


@pytest.fixture(scope="module")
def library(thinking: LocalServer) -> Iterator[Person]:
    with thinking.person("asker", admin=True) as person:
        for name, text in (("lyon.txt", LYON), ("paris.txt", PARIS)):
            assert person.follow(person.add_bytes(name, text.encode())["id"])["status"] == "indexed"
        yield person


@pytest.fixture
def asker(library: Person, model: FakeModelServer) -> Person:
    """A user whose next question meets a model without scripted faults."""
    model.requests.clear()
    assert not model._replies
    return library


@pytest.fixture
def conversation(asker: Person, model: FakeModelServer) -> str:
    """A conversation whose first question was about the boiler of Lyon."""
    conversation_id = str(asker.ask(FIRST)["conversation_id"])
    model.requests.clear()
    return conversation_id


def ask(person: Person, conversation_id: str, query: str = FOLLOW_UP, **fields: Any) -> Json:
    return person.ask(query, conversation_id=conversation_id, **fields)


def files(answer: Json) -> set[str]:
    return {source["file_name"] for source in answer["sources"]}


def test_a_follow_up_is_searched_as_the_model_rewrites_it(
    asker: Person, model: FakeModelServer, conversation: str
) -> None:
    """CHAT-7"""
    model.script(QUERY)
    answer = ask(asker, conversation)
    assert (answer["search_query"], answer["mode"], files(answer)) == (QUERY, "model", {"paris.txt"})
    _, prompt = model.chats
    assert f"Question: {FOLLOW_UP}\n\n" in prompt["messages"][-1]["content"]
    asked, answered = asker.get(f"/conversations/{conversation}/messages")["items"][-2:]
    assert (asked["content"], asked["search_query"]) == (FOLLOW_UP, None)
    assert answered["search_query"] == QUERY


def test_the_request_for_a_rewriting_is_short(asker: Person, model: FakeModelServer, conversation: str) -> None:
    """CHAT-7"""
    model.script(QUERY)
    answer = ask(asker, conversation)
    rewriting, answering = model.chats
    assert rewriting["max_tokens"] == short_requests.MAX_REPLY_TOKENS
    assert "response_format" not in rewriting
    assert len(json.dumps(rewriting["messages"])) < 1500 < len(json.dumps(answering["messages"]))
    words = sum(len(message["content"].split()) for chat in model.chats for message in chat["messages"])
    assert answer["usage"]["prompt_tokens"] == words


def test_a_streamed_follow_up_reports_the_searched_query(
    asker: Person, model: FakeModelServer, conversation: str
) -> None:
    """CHAT-2, CHAT-7"""
    model.script(Reply(pieces(QUERY)))
    body = {"query": FOLLOW_UP, "conversation_id": conversation, "stream": True}
    text = asker.http.post("/api/rag/chat", json=body).text
    events = [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line.startswith("data: ")]
    assert (events[-1]["done"], events[-1]["search_query"], files(events[-1])) == (True, QUERY, {"paris.txt"})


def test_the_next_follow_up_builds_on_the_last_rewriting(
    asker: Person, model: FakeModelServer, conversation: str
) -> None:
    """CHAT-7"""
    model.script(QUERY)
    ask(asker, conversation)
    model.requests.clear()
    model.script("Who built the Paris boiler?")
    answer = ask(asker, conversation, "And who built it?")
    request = model.chats[0]["messages"][-1]["content"]
    assert f"Question: {QUERY}\n" in request
    assert FOLLOW_UP not in request
    assert (answer["search_query"], files(answer)) == ("Who built the Paris boiler?", {"paris.txt"})


def test_the_guard_judges_the_evidence_for_the_rewritten_query(
    asker: Person, model: FakeModelServer, conversation: str
) -> None:
    """RET-8, CHAT-7"""
    vague = "And its constructor, please tell me?"
    model.script("I do not know.")
    assert ask(asker, conversation, vague)["mode"] == "guard"
    model.script("Who built the Lyon boiler?")
    assert ask(asker, conversation, vague)["mode"] == "model"


def test_a_complete_question_is_searched_unchanged(asker: Person, model: FakeModelServer, conversation: str) -> None:
    """CHAT-7"""
    answer = ask(asker, conversation, "Which fuel does the boiler of the Paris plant burn all winter?")
    assert (answer["search_query"], files(answer), len(model.chats)) == (None, {"paris.txt"}, 1)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500, headers={"Retry-After": "60"}),
        Reply(status=429, headers={"Retry-After": "60"}),
        Reply(status=401),
        Reply(["What does the Paris"], ending="cut"),
        Reply(["I cannot answer that."]),
    ],
    ids=["fault", "limited", "refused", "cut", "chatter"],
)
def test_without_a_usable_rewriting_the_question_itself_is_searched(
    asker: Person, model: FakeModelServer, conversation: str, reply: Reply
) -> None:
    """CHAT-7"""
    model.script(reply)
    answer = ask(asker, conversation, "And the Paris boiler?")
    assert (answer["search_query"], files(answer), len(model.chats)) == (None, {"paris.txt"}, 2)


def test_a_slow_rewriting_is_abandoned(
    asker: Person, model: FakeModelServer, conversation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CHAT-7"""
    monkeypatch.setattr(short_requests, "TIME_LIMIT_SECONDS", 0.2)
    model.closed_early.clear()
    model.script(Reply(pieces(QUERY * 20, 3), delay=0.05))
    answer = ask(asker, conversation, "And the Paris boiler?")
    assert (answer["search_query"], files(answer)) == (None, {"paris.txt"})
    assert model.closed_early.wait(5)


def test_rewriting_can_be_switched_off(asker: Person, model: FakeModelServer, conversation: str) -> None:
    """SET-3, CHAT-7"""
    asker.http.patch("/api/rag/settings", json={"rewrite_follow_ups": False}).raise_for_status()
    try:
        answer = ask(asker, conversation, "And the Paris boiler?")
    finally:
        asker.http.patch("/api/rag/settings", json={"rewrite_follow_ups": True}).raise_for_status()
    assert (answer["search_query"], len(model.chats)) == (None, 1)


def test_without_a_model_a_bare_year_replaces_the_last_year(server: LocalServer, ada: Person) -> None:
    """CHAT-6, CHAT-7"""
    facts = "In 2018 the boiler burned 12 tons of wood. In 2019 the boiler burned 15 tons of wood."
    ada.follow(ada.add_bytes("boiler.txt", facts.encode())["id"])
    first = ada.ask("How much wood did the boiler burn in 2018?")
    answer = ada.ask("And in 2019?", conversation_id=first["conversation_id"])
    assert answer["search_query"] == "How much wood did the boiler burn in 2019?"
    assert "15 tons" in answer["answer"]
    assert ada.ask("And the chimney?", conversation_id=first["conversation_id"])["search_query"] is None
