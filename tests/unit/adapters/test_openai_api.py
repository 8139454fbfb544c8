from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import pytest

from functions.adapters.models import openai_connection, stream_body
from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.adapters.models.openai_connection import RetryPolicy
from functions.adapters.models.openai_embedder import MAX_BATCH_TOKENS, OpenAIEmbedder
from functions.core import errors, models, ports
from tests.support.fakes.model_server import FakeModelServer, Reply, word_vector

KEY = "sk-secret-key-of-the-test"
QUICK = RetryPolicy(attempts=3, total_seconds=5, first_wait=0.01)
SCHEMA = {"type": "object"}
HELLO = [ports.ChatMessage("user", "hello there")]


@pytest.fixture
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer(dimensions=8) as running:
        yield running


def usual_options(server: FakeModelServer) -> dict[str, Any]:
    return {"model": "fake", "base_url": server.base_url, "api_key": KEY, "retry_policy": QUICK}


def chat_model(server: FakeModelServer, **options: Any) -> OpenAIChatModel:
    return OpenAIChatModel(**usual_options(server) | options)


def embedder(server: FakeModelServer, **options: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder(**usual_options(server) | {"dimensions": 8} | options)


def test_first_requests_at_the_same_time_share_one_client() -> None:
    """CHAT-4: a second client would never be closed."""
    connection = openai_connection.Connection("http://127.0.0.1:9/v1", None, QUICK, 1.0)
    ready = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        clients = threads.map(lambda _: (ready.wait(), connection.client)[1], range(8))
        assert len({id(client) for client in clients}) == 1


def endless() -> bytes:
    """A reply with the right vector and 1,000 spaces before it ends."""
    return json.dumps({"data": [{"embedding": word_vector("why", 8)}]}).encode() + b" " * 1000


def test_clients_of_a_process_share_the_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    first = openai_connection.Connection("https://one.example.org/v1", "key", QUICK, 1.0)
    second = openai_connection.Connection("https://two.example.org/v1", None, QUICK, 1.0)
    assert first.client is not None
    monkeypatch.setattr(ssl, "create_default_context", None)
    assert second.client is not None


def test_vectors_that_arrive_too_slowly_are_not_waited_for(server: FakeModelServer) -> None:
    """ING-8: although the server is never silent for long."""
    server.script(Reply(raw=endless(), drip=0.1))
    slow = embedder(server, read_seconds=0.2, retry_policy=RetryPolicy(attempts=1))
    with pytest.raises(errors.ModelUnavailableError, match="too slow"):
        slow.embed(["why"])


def test_a_reply_without_an_end_is_not_read_to_its_end(
    server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ING-8"""
    monkeypatch.setattr(stream_body, "MAX_BODY_BYTES", 500)
    server.script(Reply(raw=endless()))
    with pytest.raises(errors.ModelUnavailableError):
        embedder(server, retry_policy=RetryPolicy(attempts=1)).embed(["why"])


def test_a_500_that_calls_a_field_invalid_is_a_refusal_of_the_field(server: FakeModelServer) -> None:
    """CHAT-4: as llama-cpp-python answers to a response format with a schema."""
    message = (
        "1 validation error: {'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'json_object'\"}"
    )
    server.script(Reply(status=500, error={"message": message}), "yes")
    assert list(chat_model(server).stream(HELLO, json_schema=SCHEMA)) == ["yes"]
    assert [chat["response_format"]["type"] for chat in server.chats] == ["json_schema", "json_object"]


def test_a_completion_streams_and_counts_its_tokens(server: FakeModelServer) -> None:
    """CHAT-2"""
    server.script(Reply(["one ", "two ", "three"]))
    stream = chat_model(server).stream(HELLO, json_schema=SCHEMA)
    assert list(stream) == ["one ", "two ", "three"]
    assert stream.usage == models.Usage(prompt_tokens=2, completion_tokens=3, model="fake")
    assert server.chats[0]["response_format"]["json_schema"] == {
        "name": "cited_answer",
        "strict": True,
        "schema": SCHEMA,
    }
    assert server.chats[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("refuses", "formats"),
    [
        pytest.param(["json_schema"], ["json_schema", "json_object"], id="no-schema"),
        pytest.param(["json_schema", "json_object"], ["json_schema", "json_object", None], id="no-json"),
        pytest.param(["stream_options", "temperature"], ["json_schema"] * 3, id="no-options"),
    ],
)
def test_unsupported_parameters_are_left_out_and_remembered(refuses: list[str], formats: list[str | None]) -> None:
    """CHAT-4"""
    with FakeModelServer(refuses=refuses) as server:
        model = chat_model(server)
        server.script("first", "second")
        assert "".join(model.stream(HELLO, json_schema=SCHEMA)) == "first"
        assert [chat.get("response_format", {}).get("type") for chat in server.chats] == formats
        assert "".join(model.stream(HELLO, json_schema=SCHEMA)) == "second"
        assert len(server.chats) == len(formats) + 1


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Reply(status=429, headers={"Retry-After": "0"}), id="rate-limit"),
        pytest.param(Reply(status=500), id="server-error"),
        pytest.param(Reply(ending="cut"), id="cut-before-any-text"),
        pytest.param(Reply(ending="silent"), id="ends-without-a-word"),
        pytest.param(Reply(ending="error"), id="error-event"),
        pytest.param(Reply(raw=b"<html>busy</html>", status=503), id="html"),
    ],
)
def test_a_failure_before_any_text_is_retried(server: FakeModelServer, failure: Reply) -> None:
    server.script(failure, "good")
    assert "".join(chat_model(server).stream(HELLO)) == "good"
    assert len(server.chats) == 2


@pytest.mark.parametrize("ending", ["cut", "silent", "error"])
def test_a_failure_after_the_first_text_is_not_retried(
    server: FakeModelServer, ending: Literal["cut", "silent", "error"]
) -> None:
    server.script(Reply(["half "], ending=ending), "never")
    stream = iter(chat_model(server).stream(HELLO))
    assert next(stream) == "half "
    with pytest.raises(errors.ModelUnavailableError):
        next(stream)
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    ("status", "fault", "error"),
    [
        (400, {}, errors.ModelRejectedError),
        (401, {}, errors.ModelRejectedError),
        (403, {}, errors.ModelRejectedError),
        (404, {}, errors.ModelRejectedError),
        (307, {}, errors.ModelRejectedError),
        (429, {"code": "insufficient_quota"}, errors.ModelRejectedError),
        (429, {}, errors.ModelRateLimitedError),
        (503, {}, errors.ModelUnavailableError),
    ],
)
def test_each_status_becomes_our_error_without_the_key(
    server: FakeModelServer, status: int, fault: dict[str, str], error: type[errors.IbidError]
) -> None:
    reply = Reply(
        status=status, error={"message": f"wrong key {KEY}", "type": "x"} | fault, headers={"Location": "/v1/x"}
    )
    server.script(*[reply] * 3)
    with pytest.raises(error) as caught:
        chat_model(server).stream(HELLO)
    assert type(caught.value) is error
    assert KEY not in f"{caught.value.message} {caught.value.details}"
    assert len(server.chats) == (1 if error is errors.ModelRejectedError else QUICK.attempts)


def test_a_retry_after_beyond_the_time_limit_fails_at_once(server: FakeModelServer) -> None:
    server.script(Reply(status=429, headers={"Retry-After": "3600"}), "never")
    started = time.monotonic()
    with pytest.raises(errors.ModelRateLimitedError) as caught:
        chat_model(server).stream(HELLO)
    assert caught.value.details == {"status": 429, "retry_after": 3600.0}
    assert time.monotonic() - started < 2


def test_an_unreachable_server_is_unavailable() -> None:
    with FakeModelServer() as gone:
        model = chat_model(gone)
    with pytest.raises(errors.ModelUnavailableError):
        model.stream(HELLO)


def test_a_silent_server_times_out(server: FakeModelServer) -> None:
    server.script(Reply(["a", "b"], delay=0.4))
    with pytest.raises(errors.ModelUnavailableError, match="too slow"):
        list(chat_model(server, read_seconds=0.2, retry_policy=RetryPolicy(attempts=1)).stream(HELLO))


def test_a_server_that_only_sends_comments_times_out(server: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """CHAT-2: comments end the silence but are no text."""
    monkeypatch.setattr(openai_connection, "COMMENT_SECONDS", 0.3)
    server.script(Reply(["late"], comments=100, delay=0.05))
    started = time.monotonic()
    with pytest.raises(errors.ModelUnavailableError, match="too slow"):
        chat_model(server, retry_policy=RetryPolicy(attempts=1)).stream(HELLO)
    assert time.monotonic() - started < 3
    assert server.closed_early.wait(5)


def test_comments_before_the_first_word_are_waited_for(server: FakeModelServer) -> None:
    """CHAT-2"""
    server.script(Reply(["word"], comments=5, delay=0.05))
    assert list(chat_model(server, read_seconds=0.2).stream(HELLO)) == ["word"]


def test_reasoning_without_an_answer_times_out(server: FakeModelServer) -> None:
    server.script(Reply([""] * 100, delay=0.05))
    with pytest.raises(errors.ModelUnavailableError, match="too long"):
        chat_model(server, total_seconds=0.2, retry_policy=RetryPolicy(attempts=1)).stream(HELLO)


def test_questions_share_a_connection(server: FakeModelServer) -> None:
    """CHAT-2: the next question does not wait for a handshake."""
    model = chat_model(server)
    for text in ("one", "two", "three"):
        server.script(text)
        assert "".join(model.stream(HELLO)) == text
        time.sleep(0.1)  # for the end of the body, for which no caller waits
    assert len({request["client"] for request in server.requests}) == 1


def test_an_abandoned_stream_is_not_reused_for_the_next_question(server: FakeModelServer) -> None:
    model = chat_model(server)
    server.script(Reply(["word "] * 100, delay=0.01), "next")
    stream = model.stream(HELLO)
    stream.close()
    assert "".join(model.stream(HELLO)) == "next"
    assert len({request["client"] for request in server.requests}) == 2


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["a\ud83d", "\ude00b"], "a😀b"),
        (["\ud83d", "\ude00", "\ud83d", "\ude00"], "😀😀"),
        (["a\ud83d\ude00b"], "a😀b"),
        (["a\ud83d", "b"], "a\ufffdb"),
        (["x\ude00", "b"], "x\ufffdb"),
        (["a", "\ud83d"], "a"),
    ],
    ids=["halves", "two", "whole", "no-second", "no-first", "cut"],
)
def test_the_halves_of_an_emoji_are_joined_across_pieces(server: FakeModelServer, given: list[str], text: str) -> None:
    """CHAT-2"""
    server.script(Reply(given))
    assert "".join(chat_model(server).stream(HELLO)) == text


def test_closing_the_stream_closes_the_connection(server: FakeModelServer) -> None:
    server.script(Reply(["word "] * 500, delay=0.01))
    stream = chat_model(server).stream(HELLO)
    next(iter(stream))
    stream.close()
    assert server.closed_early.wait(5)


def test_a_refusal_is_streamed_as_text(server: FakeModelServer) -> None:
    server.script(Reply(["I cannot."], refusal=True))
    assert "".join(chat_model(server).stream(HELLO)) == "I cannot."


@pytest.mark.parametrize("refuses", [[], ["encoding_format"]], ids=["base64", "floats"])
def test_vectors_are_in_order_and_of_unit_length(refuses: list[str]) -> None:
    with FakeModelServer(dimensions=8, refuses=refuses) as server:
        vectors = embedder(server).embed(["one two", "three", ""])
    expected = np.array([word_vector(text, 8) for text in ("one two", "three", " ")], np.float32)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert np.asarray(vectors).dtype == np.float32


def test_no_texts_send_no_embedding_request(server: FakeModelServer) -> None:
    assert embedder(server).embed([]) == []
    assert server.requests == []


def test_batches_stay_within_inputs_and_tokens(server: FakeModelServer) -> None:
    """ING-8"""
    model = embedder(server, batch_size=3)
    long = "x" * (MAX_BATCH_TOKENS * 2)  # two thirds of what one request may hold
    assert len(model.embed(["a", "b", "c", "d", long, long])) == 6
    assert [len(body["input"]) for body in server.embeddings] == [3, 2, 1]


@pytest.mark.parametrize(
    "vectors",
    [
        pytest.param([[1.0] * 9], id="dimensions"),
        pytest.param([[0.0] * 8], id="no-length"),
        pytest.param([[float("nan")] * 8], id="not-finite"),
        pytest.param([[1.0] * 8] * 2, id="too-many"),
    ],
)
def test_vectors_that_cannot_be_used_are_rejected(server: FakeModelServer, vectors: list[list[float]]) -> None:
    """ING-8"""
    server.script(Reply(vectors=vectors))
    with pytest.raises(errors.ModelRejectedError):
        embedder(server).embed(["a"])


@pytest.mark.parametrize("page", [b"<html>Bad gateway</html>", b"[]", b"{"], ids=["html", "list", "cut"])
def test_a_reply_that_is_no_json_object_is_asked_for_again(server: FakeModelServer, page: bytes) -> None:
    """ING-8: the page of a proxy costs a retry, not the document."""
    server.script(Reply(raw=page))
    assert len(embedder(server).embed(["a"])) == 1
    assert len(server.embeddings) == 2


@pytest.mark.parametrize("body", [b'{"data": 5}', b'{"data": ["x"]}', b'{"data": [{"index": 0}]}', b"{}"])
def test_an_object_without_vectors_is_rejected(server: FakeModelServer, body: bytes) -> None:
    """ING-8"""
    server.script(Reply(raw=body))
    with pytest.raises(errors.ModelRejectedError):
        embedder(server).embed(["a"])


def test_a_non_finite_number_in_a_vector_is_rejected() -> None:
    """ING-8"""
    with FakeModelServer(dimensions=8, refuses=["encoding_format"]) as server:
        server.script(Reply(vectors=[[10**400, *[1.0] * 7]]))
        with pytest.raises(errors.ModelRejectedError, match="other than vectors"):
            embedder(server).embed(["a"])


def test_a_rate_limited_embedding_waits_and_succeeds(server: FakeModelServer) -> None:
    """ING-8"""
    server.script(Reply(status=429, headers={"Retry-After": "0.01"}))
    assert len(embedder(server).embed(["a"])) == 1


@pytest.mark.parametrize("text", ["word " * 40, "élève étudié " * 20, "今天很好" * 20], ids=["en", "fr", "zh"])
def test_tokens_are_never_underestimated(server: FakeModelServer, text: str) -> None:
    assert embedder(server).count_tokens(text) >= max(len(text.split()), len(text.encode()) // 4)


@pytest.mark.parametrize("count", ["", '"prompt_tokens": null, ', '"prompt_tokens": "many", '])
def test_a_missing_count_of_tokens_costs_no_answer(server: FakeModelServer, count: str) -> None:
    """CHAT-2"""
    chunk = '{"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}], "usage": {%s"completion_tokens": 3}}'
    server.script(Reply(raw=f"data: {chunk % count}\n\ndata: [DONE]\n\n".encode()))
    stream = chat_model(server).stream(HELLO)
    assert (list(stream), stream.usage) == (["yes"], models.Usage(completion_tokens=3, model="fake"))


@pytest.mark.parametrize(
    "chunk",
    ['{"choices": "zzz"}', "[1, 2]", '{"choices": [null], "usage": "x"}', '{"choices": [{"delta": {"content": []}}]}'],
)
def test_a_malformed_chunk_is_an_error_of_the_server(server: FakeModelServer, chunk: str) -> None:
    """CHAT-2"""
    server.script(*[Reply(raw=f"data: {chunk}\n\ndata: [DONE]\n\n".encode())] * 10)
    with pytest.raises(errors.ModelUnavailableError):
        list(chat_model(server).stream([ports.ChatMessage("user", "question")]))
