"""Questions over documents in the other language: what is asked of the model, searched, counted, kept and shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.adapters.models.openai_connection import RetryPolicy
from functions.core.answering import short_requests
from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import Caller
from tests.handlers.events import Json
from tests.support.fakes.model_server import FakeModelServer, Reply, answer, pieces

ENGLISH = "The boiler burns wood chips in winter. It was built by Marta Olsen in 1931."
FRENCH = "La chaudière de Lyon brûle de la tourbe en hiver. Elle a été construite par Jules Verne en 1889."
QUESTION = "Avec quoi se chauffe-t-on pendant la saison froide ?"
TRANSLATED = "Which fuel does the boiler burn in winter?"
ANSWER = "The boiler burns wood chips in winter."


@pytest.fixture(scope="module")
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer() as running:
        yield running


@pytest.fixture
def model(services: Services, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> FakeModelServer:
    """The model that translates and answers until the test ends."""
    for name, max_tokens in (("chat_model", None), ("query_model", short_requests.MAX_REPLY_TOKENS)):
        client = OpenAIChatModel(
            model="fake", base_url=server.base_url, retry_policy=RetryPolicy(attempts=1), max_tokens=max_tokens
        )
        monkeypatch.setitem(vars(services), name, client)
    server.requests.clear()
    assert not server._replies
    return server


@pytest.fixture
def reader(caller: Caller) -> Caller:
    """A user with one English document."""
    caller.add(ENGLISH.encode())
    return caller


def send(caller: Caller, query: str = QUESTION, **fields: Any) -> Json:
    given = caller.call("chat", "POST", "/api/rag/chat", {"query": query} | fields)
    assert given.status == 200, given.content
    return dict(given.json)


def files(given: Json) -> list[str]:
    return [source["file_name"] for source in given["sources"]]


def prompts(model: FakeModelServer) -> list[str]:
    """The question or query in each request's last message."""
    contents = [chat["messages"][-1]["content"] for chat in model.chats]
    return [re.findall(r"^(?:Question: .*|Query:.*)", content, re.MULTILINE)[-1] for content in contents]


