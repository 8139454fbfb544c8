"""Questions at and beyond the limits, the order of the events of a stream, and what is saved when the model fails."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.adapters.models.openai_connection import RetryPolicy
from functions.runtime import asking, searching
from functions.runtime.services import Services
from functions.web import deps, sse
from tests.handlers import events
from tests.handlers.conftest import Caller
from tests.handlers.events import Answer, Json
from tests.support.fakes.model_server import FakeModelServer, Reply, answer_json, pieces

UNKNOWN_ID = "00000000-0000-4000-8000-00000000000f"
FACT = "The boiler burns wood chips in winter. It was built by Marta Olsen in 1931."
QUESTION = "What does the boiler burn in winter?"
OFF_TOPIC = "Which prince married the dancer of the Bolshoi?"
QUICK = RetryPolicy(attempts=1)


@pytest.fixture(scope="module")
def reader(services: Services) -> Caller:
    """A user with one document."""
    reader = Caller(services)
    reader.add(FACT.encode())
    return reader


@pytest.fixture(scope="module")
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer() as running:
        yield running


@pytest.fixture
def model(services: Services, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> FakeModelServer:
    """The model that answers questions until the test ends."""
    chat_model = OpenAIChatModel(model="fake", base_url=server.base_url, retry_policy=QUICK)
    monkeypatch.setitem(vars(services), "chat_model", chat_model)
    server.requests.clear()
    return server


def send(caller: Caller, query: Any = QUESTION, **fields: Any) -> Answer:
    return caller.call("chat", "POST", "/api/rag/chat", {"query": query} | fields)


def stream(caller: Caller, query: str = QUESTION, **fields: Any) -> list[Json]:
    """The events of a stream; a comment is an event named `comment`."""
    answer = send(caller, query, stream=True, **fields)
    assert answer.status == 200, answer.content
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    *blocks, rest = answer.content.decode().split("\n\n")
    assert rest == ""
    return [
        {"comment": block[1:].strip()} if block.startswith(":") else json.loads(block.removeprefix("data: "))
        for block in blocks
    ]


def messages(caller: Caller, conversation_id: str) -> list[Json]:
    answer = caller.call("conversations", "GET", f"/api/rag/conversations/{conversation_id}/messages")
    assert answer.status == 200, answer.content
    return list(answer.json["items"])


def count_messages(caller: Caller) -> int:
    found = caller.row("select count(*) as n from rag.messages where owner_id = %s", caller.user.id)
    return int(found["n"])


# The query


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("?", id="one-sign"),
        pytest.param("a", id="one-letter"),
        pytest.param("x" * 4000, id="4000"),
        pytest.param(f" {'x' * 4000}\n", id="4000-and-spaces"),
        pytest.param("😀" * 4000, id="4000-emoji"),
        pytest.param("a\0b\ud800", id="unstorable-inside"),
        pytest.param("\u202ewhat\u200b?", id="with-zero-width"),
        pytest.param('"what" OR -boiler & | :* ( \' {} %s', id="operators"),
    ],
)
def test_a_question_has_1_to_4000_characters(caller: Caller, query: str) -> None:
    """CHAT-1"""
    answer = send(caller, query)
    assert (answer.status, answer.json["status"]) == (200, "guarded")
    asked, answered = messages(caller, answer.json["conversation_id"])
    assert asked["content"] == query.strip().replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    assert answered["id"] == answer.json["message_id"]


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize(
    "query",
    [
        pytest.param("", id="empty"),
        pytest.param(" \t\r\n\u00a0\u3000", id="blank"),
        pytest.param("\0", id="nul"),
        pytest.param("\0\x07\x1b", id="controls"),
        pytest.param("\u200b\u200d\u2060\ufeff", id="zero-width"),
        pytest.param("\u202e\u200f", id="directions"),
        pytest.param("\ud83d", id="half-an-emoji"),
        pytest.param("x" * 4001, id="4001"),
        pytest.param(None, id="null"),
        pytest.param(7, id="number"),
        pytest.param([QUESTION], id="list"),
    ],
)
def test_an_invalid_question_is_refused_and_not_saved(caller: Caller, query: object, streamed: bool) -> None:
    """CHAT-1, SEC-6"""
    answer = send(caller, query, stream=streamed)
    assert answer.problem == (400, "invalid_input")
    assert [fault["key"] for fault in answer.json["faults"]] == ["query"]
    assert count_messages(caller) == 0


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({}, "query"),
        ({"query": QUESTION, "question": QUESTION}, "question"),
        ({"query": QUESTION, "owner_id": UNKNOWN_ID}, "owner_id"),
        ({"query": QUESTION, "stream": "perhaps"}, "stream"),
        ({"query": QUESTION, "scope": "notebook"}, "scope"),
        ({"query": QUESTION, "scope": "library", "note_id": UNKNOWN_ID}, "scope"),
        ({"query": QUESTION, "filters": []}, "filters"),
        ({"query": QUESTION, "conversation_id": "mine"}, "conversation_id"),
        ([], "body"),
        ("", "body"),
        ("{", "body"),
        ("[" * 50_000, "body"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_body_that_cannot_be_read_names_the_field_at_fault(caller: Caller, body: object, key: str) -> None:
    """CHAT-1, SEC-6"""
    answer = caller.call("chat", "POST", "/api/rag/chat", body)
    assert answer.problem == (400, "invalid_input")
    assert {"type", "title", "status", "detail", "code", "request_id"} <= set(answer.json)
    assert [fault["key"] for fault in answer.json.get("faults", [{"key": "body"}])] == [key]
    assert count_messages(caller) == 0


def test_every_field_is_also_accepted_in_camel_case(reader: Caller) -> None:
    """CHAT-1"""
    first = send(reader).json
    again = send(reader, conversationId=first["conversation_id"], filters={"fileType": "txt"}).json
    assert (again["conversation_id"], again["scope"]) == (
        first["conversation_id"],
        {"kind": "library", "filters": {"file_type": "txt"}},
    )


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
def test_an_unknown_or_another_users_conversation_is_not_found(
    services: Services, caller: Caller, reader: Caller, streamed: bool
) -> None:
    """CHAT-1, SEC-3"""
    other_users = send(reader).json["conversation_id"]
    before = count_messages(reader)
    for conversation_id in (other_users, str(uuid4())):
        answer = send(caller, conversation_id=conversation_id, stream=streamed)
        assert answer.problem == (404, "not_found")
        assert answer.json["detail"] == "There is no such conversation."
    assert (count_messages(caller), count_messages(reader)) == (0, before)


# The answer


def test_the_body_of_an_answer_has_every_documented_field(reader: Caller) -> None:
    """CHAT-1, CHAT-5"""
    given = send(reader).json
    assert set(given) == {
        "answer",
        "sections",
        "sources",
        "conversation_id",
        "message_id",
        "scope",
        "usage",
        "status",
        "mode",
        "search_query",
        "translated_query",
        "degraded",
        "question_id",
        "suggestions",
    }
    assert [set(section) for section in given["sections"]] == [
        {"text", "segment_ids", "source_ids", "citations", "unsupported_numbers", "is_remark", "emphasis"}
    ]
    (source,) = given["sources"]
    assert {
        "document_id",
        "chunk_index",
        "file_name",
        "page_start",
        "page_end",
        "start_offset",
        "end_offset",
        "quote",
        "snippet_preview",
        "score",
        "check",
        "number",
        "source",
    } <= set(source)
    assert {"prompt_tokens", "completion_tokens", "model"} <= set(given["usage"])
    assert given["usage"]["completion_tokens"] is None


def test_a_saved_message_equals_its_answer(reader: Caller, model: FakeModelServer) -> None:
    """CHAT-11"""
    given = send(reader).json
    asked, kept = messages(reader, given["conversation_id"])
    same = ("sections", "status", "mode", "usage", "search_query", "translated_query")
    assert {key: kept[key] for key in same} == {key: given[key] for key in same}
    assert [{key: source[key] for key in given["sources"][0]} for source in kept["sources"]] == given["sources"] != []
    assert kept["usage"]["completion_tokens"] > 0
    assert (asked["sections"], asked["sources"], asked["status"], asked["usage"]) == ([], [], "complete", None)


def test_the_tokens_of_an_unusable_answer_are_counted(reader: Caller, model: FakeModelServer) -> None:
    """CHAT-6, OPS-3"""
    model.script(Reply(["{}"]))
    given = send(reader).json
    assert (given["mode"], given["status"]) == ("extractive", "complete")
    assert given["usage"]["prompt_tokens"] > 0
    assert messages(reader, given["conversation_id"])[1]["usage"] == given["usage"]


def test_the_model_gets_the_last_turns_only(reader: Caller, model: FakeModelServer) -> None:
    """CHAT-7"""
    conversation: Json = {}
    for n in range(5):
        given = send(reader, f"{QUESTION} {n}", **conversation).json
        conversation = {"conversation_id": given["conversation_id"]}
    _, *turns, last = model.chats[-1]["messages"]
    assert [turn["content"] for turn in turns[::2]] == [f"{QUESTION} {n}" for n in (1, 2, 3)]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 3
    assert f"Question: {QUESTION} 4\n\n" in last["content"]


# The stream


def test_a_stream_is_the_scope_then_the_texts_then_the_whole_answer(reader: Caller) -> None:
    """CHAT-2"""
    whole = send(reader).json
    meta, *texts, done = stream(reader)
    ids = {key: done[key] for key in ("conversation_id", "question_id")}
    own = {**ids, "message_id": done["message_id"]}
    assert meta == {"meta": {**ids, "scope": {"kind": "library"}}}
    assert "".join(text.pop("text") for text in texts) == whole["sections"][0]["text"]
    assert texts == [{}] * len(texts) != []
    assert done == {"done": True} | whole | own
    assert messages(reader, done["conversation_id"])[1]["id"] == done["message_id"]


def test_a_guard_answer_streams_the_same_way(caller: Caller, model: FakeModelServer) -> None:
    """CHAT-2, RET-8"""
    meta, text, done = stream(caller, OFF_TOPIC)
    assert (list(meta), list(text)) == (["meta"], ["text"])
    assert (done["done"], done["answer"], done["status"], done["mode"]) == (True, text["text"], "guarded", "guard")
    assert (done["sources"], model.chats) == ([], [])
    assert messages(caller, done["conversation_id"])[1]["content"] == text["text"]


def test_a_silent_stream_sends_pings(reader: Caller, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """CHAT-2"""
    assert sse.PING_SECONDS == 15.0
    monkeypatch.setattr(sse, "PING_SECONDS", 0.05)
    model.script(Reply([answer_json(("It burns wood chips.", []))], delay=0.2))
    given = stream(reader)
    assert given.count({"comment": "ping"}) >= 3
    assert [next(iter(event)) for event in given if "comment" not in event] == ["meta", "text", "done"]


EMOJI = answer_json(("The boiler burns wood chips 😀 in winter.", []))


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(EMOJI.replace("😀", "\ud83d|\ude00").split("|"), id="two-pieces"),
        pytest.param(pieces(json.dumps(json.loads(EMOJI)), 1), id="escapes-in-pieces"),
    ],
)
def test_an_emoji_split_over_two_pieces_is_streamed_whole(
    reader: Caller, model: FakeModelServer, written: list[str]
) -> None:
    """CHAT-2"""
    model.script(Reply(written))
    _, *texts, done = stream(reader)
    assert "".join(text["text"] for text in texts) == "The boiler burns wood chips 😀 in winter."
    assert done["sections"][0]["text"] == "The boiler burns wood chips 😀 in winter."


@pytest.mark.parametrize("ending", ["cut", "silent", "error"])
def test_an_error_in_mid_stream_is_the_last_event_and_the_text_so_far_is_kept(
    reader: Caller, model: FakeModelServer, ending: Any
) -> None:
    """CHAT-2"""
    model.script(Reply(pieces(answer_json(("The boiler burns wood chips in winter.", [])))[:7], ending=ending))
    meta, *texts, error = stream(reader)
    assert (set(error), error["error"]["code"], error["error"]["status"]) == ({"error"}, "model_unavailable", 503)
    asked, kept = messages(reader, meta["meta"]["conversation_id"])
    written = "".join(text["text"] for text in texts)
    assert written
    assert (asked["content"], kept["status"]) == (QUESTION, "interrupted")
    assert kept["content"].startswith(written)


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(status=401), "model_rejected"),
        (Reply(status=429), "model_rate_limited"),
        (Reply(status=503), "model_unavailable"),
        (Reply(raw=b"<html>"), "model_unavailable"),
    ],
    ids=["key", "limit", "fault", "html"],
)
def test_a_silent_model_is_replaced_by_passages_and_the_answer_says_why(
    reader: Caller, model: FakeModelServer, reply: Reply, code: str, streamed: bool
) -> None:
    """CHAT-2, CHAT-6"""
    model.script(reply)
    given = stream(reader)[-1] if streamed else send(reader).json
    assert (given["mode"], given["status"], given["usage"]["degraded"]) == ("extractive", "complete", code)
    assert given["answer"].startswith("The language model")
    assert [source["check"] for source in given["sources"]] == ["exact"]
    kept = messages(reader, given["conversation_id"])[1]
    assert (kept["content"], kept["usage"]) == (given["answer"], given["usage"])


def test_a_model_that_only_sends_comments_is_too_slow(
    reader: Caller, services: Services, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CHAT-2: comments keep the connection open but are no text for the reader."""
    monkeypatch.setitem(vars(services), "first_word_seconds", 0.2)
    model.script(Reply(["late"], comments=50, delay=0.05))
    given = send(reader).json
    assert (given["mode"], given["usage"]["degraded"]) == ("extractive", "model_too_slow")


