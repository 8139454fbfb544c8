from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from functions.adapters.laptop.embedder import LocalEmbedder
from functions.adapters.models.openai_connection import RetryPolicy
from functions.adapters.models.openai_embedder import OpenAIEmbedder
from functions.adapters.models.token_embeddings import TokenServer
from functions.core import errors, ports
from functions.core.ingestion import late_chunking
from tests.support.fakes.json_server import Fault
from tests.support.fakes.model_server import word_vector
from tests.support.fakes.token_server import FakeTokenServer

KEY = "sk-secret-key-of-the-test"
QUICK = RetryPolicy(attempts=3, total_seconds=5, first_wait=0.01)


@pytest.fixture
def server() -> Iterator[FakeTokenServer]:
    with FakeTokenServer(api_key=KEY) as running:
        yield running


def token_server(
    server: FakeTokenServer, *, max_input_tokens: int = 512, suffix: str = "", **given: Any
) -> TokenServer:
    options: dict[str, Any] = {"api_key": KEY, "retry_policy": QUICK} | given
    embedder = OpenAIEmbedder(
        model="fake", dimensions=8, max_input_tokens=max_input_tokens, base_url=f"{server.base_url}/v1", **options
    )
    return TokenServer(embedder, base_url=server.base_url + suffix, **options)


def words_of(embedder: TokenServer, text: str) -> list[str]:
    (found,) = embedder.embed_tokens([text])
    return [text[start:end] for start, end in found.offsets]


def test_each_token_has_its_offsets_and_vector_and_special_tokens_are_left_out(
    server: FakeTokenServer,
) -> None:
    """ING-9"""
    (found,) = token_server(server).embed_tokens(["Naïve 東京, 12 €"])
    words = ["Naïve", "東京", ",", "12", "€"]
    assert found.offsets == ((0, 5), (6, 8), (8, 9), (10, 12), (13, 14))
    np.testing.assert_allclose(found.vectors, [word_vector(word, 8) for word in words], atol=1e-6)
    assert found.vectors.dtype == np.float32


def test_tokens_that_share_a_character_both_include_it(server: FakeTokenServer) -> None:
    """ING-9"""
    assert words_of(token_server(server), "so 🙂 é") == ["so", "🙂", "🙂", "é"]


def test_the_worker_knows_which_embedders_give_token_vectors(server: FakeTokenServer) -> None:
    """ING-9"""
    plain = OpenAIEmbedder(model="fake", dimensions=8)
    embedders = (token_server(server), LocalEmbedder(), plain)
    assert [isinstance(embedder, ports.TokenEmbedder) for embedder in embedders] == [True, True, False]
    assert server.requests == []


def test_a_prompt_that_the_server_prepends_shifts_no_offset() -> None:
    """ING-9"""
    with FakeTokenServer(prompt="passagé: ") as server:
        assert words_of(token_server(server), "one été") == ["one", "été"]


def test_texts_are_returned_in_order_and_empty_ones_are_not_sent(server: FakeTokenServer) -> None:
    embedder = token_server(server)
    assert [len(found.offsets) for found in embedder.embed_tokens(["a b c", "", " ", "d"])] == [3, 0, 0, 1]
    assert server.paths() == ["/info", *["/tokenize", "/embed_all"] * 3]
    assert embedder.embed_tokens([]) == []


def test_whole_texts_are_embedded_by_the_same_server(server: FakeTokenServer) -> None:
    embedder = token_server(server, max_input_tokens=99)
    assert len(embedder.embed(["one two"])) == 1
    assert server.paths() == ["/v1/embeddings"]
    assert (embedder.dimensions, embedder.max_input_tokens, embedder.count_tokens("x" * 30)) == (8, 99, 10)


def test_the_configured_address_may_be_that_of_the_openai_protocol(server: FakeTokenServer) -> None:
    assert words_of(token_server(server, suffix="/v1/"), "one") == ["one"]


