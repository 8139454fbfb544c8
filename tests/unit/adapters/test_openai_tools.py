"""Tools in OpenAI's protocol: offered, called in the pieces of different servers, answered, refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions.adapters.models import openai_tools
from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.adapters.models.openai_connection import RetryPolicy
from functions.core import errors, ports
from functions.core.answering.tools import TOOLS
from functions.core.ports import ChatMessage, ToolCall
from tests.support.fakes.model_server import Call, FakeModelServer, Reply

HELLO = [ChatMessage("user", "hello there")]
ROUND = [
    ChatMessage("system", "rules"),
    ChatMessage("user", "question"),
    ChatMessage("assistant", "", (ToolCall("call_1", "note_search", '{"query": "x"}'), ToolCall("call_2", "f", "{}"))),
    ChatMessage("tool", "one", tool_call_id="call_1"),
    ChatMessage("tool", "two", tool_call_id="call_2"),
]


@pytest.fixture
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer() as running:
        yield running


def chat_model(server: FakeModelServer) -> OpenAIChatModel:
    retry_policy = RetryPolicy(attempts=2, total_seconds=5, first_wait=0.01)
    return OpenAIChatModel(model="fake", base_url=server.base_url, retry_policy=retry_policy)


def ask(server: FakeModelServer, messages: list[ChatMessage] = HELLO) -> tuple[str, tuple[ToolCall, ...]]:
    stream = chat_model(server).stream(messages, tools=TOOLS)
    return "".join(stream), stream.tool_calls


def test_calls_are_put_together_from_their_pieces(server: FakeModelServer) -> None:
    """CHAT-9"""
    calls = [Call("document_search", {"query": "boiler", "limit": 3}, "call_a"), Call("note_read", "", "call_b")]
    server.script(Reply(["Let me ", "look."], calls=calls))
    text, made = ask(server)
    assert text == "Let me look."
    assert made == (
        ToolCall("call_a", "document_search", '{"query": "boiler", "limit": 3}'),
        ToolCall("call_b", "note_read", ""),
    )
    offered = server.chats[0]["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["document_search", "note_search", "note_read"]
    assert offered[0]["function"]["parameters"] == TOOLS[0].parameters


def piece(name: str | None = None, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}} | fields


WHOLE = [("f", "{}"), ("g", "{}")]
ODD_STREAMS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "no-index": ([piece("f", "{}", id="a"), piece("g", "{}", id="b")], WHOLE),
    "every-index-0": ([piece("f", "{}", index=0, id="a"), piece("g", "{}", index=0, id="b")], WHOLE),
    "no-ids": ([piece("f", "{}", index=0), piece("g", "{}", index=1)], WHOLE),
    "one-id-for-all": ([piece("f", "{}", index=0, id="a"), piece("g", "{}", index=1, id="a")], WHOLE),
    "neither-index-nor-ids": ([piece("f", "{"), piece(None, "}"), piece("g", "{}")], WHOLE),
    "interleaved": (
        [
            *(piece("f", "{", index=0, id="a"), piece("g", "{", index=1, id="b")),
            *(piece(None, "}", index=0), piece(None, "}", index=1)),
        ],
        WHOLE,
    ),
    "name-repeated": ([piece("f", "{", index=0, id="a"), piece("f", "}", index=0, id="a")], [("f", "{}")]),
    "id-late": ([piece("f", "{", index=0), piece(None, "}", index=0, id="a")], [("f", "{}")]),
    "arguments-as-an-object": ([piece("f", {"a": 1}, index=0, id="a")], [("f", '{"a": 1}')]),
    "no-function": ([{"index": 0, "id": "a", "type": "function"}, piece("f", "{}", index=0)], [("f", "{}")]),
    "endless-arguments": ([piece("f", "x" * 9_000, index=0)] * 9, [("f", "x" * openai_tools.MAX_ARGUMENT_CHARS)]),
    "endless-calls": ([piece("f", "{}", index=at) for at in range(99)], [("f", "{}")] * openai_tools.MAX_CALLS),
}


@pytest.mark.parametrize(("deltas", "made"), ODD_STREAMS.values(), ids=ODD_STREAMS)
def test_calls_in_the_format_of_other_servers_are_read(
    server: FakeModelServer, deltas: list[dict[str, Any]], made: list[tuple[str, str]]
) -> None:
    """CHAT-9"""
    server.script(Reply(call_deltas=deltas))
    _, calls = ask(server)
    assert [(call.name, call.arguments) for call in calls] == made
    assert len({call.id for call in calls}) == len(calls)
    assert all(call.id for call in calls)


def test_truncated_calls_are_requested_again(server: FakeModelServer) -> None:
    server.script(Reply(calls=[Call("note_read")], ending="cut"), "good")
    assert ask(server) == ("good", ())


def test_results_are_returned_under_the_id_of_their_call(server: FakeModelServer) -> None:
    """CHAT-9"""
    ask(server, ROUND)
    assert server.chats[0]["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "note_search", "arguments": '{"query": "x"}'},
                },
                {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "content": "one", "tool_call_id": "call_1"},
        {"role": "tool", "content": "two", "tool_call_id": "call_2"},
    ]


PLAIN = 'question\n\nResult of note_search {"query": "x"}:\none\n\nResult of f {}:\ntwo'


def test_without_tools_in_the_request_results_are_sent_with_the_question(server: FakeModelServer) -> None:
    """CHAT-9"""
    "".join(chat_model(server).stream(ROUND))
    assert "tools" not in server.chats[0]
    assert server.chats[0]["messages"] == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": PLAIN},
    ]


REFUSALS = [
    "Unsupported parameter: 'tools'",
    "registry.example/library/llama2 does not support tools",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "Cannot use custom grammar constraints with tools.",
    "json mode cannot be combined with tool/function calling",
    "Function calling is not enabled for this model",
]


@pytest.mark.parametrize("message", REFUSALS)
def test_a_server_that_refuses_tools_is_asked_without_them_from_then_on(server: FakeModelServer, message: str) -> None:
    """CHAT-9"""
    model = chat_model(server)
    server.script(Reply(status=400, error={"message": message}), "first", "second")
    assert "".join(model.stream(ROUND, json_schema={"type": "object"}, tools=TOOLS)) == "first"
    assert "".join(model.stream(HELLO, json_schema={"type": "object"}, tools=TOOLS)) == "second"
    assert ["tools" in chat for chat in server.chats] == [True, False, False]
    assert [chat["response_format"]["type"] for chat in server.chats] == ["json_schema"] * 3
    assert server.chats[1]["messages"][-1]["content"] == PLAIN


def test_a_refusal_of_tools_is_final_if_none_were_offered(server: FakeModelServer) -> None:
    server.script(Reply(status=400, error={"message": "tools?"}))
    with pytest.raises(errors.ModelRejectedError):
        chat_model(server).stream(HELLO)
    assert len(server.chats) == 1


def test_the_adapter_is_a_chat_model(server: FakeModelServer) -> None:
    model: ports.ChatModel = chat_model(server)
    assert list(model.stream(HELLO, tools=TOOLS)) != []
