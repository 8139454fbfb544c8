from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from functions.core import errors
from functions.core.retrieval.early_embedding import begin_embedding
from functions.runtime.policy import LOCAL_SERVER

if TYPE_CHECKING:
    from functions.core.ports import Vectors

SERVER = replace(LOCAL_SERVER, query_prefix="")


class Embedder:
    """Embeds texts as their lengths once `may_end` is set, and keeps what it was asked."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.asked: list[list[str]] = []
        self.may_end, self.fault = threading.Event(), fault

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        assert self.may_end.wait(10)
        if self.fault is not None:
            raise self.fault
        return np.array([[len(text)] for text in texts], np.float32)


def test_a_question_is_embedded_once_and_while_the_caller_goes_on() -> None:
    embedder = Embedder()
    embedder_of = begin_embedding("why", [SERVER], lambda _: embedder)
    embedder.may_end.set()
    assert np.array_equal(embedder_of(SERVER).embed(["why"]), [[3]])
    assert embedder.asked == [["why"]]


def test_a_translation_is_embedded_when_it_comes() -> None:
    embedder = Embedder()
    embedder.may_end.set()
    embedder_of = begin_embedding("why", [SERVER], lambda _: embedder)
    assert np.array_equal(embedder_of(SERVER).embed(["why", "pourquoi"]), [[3], [8]])
    assert embedder.asked == [["why"], ["pourquoi"]]


def test_another_question_is_embedded_when_it_comes() -> None:
    embedder = Embedder()
    embedder.may_end.set()
    embedder_of = begin_embedding("why", [SERVER], lambda _: embedder)
    assert np.array_equal(embedder_of(SERVER).embed(["why not"]), [[7]])


def test_the_text_has_the_prefix_of_its_server() -> None:
    embedder, server = Embedder(), replace(SERVER, query_prefix="query: ")
    embedder.may_end.set()
    begin_embedding("why", [server], lambda _: embedder)(server).embed(["query: why"])
    assert embedder.asked == [["query: why"]]


def test_a_failure_is_raised_where_the_vectors_are_needed() -> None:
    embedder = Embedder(errors.ModelUnavailableError())
    embedder.may_end.set()
    embedder_of = begin_embedding("why", [SERVER], lambda _: embedder)
    with pytest.raises(errors.ModelUnavailableError):
        embedder_of(SERVER).embed(["why"])
