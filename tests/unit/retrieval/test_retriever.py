from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from functions.core import errors, models
from functions.core.retrieval import guard, retriever
from functions.core.retrieval.retriever import Query, Ranking
from functions.core.settings import Settings
from tests.support.fakes.search_hits import make_hit

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


def ask(
    lang: str, embedders: dict[models.EmbeddingServer, Embedder], question: str = "question"
) -> tuple[Query, retriever.Retrieval]:
    queries: list[Query] = []

    def search(query: Query) -> Ranking:
        queries.append(query)
        return Ranking(())

    result = retriever.retrieve(
        question,
        lang,
        models.Scope("library"),
        servers=list(embedders),
        embedder_of=embedders.__getitem__,
        search=search,
        settings=Settings(blend_alpha=0.5, foreign_vector_weight=0.1),
    )
    (query,) = queries
    return query, result


@pytest.mark.parametrize(("lang", "weight"), [("en", 1.0), ("fr", 0.1)])
def test_vectors_of_a_model_without_the_language_have_little_weight(lang: str, weight: float) -> None:
    """RET-5"""
    query, _ = ask(lang, {EN: Embedder()})
    assert ([v.weight for v in query.vectors], query.blend_alpha) == ([weight], 0.5 * weight)


def test_a_model_without_a_list_of_languages_has_all() -> None:
    """RET-5"""
    query, _ = ask("fr", {ANY: Embedder()})
    assert [v.weight for v in query.vectors] == [1.0]


def test_the_question_is_embedded_once_for_each_server() -> None:
    """RET-6"""
    query, _ = ask("en", {EN: Embedder(), ANY: Embedder()})
    assert [v.server_id for v in query.vectors] == ["en", "any"]


def test_each_part_of_a_question_is_embedded_and_searched_at_once() -> None:
    """RET-13"""
    question = "When was the tower built and who paid for the bridge?"
    query, _ = ask("en", {ANY: Embedder()}, question)
    parts = ("When was the tower built", "who paid for the bridge?")
    assert query.versions == tuple((text, "en") for text in (question, *parts))
    assert len(query.vectors) == 3


def test_a_failing_server_is_left_out_and_named_as_degraded() -> None:
    query, result = ask("en", {EN: Embedder(errors.ModelUnavailableError()), ANY: Embedder()})
    assert ([v.server_id for v in query.vectors], result.degraded) == (["any"], ("en",))


def test_all_servers_embed_the_question_at_the_same_time() -> None:
    """RET-6"""
    both = threading.Barrier(2, timeout=5)  # breaks where one server is asked after the other

    class Waiting(Embedder):
        def embed(self, texts: Any) -> Any:
            both.wait()
            return super().embed(texts)

    query, result = ask("en", {EN: Waiting(), ANY: Waiting()})
    assert ([vector.server_id for vector in query.vectors], result.degraded) == (["en", "any"], ())


class ByText:
    """A reranker that prefers texts late in the alphabet, or fails."""

    def __init__(self, error: errors.IbidError | None = None) -> None:
        self.error = error
        self.received: list[str] = []

    def score(self, question: str, texts: Any) -> list[float]:
        self.received = list(texts)
        if self.error:
            raise self.error
        return [float(ord(text[-1])) for text in texts]


def find(texts: str, reranker: ByText, **settings: Any) -> retriever.Retrieval:
    hits = tuple(make_hit(text, document=text) for text in texts)
    return retriever.retrieve(
        "question",
        "en",
        models.Scope("library"),
        servers=(),
        embedder_of=lambda _: Embedder(),
        search=lambda query: Ranking(hits[: query.settings.hybrid_top_k], 9, 99),
        settings=Settings(**settings),
        reranker=reranker,
    )


def texts_of(hits: Any) -> str:
    return "".join(hit.text for hit in hits)


def test_the_reranker_orders_the_best_hits_and_the_others_follow() -> None:
    """RET-9"""
    result = find("bacfed", ByText(), rerank_count=3, context_passages=2)
    assert (texts_of(result.ranking.hits), texts_of(result.context)) == ("cbafed", "cb")
    assert [(h.rerank_rank, h.rerank_score) for h in result.ranking.hits[2:4]] == [(3, 97.0), (None, None)]
    assert (result.degraded, result.rerank_ms is not None) == ((), True)


def test_the_reranker_gets_more_hits_than_are_returned() -> None:
    """RET-9"""
    assert texts_of(find("abcdefgh", ByText(), hybrid_top_k=5, rerank_count=7).ranking.hits) == "gfedc"


def test_passages_with_equal_scores_keep_their_order() -> None:
    """RET-9"""
    assert texts_of(find("abab", ByText()).ranking.hits) == "bbaa"


def test_a_failing_reranker_leaves_the_fused_order_and_is_named_as_degraded() -> None:
    """RET-9"""
    result = find("bac", ByText(errors.ModelRejectedError()), hybrid_top_k=5)
    assert (texts_of(result.ranking.hits), result.degraded) == ("bac", ("reranker",))
    assert (result.ranking.candidate_sources, texts_of(result.context)) == (9, "bac")


@pytest.mark.parametrize("texts", ["", "a"])
def test_fewer_than_two_hits_are_not_reranked(texts: str) -> None:
    reranker = ByText(errors.ModelUnavailableError())
    result = find(texts, reranker)
    assert (reranker.received, texts_of(result.ranking.hits), result.degraded) == ([], texts, ())


def test_the_reranker_reads_title_section_and_rows_with_their_header() -> None:
    """RET-9"""
    reranker = ByText()
    table = replace(make_hit("1 2"), title="Report", section_title="Results", markdown="| x | 1 |")
    retriever.rerank("q", [table, make_hit("plain")], reranker, 20)
    assert reranker.received == ["Report\nResults\n| x | 1 |", "plain"]


def test_without_a_reranker_its_latency_is_not_reported() -> None:
    _, result = ask("en", {})
    assert result.rerank_ms is None


def test_evidence_must_come_from_one_passage() -> None:
    """RET-8"""
    similar = replace(make_hit("x"), similarity=0.5, coverage=0.0)
    covering = replace(make_hit("y"), similarity=0.0, coverage=0.5)
    both = replace(make_hit("z"), similarity=0.5, coverage=0.5)
    assert [guard.is_answerable([("why?", "en")], hits, 0.4) for hits in ([similar, covering], [both], [])] == [
        False,
        True,
        False,
    ]


def test_a_refusal_names_the_nearest_passages_and_unprocessed_documents() -> None:
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