def test_passages_are_late_chunked_in_windows_within_the_servers_limit() -> None:
    """ING-9"""
    text = "".join(f"été{number} " for number in range(300))
    with FakeTokenServer(max_input_length=64) as server:
        vectors = late_chunking.embed_late(token_server(server, max_input_tokens=62), text, [(0, len(text)), (5, 900)])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    expected = np.sum([word_vector(word, 8) for word in text.split()], axis=0)
    np.testing.assert_allclose(vectors[0], expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize("route", ["/info", "/tokenize", "/embed_all"])
def test_a_server_without_the_routes_for_tokens_is_rejected_at_once(route: str) -> None:
    """ING-9"""
    with FakeTokenServer(without=[route]) as server:
        with pytest.raises(errors.ModelRejectedError, match="no token embeddings"):
            token_server(server).embed_tokens(["one"])
        assert server.paths().count(route) == 1


@pytest.mark.parametrize("pooling", ["cls", "lasttoken", "splade"])
def test_a_model_that_does_not_pool_by_the_mean_is_rejected(pooling: str) -> None:
    """ING-9"""
    with FakeTokenServer(pooling=pooling) as server, pytest.raises(errors.ModelRejectedError, match="mean pooling"):
        token_server(server).embed_tokens(["one"])


def test_a_text_beyond_the_servers_limit_is_rejected_not_truncated() -> None:
    with FakeTokenServer(max_input_length=5) as server, pytest.raises(errors.ModelRejectedError, match="input limit"):
        token_server(server).embed_tokens(["one two three four"])


def test_a_wrong_key_is_rejected_without_repeating_it(server: FakeTokenServer) -> None:
    with pytest.raises(errors.ModelRejectedError, match="key") as caught:
        token_server(server, api_key="sk-wrong").embed_tokens(["one"])
    assert "sk-wrong" not in str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_transient_fault_is_retried(server: FakeTokenServer, status: int) -> None:
    server.script(Fault(status, {"Retry-After": "0.01"}), Fault(status))
    assert words_of(token_server(server), "one") == ["one"]


def test_a_server_that_stays_overloaded_is_a_rate_limit_error(server: FakeTokenServer) -> None:
    server.script(*[Fault(429, {"Retry-After": "3600"})] * 5)
    started = time.monotonic()
    with pytest.raises(errors.ModelRateLimitedError) as caught:
        token_server(server).embed_tokens(["one"])
    assert caught.value.details == {"status": 429, "retry_after": 3600.0}
    assert time.monotonic() - started < 2


def test_a_silent_server_times_out(server: FakeTokenServer) -> None:
    server.script(Fault(delay=0.5))
    with pytest.raises(errors.ModelUnavailableError, match="too slow"):
        token_server(server, read_seconds=0.2, retry_policy=RetryPolicy(attempts=1)).embed_tokens(["one"])


ROW = {"id": 1, "text": "one", "special": False, "start": 0, "stop": 3}
END = {"id": 0, "text": "</s>", "special": True, "start": None, "stop": None}
PROBE = [ROW | {"stop": 1}, END]


@pytest.mark.parametrize(
    ("tokens", "vectors"),
    [
        pytest.param(b"<html>proxy</html>", None, id="not-json"),
        pytest.param({"tokens": [1, 2], "count": 2}, None, id="another-protocol"),
        pytest.param([[{"id": 1}], PROBE], None, id="no-offsets"),
        pytest.param([[ROW | {"start": None}], PROBE], None, id="null-offsets"),
        pytest.param([[ROW | {"stop": 4}, END], PROBE], [[[1.0] * 8] * 2], id="outside-the-text"),
        pytest.param([[ROW, END], PROBE], [[[1.0] * 8]], id="pooled"),
        pytest.param([[ROW, END], PROBE], [[1.0] * 8], id="flat"),
        pytest.param([[ROW, END], PROBE], [], id="nothing"),
        pytest.param([[ROW, END], PROBE], [[[1.0] * 9] * 2], id="dimensions"),
        pytest.param([[ROW, END], PROBE], [[[float("nan")] * 8] * 2], id="not-finite"),
        pytest.param([[ROW, END], PROBE], [[[1.0] * 8, [1.0]]], id="ragged"),
    ],
)
def test_a_malformed_reply_is_rejected(server: FakeTokenServer, tokens: Any, vectors: Any) -> None:
    """ING-9"""
    server.script(Fault(body=tokens), Fault(body=vectors if vectors is not None else [[[1.0] * 8] * 2]))
    with pytest.raises(errors.ModelRejectedError):
        token_server(server).embed_tokens(["one"])
