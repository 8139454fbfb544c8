from __future__ import annotations

import hashlib
import threading
from collections.abc import Generator, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from functions.core import errors
from functions.core.ingestion import embedding

DIMENSIONS = 4


def vector_of(text: str) -> list[float]:
    raw = np.frombuffer(hashlib.sha256(text.encode()).digest()[:DIMENSIONS], np.uint8).astype(np.float32) + 1
    return (raw / np.linalg.norm(raw)).tolist()


class HashEmbedder:
    """A text's vector is made from its hash, a token is a word; `trouble` maps texts to an error or a bad vector."""

    dimensions = DIMENSIONS
    max_input_tokens = 100

    def __init__(self, trouble: dict[str, Exception | list[float]] | None = None) -> None:
        self.trouble = trouble or {}
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(list(texts))
        for text in texts:
            if isinstance(error := self.trouble.get(text), Exception):
                raise error
        return np.array([self.trouble.get(text) or vector_of(text) for text in texts], np.float32)

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def collect(
    batches: Iterable[embedding.EmbeddedBatch],
) -> tuple[dict[int, list[float]], list[embedding.EmbeddingFailure]]:
    vectors: dict[int, list[float]] = {}
    failures: list[embedding.EmbeddingFailure] = []
    for batch in batches:
        vectors |= {index: row.tolist() for index, row in zip(batch.indices, batch.vectors, strict=True)}
        failures += batch.failures
    return vectors, failures


def expected(texts: Sequence[str], *, without: Sequence[int] = ()) -> dict[int, list[float]]:
    return {i: np.array(vector_of(text), np.float32).tolist() for i, text in enumerate(texts) if i not in without}


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 2, 20])
def test_every_text_gets_its_own_vector_whatever_the_batch_size(batch_size: int, concurrency: int) -> None:
    """ING-8"""
    texts = [f"text {n}" for n in range(7)]
    batches = embedding.embed_chunks(HashEmbedder(), texts, batch_size=batch_size, concurrency=concurrency)
    assert collect(batches) == (expected(texts), [])


def test_a_batch_has_at_most_the_given_number_of_texts() -> None:
    """ING-8"""
    embedder = HashEmbedder()
    collect(embedding.embed_chunks(embedder, list("abcde"), batch_size=2))
    assert embedder.calls == [["a", "b"], ["c", "d"], ["e"]]


def test_a_batch_stays_within_the_token_limit_and_a_longer_text_has_its_own_batch() -> None:
    """ING-8"""
    embedder = HashEmbedder()
    texts = ["one two", "three", "four", "five six seven eight nine", "ten"]
    collect(embedding.embed_chunks(embedder, texts, batch_size=20, max_batch_tokens=3))
    assert embedder.calls == [["one two", "three"], ["four"], ["five six seven eight nine"], ["ten"]]


def test_known_token_counts_are_used_instead_of_counting() -> None:
    embedder = HashEmbedder()
    collect(
        embedding.embed_chunks(embedder, ["a", "b", "c"], batch_size=20, max_batch_tokens=10, token_counts=[9, 1, 5])
    )
    assert embedder.calls == [["a", "b"], ["c"]]


def test_equal_texts_are_embedded_once_and_all_get_the_vector() -> None:
    """ING-8"""
    embedder = HashEmbedder()
    texts = ["a", "b", "a", "c", "a", "b"]
    batches = list(embedding.embed_chunks(embedder, texts, batch_size=2))
    assert embedder.calls == [["a", "b"], ["c"]]
    assert [batch.indices for batch in batches] == [(0, 2, 4, 1, 5), (3,)]
    assert collect(batches) == (expected(texts), [])


def test_no_texts_give_no_batches_and_no_calls() -> None:
    embedder = HashEmbedder()
    assert list(embedding.embed_chunks(embedder, [], batch_size=2)) == []
    assert embedder.calls == []


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_bad_text_is_retried_alone_and_recorded_without_blocking_its_batch(concurrency: int) -> None:
    """ING-8"""
    texts = ["a", "bad", "b", "c", "bad"]
    embedder = HashEmbedder({"bad": errors.ModelRejectedError("too long")})
    vectors, failures = collect(embedding.embed_chunks(embedder, texts, batch_size=3, concurrency=concurrency))
    assert vectors == expected(texts, without=[1, 4])
    assert failures == [
        embedding.EmbeddingFailure(1, "model_rejected", "too long"),
        embedding.EmbeddingFailure(4, "model_rejected", "too long"),
    ]
    assert sorted(embedder.calls) == sorted([["a", "bad", "b"], ["a"], ["bad"], ["b"], ["c"]])


