from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from functions.core import errors, guard, models, retrieval
from functions.core.retrieval import Found, Query, choose_context
from functions.core.settings import Settings
from tests.fakes.search_hits import make_hit

EN = models.EmbeddingServer("en", "en", "local", "m", 2, 256, ("en",))
ANY = models.EmbeddingServer("any", "any", "local", "m", 2, 256, ())


class Embedder:
    """Gives every text the same vector, or fails."""

    dimensions = 2
    max_input_tokens = 256

    def __init__(self, error: errors.IbidError | None = None) -> None:
        self.error = error

    def embed(self, texts: Any) -> Any:
        if self.error:
            raise self.error
        return np.tile(np.array([0.6, 0.8], np.float32), (len(texts), 1))

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def ask(lang: str, embedders: dict[models.EmbeddingServer, Embedder]) -> tuple[Query, retrieval.Retrieval]:
    asked: list[Query] = []

    def search(query: Query) -> Found:
        asked.append(query)
        return Found(())

    result = retrieval.retrieve(
        "question",
        lang,
        models.Scope("library"),
        servers=list(embedders),
        embedder_of=embedders.__getitem__,
        search=search,
        settings=Settings(blend_alpha=0.5, foreign_vector_weight=0.1),
    )
    (query,) = asked
    return query, result


@pytest.mark.parametrize(("lang", "weight"), [("en", 1.0), ("fr", 0.1)])
def test_vectors_of_a_model_that_does_not_speak_the_language_count_for_little(lang: str, weight: float) -> None:
    """RET-5"""
    query, _ = ask(lang, {EN: Embedder()})
    assert ([v.weight for v in query.vectors], query.blend_alpha) == ([weight], 0.5 * weight)


def test_a_model_that_names_no_language_speaks_all() -> None:
    """RET-5"""
    query, _ = ask("fr", {ANY: Embedder()})
    assert [v.weight for v in query.vectors] == [1.0]


def test_the_question_is_embedded_once_for_each_server() -> None:
    """RET-6"""
    query, _ = ask("en", {EN: Embedder(), ANY: Embedder()})
    assert [v.server_id for v in query.vectors] == ["en", "any"]


def test_a_server_that_does_not_answer_is_left_out_and_named() -> None:
    query, result = ask("en", {EN: Embedder(errors.ModelUnavailableError()), ANY: Embedder()})
    assert ([v.server_id for v in query.vectors], result.degraded) == (["any"], ("en",))


def test_one_source_gets_no_more_than_its_share() -> None:
    """RET-4"""
    hits = [make_hit(f"text {n}", document=f"d{n // 4}", index=n, page=n + 1) for n in range(12)]
    chosen = choose_context(hits, Settings(passages_per_source=2, context_passages=5))
    assert [(h.source_id, h.chunk_index) for h in chosen] == [("d0", 0), ("d0", 1), ("d1", 4), ("d1", 5), ("d2", 8)]


def test_a_passage_mostly_inside_a_better_one_is_dropped() -> None:
    """RET-4"""
    whole = make_hit("a" * 100, index=0)
    inside = replace(
        make_hit("a" * 60, index=1), start_offset=whole.start_offset + 30, end_offset=whole.start_offset + 90
    )
    beside = replace(make_hit("b" * 60, index=2), start_offset=whole.end_offset - 20, end_offset=whole.end_offset + 40)
    assert choose_context([whole, inside, beside], Settings()) == (whole, beside)


def test_the_same_words_in_two_documents_are_read_once() -> None:
    """RET-4"""
    one, other = make_hit("same", document="d1"), make_hit("same", document="d2")
    assert choose_context([one, other], Settings()) == (one,)


def test_evidence_must_come_from_one_passage() -> None:
    """RET-8"""
    similar = replace(make_hit("x"), similarity=0.5, coverage=0.0)
    covering = replace(make_hit("y"), similarity=0.0, coverage=0.5)
    both = replace(make_hit("z"), similarity=0.5, coverage=0.5)
    assert [guard.is_answerable(hits, 0.4) for hits in ([similar, covering], [both], [])] == [False, True, False]


def test_a_refusal_names_the_nearest_misses_and_what_is_still_processed() -> None:
    """RET-8"""
    hits = [
        replace(make_hit("x", document="far"), similarity=0.1),
        replace(make_hit("y", document="near"), similarity=0.2),
    ]
    assert guard.explain_refusal("", "en", hits, ["new.pdf"]) == (
        "I found nothing in your documents that answers this question. The nearest passages are in: near.pdf, far.pdf."
        " Still being processed, so not searched: new.pdf."
    )
    assert guard.explain_refusal("Non.", "fr", [], []) == "Non."
