"""Questions in other words than the page: when a model is asked for phrases, what is searched, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.adapters.models.openai_connection import RetryPolicy
from functions.core.answering import short_requests
from functions.core.retrieval import guard, retriever
from functions.runtime.services import Services
from tests.handlers.conftest import Caller
from tests.handlers.events import Json
from tests.support.fakes.model_server import FakeModelServer, Reply

TEXT = "Nitrous oxide (N2O): releases to air must be declared from ten tonnes a year."
QUESTION = "Which annual quantity of laughing gas has to be reported?"
OFF_TOPIC_QUESTION = "Which sedative do dentists give to patients?"
SURE_QUESTION = "From how many tonnes a year must releases of nitrous oxide to air be declared?"
PHRASES = ("nitrous oxide, releases to air", "declared from tonnes a year")
REPLY = "; ".join(PHRASES)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer() as running:
        yield running


@pytest.fixture
def model(services: Services, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> FakeModelServer:
    """The model that rephrases and answers until the test ends."""
    for name, max_tokens in (("chat_model", None), ("query_model", short_requests.MAX_REPLY_TOKENS)):
        client = OpenAIChatModel(
            model="fake", base_url=server.base_url, retry_policy=RetryPolicy(attempts=1), max_tokens=max_tokens
        )
        monkeypatch.setitem(vars(services), name, client)
    server.requests.clear()
    assert not server._replies
    return server


@pytest.fixture
def reader(caller: Caller, admin: Caller) -> Caller:
    """A user with one document, of an installation whose model gets the full prompt."""
    caller.add(TEXT.encode(), "gases.txt")
    admin.call("settings", "PATCH", "/api/rag/settings", {"rephrase_questions": True, "prompt_profile": "full"})
    return caller


def send(caller: Caller, query: str = QUESTION) -> Json:
    given = caller.call("chat", "POST", "/api/rag/chat", {"query": query})
    assert given.status == 200, given.content
    return dict(given.json)


def prompts(model: FakeModelServer) -> list[str]:
    """What each request asks for: phrases, or an answer to a question."""
    asked = (chat["messages"][-1]["content"].splitlines() for chat in model.chats)
    return [next(line for line in reversed(lines) if line.startswith(("Phrases:", "Question:"))) for lines in asked]


def test_an_unsure_search_is_repeated_in_the_words_of_a_page(
    reader: Caller, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RET-12"""
    searches = Mock(wraps=retriever.retrieve)
    monkeypatch.setattr(retriever, "retrieve", searches)
    model.script(REPLY)
    assert (send(reader)["mode"], prompts(model)) == ("model", ["Phrases:", f"Question: {QUESTION}"])
    versions = tuple((phrase, "en") for phrase in PHRASES)
    assert [call.kwargs["translations"] for call in searches.call_args_list] == [(), versions]


def test_a_refused_question_takes_no_request(reader: Caller, model: FakeModelServer) -> None:
    """RET-12, RET-8: in the words of a page, it could pass the guard."""
    assert (send(reader, OFF_TOPIC_QUESTION)["mode"], model.chats) == ("guard", [])


@pytest.mark.parametrize(
    "reply", ["I am sorry, I cannot do that.", Reply(status=500), Reply(["nitrous oxide"], ending="cut")]
)
def test_without_phrases_the_first_search_stands(reader: Caller, model: FakeModelServer, reply: Reply | str) -> None:
    """RET-12"""
    model.script(reply)
    assert (send(reader)["mode"], prompts(model)) == ("model", ["Phrases:", f"Question: {QUESTION}"])


def test_a_sure_search_takes_no_request(reader: Caller, model: FakeModelServer) -> None:
    """RET-12"""
    assert (send(reader, SURE_QUESTION)["mode"], prompts(model)) == ("model", [f"Question: {SURE_QUESTION}"])


def test_rephrasing_can_be_switched_off(reader: Caller, admin: Caller, model: FakeModelServer) -> None:
    """RET-12, SET-3"""
    admin.call("settings", "PATCH", "/api/rag/settings", {"rephrase_questions": False})
    assert (send(reader)["mode"], prompts(model)) == ("model", [f"Question: {QUESTION}"])


def test_a_small_model_is_not_asked_for_phrases(reader: Caller, admin: Caller, model: FakeModelServer) -> None:
    """RET-12"""
    admin.call("settings", "PATCH", "/api/rag/settings", {"prompt_profile": "compact"})
    assert (send(reader)["mode"], prompts(model)) == ("model", [f"Question: {QUESTION}"])


def test_the_tokens_of_a_rephrasing_count(reader: Caller, model: FakeModelServer) -> None:
    """RET-12, OPS-3"""
    model.script(REPLY)
    given = send(reader)
    words = sum(len(message["content"].split()) for chat in model.chats for message in chat["messages"])
    assert (len(model.chats), given["usage"]["prompt_tokens"]) == (2, words)


def test_a_completion_is_rephrased_too(reader: Caller, model: FakeModelServer) -> None:
    """RET-12, CHAT-10"""
    model.script(REPLY)
    body = {"model": "ibid", "messages": [{"role": "user", "content": QUESTION}]}
    given = reader.call("chat", "POST", "/v1/chat/completions", body)
    assert (given.status, given.json["ibid"]["mode"], prompts(model)[0]) == (200, "model", "Phrases:")


@pytest.mark.parametrize(("profile", "mode"), [("full", "model"), ("compact", "guard")])
def test_only_a_model_that_can_tell_is_asked_below_the_bar(
    reader: Caller, admin: Caller, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch, profile: str, mode: str
) -> None:
    """CHAT-8: a small model answers from passages that do not contain the answer."""
    monkeypatch.setattr(guard, "READ_BY_MODEL", 0.0)
    admin.call("settings", "PATCH", "/api/rag/settings", {"rephrase_questions": False, "prompt_profile": profile})
    assert send(reader, OFF_TOPIC_QUESTION)["mode"] == mode