def test_a_french_question_finds_an_english_passage_by_its_translation(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4"""
    model.script(TRANSLATED)
    given = send(reader)
    assert (given["translated_query"], given["mode"], files(given)) == (TRANSLATED, "model", ["boiler.txt"])
    translating, answering = model.chats
    assert translating["messages"][-1]["content"] == f"Query: {QUESTION}\nTranslation:"
    assert (translating["max_tokens"], "response_format" in translating) == (short_requests.MAX_REPLY_TOKENS, False)
    assert f"Question: {QUESTION}\n\n" in answering["messages"][-1]["content"]
    assert "in French" in answering["messages"][0]["content"]


def test_without_its_translation_the_same_question_finds_nothing(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4: or the test above would prove nothing."""
    model.script("I am sorry, I cannot do that.")
    assert (send(reader)["mode"], len(model.chats)) == ("guard", 1)


def test_the_answer_is_in_the_questions_language_and_the_quote_in_the_originals(
    reader: Caller, model: FakeModelServer
) -> None:
    """LANG-4, CHAT-5"""
    segment = f"{reader.row('select id from rag.documents where owner_id = %s', reader.user.id)['id']}:0"
    said = "Construite par Marta Olsen en 1931, la chaudière brûle des copeaux de bois en hiver."
    model.script(TRANSLATED, answer((said, [segment], [ANSWER])))
    given = send(reader)
    (source,), (section,) = given["sources"], given["sections"]
    assert (section["text"], section["unsupported_numbers"]) == (said, [])
    assert (source["quote"], source["check"]) == (ANSWER, "exact")


def test_the_tokens_of_a_translation_count(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4, OPS-3"""
    model.script(TRANSLATED)
    given = send(reader)
    words = sum(len(message["content"].split()) for chat in model.chats for message in chat["messages"])
    assert (len(model.chats), given["usage"]["prompt_tokens"]) == (2, words)


def test_a_question_is_translated_once_a_day(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4"""
    model.script(TRANSLATED)
    send(reader)
    model.requests.clear()
    given = send(reader)
    assert (given["translated_query"], prompts(model)) == (TRANSLATED, [f"Question: {QUESTION}"])
    (chat,) = model.chats
    assert given["usage"]["prompt_tokens"] == sum(len(message["content"].split()) for message in chat["messages"])


def test_an_unusable_reply_is_not_kept(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4"""
    model.script("Je ne sais pas.", TRANSLATED)
    assert [send(reader)["translated_query"] for _ in range(2)] == [None, TRANSLATED]


def test_the_saved_answer_says_which_translation_was_searched(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4, CHAT-11"""
    model.script(TRANSLATED)
    given = send(reader)
    path = f"/api/rag/conversations/{given['conversation_id']}/messages"
    asked, answered = reader.call("conversations", "GET", path).json["items"]
    assert (asked["translated_query"], answered["translated_query"]) == (None, TRANSLATED)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        pytest.param("Which fuel does the boiler burn in winter?", {}, id="same-language"),
        pytest.param("Womit wird die Heizung im Winter betrieben und wer hat sie gebaut?", {}, id="third-language"),
        pytest.param(QUESTION, {"filters": {"lang": "fr"}}, id="filter"),
        pytest.param(QUESTION, {"filters": {"source": "note"}}, id="no-source"),
    ],
)
def test_nothing_is_translated_if_no_passage_in_scope_is_in_the_other_language(
    reader: Caller, model: FakeModelServer, query: str, fields: Json
) -> None:
    """LANG-4"""
    assert send(reader, query, **fields)["translated_query"] is None
    assert not [line for line in prompts(model) if line == "Translation:"]


def test_a_library_in_two_languages_is_searched_in_both(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4"""
    reader.add(FRENCH.encode(), "chaudiere.txt")
    model.script("Que brûle la chaudière en hiver ?")
    given = send(reader, "Which fuel does the boiler burn in winter?")
    passages = model.chats[-1]["messages"][-1]["content"]
    assert ("file: boiler.txt" in passages, "file: chaudiere.txt" in passages) == (True, True)
    assert given["translated_query"] == "Que brûle la chaudière en hiver ?"


def test_only_the_scope_of_the_question_decides(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4, CHAT-3"""
    french = reader.add(FRENCH.encode(), "chaudiere.txt")
    given = send(reader, "Que brûle la chaudière de Lyon en hiver ?", document_ids=[french["id"]])
    assert (given["translated_query"], files(given), len(model.chats)) == (None, ["chaudiere.txt"], 1)


def test_translating_can_be_switched_off(reader: Caller, admin: Caller, model: FakeModelServer) -> None:
    """LANG-4, SET-3"""
    admin.call("settings", "PATCH", "/api/rag/settings", {"translate_questions": False})
    given = send(reader)
    assert (given["translated_query"], given["mode"], model.chats) == (None, "guard", [])


def test_a_rewritten_follow_up_is_translated_as_rewritten_and_once_a_day(
    reader: Caller, model: FakeModelServer
) -> None:
    """LANG-4, CHAT-7"""
    rewritten, translated = "Qui a construit la chaudière ?", "Who built the boiler?"
    follow_up = "Et qui l'a construite, cette chaudière ?"
    model.script(TRANSLATED)
    conversation_id = send(reader)["conversation_id"]
    model.script(rewritten, translated)
    first = send(reader, follow_up, conversation_id=conversation_id)
    model.requests.clear()
    model.script(rewritten)
    again = send(reader, follow_up, conversation_id=conversation_id)
    assert [(given["search_query"], given["translated_query"]) for given in (first, again)] == [
        (rewritten, translated)
    ] * 2
    assert prompts(model) == ["Query:", f"Question: {follow_up}"]


@pytest.mark.parametrize(
    "reply",
    [Reply(status=500), Reply(status=429, headers={"Retry-After": "60"}), Reply(["Which fuel"], ending="cut")],
    ids=["fault", "limited", "cut"],
)
def test_a_failing_translation_leaves_the_question_as_it_is(
    reader: Caller, model: FakeModelServer, reply: Reply
) -> None:
    """LANG-4"""
    model.script(reply)
    given = send(reader, "Que brûle la boiler de Marta Olsen en 1931 ?")
    assert (given["translated_query"], given["mode"], files(given)) == (None, "model", ["boiler.txt"])


def test_a_slow_translation_is_abandoned(
    reader: Caller, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANG-4"""
    monkeypatch.setattr(short_requests, "TIME_LIMIT_SECONDS", 0.2)
    model.closed_early.clear()
    model.script(Reply(pieces(TRANSLATED * 20, 3), delay=0.05))
    assert send(reader)["translated_query"] is None
    assert model.closed_early.wait(5)


def test_a_completion_is_searched_in_translation_too(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4, CHAT-10"""
    model.script(TRANSLATED)
    body = {"model": "ibid", "messages": [{"role": "user", "content": QUESTION}]}
    given = reader.call("chat", "POST", "/v1/chat/completions", body)
    assert (given.status, given.json["ibid"]["translated_query"]) == (200, TRANSLATED)


def test_without_a_model_the_original_is_quoted_and_the_answer_says_so(reader: Caller) -> None:
    """LANG-4, CHAT-6"""
    given = send(reader, "Que brûle la boiler de Marta Olsen en 1931 ?")
    assert given["answer"] == f"Ces passages sont en anglais.\n\n{ENGLISH} [1]"
    assert (given["mode"], given["translated_query"], files(given)) == ("extractive", None, ["boiler.txt"])


def test_a_search_without_a_model_is_not_translated(reader: Caller, model: FakeModelServer) -> None:
    """LANG-4, RET-11"""
    assert reader.call("search", "GET", "/api/rag/search", query=f"q={QUESTION}").status == 200
    assert model.chats == []


def test_expired_translations_are_purged_with_old_conversations(reader: Caller, model: FakeModelServer) -> None:
    """OPS-1, LANG-4"""
    model.script(TRANSLATED)
    send(reader)
    age = (
        "update rag.query_translations set created_at = now() - interval '25 hours' where owner_id = %s returning lang"
    )
    assert reader.row(age, reader.user.id) == {"lang": "en"}
    events.invoke("retention", events.load("schedule"))
    left = reader.row("select count(*) as n from rag.query_translations where owner_id = %s", reader.user.id)
    assert left == {"n": 0}
