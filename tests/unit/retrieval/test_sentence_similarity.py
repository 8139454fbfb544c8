from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final
from unittest.mock import Mock

from functions.core import errors, models
from functions.core.retrieval.sentence_similarity import make_compare

SERVER = models.EmbeddingServer(
    "id", "name", "openai", "e5", 2, 512, (), query_prefix="query: ", passage_prefix="passage: "
)
VECTORS: Final = {
    "query: How deep?": array("f", [1, 0]),
    "passage: Ten metres.": array("f", [0.5, 0.5]),
    "passage: It rains.": array("f", [0, 1]),
}


class Embedder:
    """Knows the vectors of three texts; fails for others as a server does that is down."""

    def embed(self, texts: Sequence[str]) -> list[array[float]]:
        if not VECTORS.keys() >= set(texts):
            raise errors.ModelUnavailableError()
        return [VECTORS[text] for text in texts]


def test_sentences_are_compared_with_the_question_by_the_prefixes_of_the_server() -> None:
    """CHAT-6"""
    compare = make_compare(SERVER, lambda _: Embedder())
    assert compare("How deep?", ["It rains.", "Ten metres."]) == [0.0, 0.5]


def test_without_the_server_all_sentences_are_equally_near() -> None:
    """CHAT-6"""
    assert make_compare(SERVER, lambda _: Embedder())("Who?", ["It rains.", "Ten metres."]) == [0.0, 0.0]


def test_the_sentences_of_a_question_in_two_parts_are_embedded_once() -> None:
    """CHAT-6"""
    embedder = Mock(wraps=Embedder())
    compare = make_compare(SERVER, lambda _: embedder)
    assert [compare("How deep?", ["It rains."]), compare("How deep?", ["It rains.", "Ten metres."])] == [
        [0.0],
        [0.0, 0.5],
    ]
    assert [call.args[0] for call in embedder.embed.call_args_list] == [
        ["query: How deep?", "passage: It rains."],
        ["passage: Ten metres."],
    ]