def test_a_function_that_is_about_to_end_quotes_the_passages(
    reader: Caller, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CHAT-2: the time that Lambda leaves counts."""
    monkeypatch.setattr(deps, "find_function_name", lambda: "chat")
    monkeypatch.setattr(asking, "RESERVE_SECONDS", events.Context.seconds - 1.0)
    model.script(Reply(["late"], delay=9.0))
    started = time.monotonic()
    given = send(reader).json
    assert (given["usage"]["degraded"], time.monotonic() - started < 5) == ("model_too_slow", True)


def test_an_internal_error_in_a_stream_is_reported_without_details(
    reader: Caller, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CHAT-2, SEC-6"""
    monkeypatch.setattr(searching, "retrieve", lambda *_: 1 / 0)
    meta, error = stream(reader)
    assert list(meta) == ["meta"]
    assert error["error"]["status"] == 500
    assert "division" not in json.dumps(error)


# Access


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_only_post_is_allowed(caller: Caller, method: str) -> None:
    """SEC-6"""
    assert caller.call("chat", method, "/api/rag/chat").problem == (405, "method_not_allowed")


@pytest.mark.parametrize("size", [1024 * 1024 + 1])
def test_a_body_of_more_than_a_megabyte_is_refused(caller: Caller, size: int) -> None:
    """SEC-6"""
    assert caller.call("chat", "POST", "/api/rag/chat", " " * size).problem == (413, "too_large")


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer nonsense", "Basic YTpi"])
def test_a_question_without_a_token_is_refused(services: Services, token: str) -> None:
    """SEC-1"""
    event = events.http("POST", "/api/rag/chat", {"query": QUESTION}, headers={"authorization": token})
    assert events.send("chat", event).problem == (401, "not_signed_in")