def test_a_bad_text_alone_in_its_batch_is_embedded_once() -> None:
    embedder = HashEmbedder({"bad": errors.ModelRejectedError("no")})
    (batch,) = embedding.embed_chunks(embedder, ["bad"], batch_size=3)
    assert (batch.indices, batch.vectors.shape, len(batch.failures)) == ((), (0, DIMENSIONS), 1)
    assert embedder.calls == [["bad"]]


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        pytest.param([1.0, float("nan"), 0.0, 0.0], "not finite", id="nan"),
        pytest.param([1.0, float("inf"), 0.0, 0.0], "not finite", id="infinite"),
        pytest.param([0.0, 0.0, 0.0, 0.0], "zeros", id="zero"),
        pytest.param([1.0, 0.0], "other than vectors", id="too-short"),
    ],
)
def test_an_unsearchable_vector_fails_only_its_own_text(vector: list[float], reason: str) -> None:
    """ING-8"""
    texts = ["a", "bad", "b"]

    class ListEmbedder(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:  # rows of different lengths make no array
            return [vector if text == "bad" else vector_of(text) for text in texts]

    vectors, failures = collect(embedding.embed_chunks(ListEmbedder(), texts, batch_size=3))
    reason = "shape (1, 2)" if len(vector) == 2 else reason
    assert vectors == expected(texts, without=[1])
    assert [(failure.index, reason in failure.message) for failure in failures] == [(1, True)]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_wrong_number_of_vectors_is_an_error(rows: int) -> None:
    with pytest.raises(errors.ModelRejectedError, match="shape"):
        embedding.check_vectors(np.ones((rows, DIMENSIONS), np.float32), 2, DIMENSIONS)


def test_a_model_that_refuses_every_text_stops_the_run() -> None:
    class WrongKey(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            self.calls.append(list(texts))
            raise errors.ModelRejectedError("wrong key")

    embedder = WrongKey()
    with pytest.raises(errors.ModelRejectedError, match="wrong key"):
        list(embedding.embed_chunks(embedder, list("abcdef"), batch_size=2))
    assert embedder.calls == [["a", "b"], ["a"], ["b"]]


@pytest.mark.parametrize("error", [errors.ModelUnavailableError, errors.ModelRateLimitedError])
@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_retryable_error_propagates_after_the_batches_before_it(error: type, concurrency: int) -> None:
    """ING-8"""
    embedder = HashEmbedder({"c": error()})
    batches = embedding.embed_chunks(embedder, list("abcd"), batch_size=2, concurrency=concurrency)
    assert next(batches).indices == (0, 1)
    with pytest.raises(error):
        next(batches)
    assert ["c"] not in embedder.calls


def test_a_retryable_error_during_a_single_retry_also_propagates() -> None:
    class Overloaded(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            raise errors.ModelRejectedError() if len(texts) > 1 else errors.ModelRateLimitedError()

    with pytest.raises(errors.ModelRateLimitedError):
        list(embedding.embed_chunks(Overloaded(), ["a", "b"], batch_size=2))


def test_batches_are_embedded_lazily() -> None:
    embedder = HashEmbedder()
    batches = embedding.embed_chunks(embedder, list("abcdef"), batch_size=2)
    next(batches)
    assert embedder.calls == [["a", "b"]]


def test_concurrent_batches_are_limited() -> None:
    """ING-8"""
    running, most, meeting = 0, 0, threading.Barrier(2)
    lock = threading.Lock()

    class Slow(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            meeting.wait(timeout=10)
            with lock:
                running -= 1
            return super().embed(texts)

    texts = list("abcdefgh")
    assert collect(embedding.embed_chunks(Slow(), texts, batch_size=1, concurrency=2)) == (expected(texts), [])
    assert most == 2


def test_concurrent_batches_do_not_run_ahead_of_the_reader() -> None:
    embedder = HashEmbedder()
    batches = embedding.embed_chunks(embedder, [f"text {n}" for n in range(200)], batch_size=1, concurrency=2)
    next(batches)
    assert isinstance(batches, Generator)
    batches.close()
    assert len(embedder.calls) <= 2
