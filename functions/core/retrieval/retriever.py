"""Finds the passages for a question: embeds it per embedding server, searches once, reranks, chooses the context."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from functions.core import background, errors, models, ports
from functions.core.retrieval import question_forms
from functions.core.retrieval.context import choose_context
from functions.core.retrieval.early_embedding import EmbedderOf
from functions.core.settings import Settings

if TYPE_CHECKING:
    from functions.core.ports import Vector, Vectors

RERANKER = "reranker"
PASSAGE_LANGS = ("en", "fr", "simple")
"""The languages of passages, in the order that rag.hybrid_search_v2 takes scales in."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryVector:
    """An embedding of the question from one server; `weight` scales that server's ranking in the fusion.

    `scales` are those of passages in each of PASSAGE_LANGS.
    """

    server_id: str
    vector: tuple[float, ...]
    weight: float
    scales: tuple[models.SimilarityScale, ...] = (models.SimilarityScale(0.0, 1.0),) * 3


@dataclass(frozen=True, slots=True)
class Query:
    """Everything that `hybrid_search` needs; `blend_alpha` is the setting times the largest weight of a vector.

    `versions` are the question, its translations and its parts, each with its language.
    """

    versions: tuple[models.Version, ...]
    vectors: tuple[QueryVector, ...]
    scope: models.Scope
    settings: Settings
    blend_alpha: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The fused ranking, and the numbers of sources and passages in scope."""

    hits: tuple[models.SearchHit, ...]
    candidate_sources: int = 0
    candidate_chunks: int = 0


class Search(Protocol):
    """Searches as one user, in one round trip to the database."""

    def __call__(self, query: Query) -> Ranking: ...


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The ranking, the passages of it that the model reads, and how long each step took.

    `versions` are the question, its translations and its parts, and `answered` the embedding servers whose vectors
    were searched. `degraded` names those that did not answer, and "reranker" if the reranker failed and the fused order
    was kept.
    `rerank_ms` is None without a reranker.
    """

    ranking: Ranking
    context: tuple[models.SearchHit, ...]
    embed_ms: float
    search_ms: float
    versions: tuple[models.Version, ...]
    degraded: tuple[str, ...] = ()
    answered: tuple[models.EmbeddingServer, ...] = ()
    rerank_ms: float | None = None


def retrieve(
    query_text: str,
    lang: str,
    scope: models.Scope,
    *,
    servers: Sequence[models.EmbeddingServer],
    embedder_of: EmbedderOf,
    search: Search,
    settings: Settings,
    reranker: ports.Reranker | None = None,
    translations: Sequence[models.Version] = (),
) -> Retrieval:
    """Finds the `hybrid_top_k` best passages for a question; a reranker first orders the best `rerank_count`.

    `translations` of the question are searched in the same statement, by words and by meaning, and so are the parts of
    a question that asks several things.

    An embedding server or a reranker that does not answer is not fatal: the search does without it.
    """
    started = time.perf_counter()
    parts = question_forms.split_question(query_text)
    versions = ((query_text, lang), *translations, *((part, lang) for part in parts))
    vectors, degraded = _embed_question(versions, servers, embedder_of, settings)
    embedded = time.perf_counter()
    max_weight = max((v.weight for v in vectors), default=0.0)
    count = settings.hybrid_top_k if reranker is None else max(settings.hybrid_top_k, settings.rerank_count)
    query = Query(
        versions=versions,
        vectors=tuple(vectors),
        scope=scope,
        settings=replace(settings, hybrid_top_k=count),
        blend_alpha=settings.blend_alpha * max_weight,
    )
    ranking = search(query)
    searched = time.perf_counter()
    hits, has_failed = _try_rerank(query_text, ranking.hits, reranker, settings.rerank_count)
    reranked = time.perf_counter()
    hits = hits[: settings.hybrid_top_k]
    return Retrieval(
        ranking=replace(ranking, hits=hits),
        context=choose_context(hits, settings, ranking.candidate_sources),
        embed_ms=(embedded - started) * 1000,
        search_ms=(searched - embedded) * 1000,
        versions=versions,
        answered=tuple(server for server in servers if server not in degraded),
        degraded=(*(server.name for server in degraded), *([RERANKER] if has_failed else [])),
        rerank_ms=None if reranker is None else (reranked - searched) * 1000,
    )


def _try_rerank(
    query_text: str, hits: tuple[models.SearchHit, ...], reranker: ports.Reranker | None, count: int
) -> tuple[tuple[models.SearchHit, ...], bool]:
    """The hits in the reranker's order, or unchanged; and whether the reranker failed."""
    if reranker is None:
        return hits, False
    try:
        return rerank(query_text, hits, reranker, count), False
    except errors.UnavailableError as exc:
        _log.warning("the reranker failed, and the fused order is kept: %s", exc.message)
        return hits, True


def find_passages(
    text: str,
    vector: Vector,
    *,
    lang: str,
    server: models.EmbeddingServer,
    search: Search,
    settings: Settings,
) -> Ranking:
    """Searches the whole library for a text whose vector from one server is already known."""
    query_vector = _describe_vector(vector, lang, server, settings)
    alpha = settings.blend_alpha * query_vector.weight
    return search(Query(((text, lang),), (query_vector,), models.Scope("library"), settings, alpha))


def _weigh_server(server: models.EmbeddingServer, lang: str, settings: Settings) -> float:
    return 1.0 if not server.languages or lang in server.languages else settings.foreign_vector_weight


def _describe_vector(vector: Vector, lang: str, server: models.EmbeddingServer, settings: Settings) -> QueryVector:
    weight = _weigh_server(server, lang, settings)
    scales = tuple(server.scale(lang, passage_lang) for passage_lang in PASSAGE_LANGS)
    return QueryVector(server.id, tuple(vector.tolist()), weight, scales)


def _embed_question(
    versions: Sequence[models.Version],
    servers: Sequence[models.EmbeddingServer],
    embedder_of: EmbedderOf,
    settings: Settings,
) -> tuple[list[QueryVector], list[models.EmbeddingServer]]:
    """The vectors of all servers, which work at the same time, and the servers that did not answer."""
    running = [(server, _begin_embedding(versions, server, embedder_of)) for server in servers]
    vectors, degraded = [], []
    for server, embedding in running:
        try:
            rows = embedding.result()
        except errors.UnavailableError as exc:
            _log.warning("%s is not searched: %s", server.name, exc.message)
            degraded.append(server)
            continue
        vectors += [
            _describe_vector(row, lang, server, settings) for row, (_, lang) in zip(rows, versions, strict=True)
        ]
    return vectors, degraded


def _begin_embedding(
    versions: Sequence[models.Version], server: models.EmbeddingServer, embedder_of: EmbedderOf
) -> Future[Vectors]:
    texts = [server.query_prefix + text for text, _ in versions]
    return background.begin(lambda: embedder_of(server).embed(texts))


def rerank(
    query_text: str, hits: Sequence[models.SearchHit], reranker: ports.Reranker, count: int
) -> tuple[models.SearchHit, ...]:
    """The first `count` hits in the order of the reranker's scores, then the others; equal scores keep their order.

    Raises what the reranker raises. Fewer than two hits are not sent to it.
    """
    best, others = hits[:count], hits[count:]
    if len(best) < 2:
        return tuple(hits)
    scores = reranker.score(query_text, [_describe_passage(hit) for hit in best])
    order = sorted(range(len(best)), key=lambda at: -scores[at])
    ranked = [replace(best[at], rerank_rank=rank, rerank_score=scores[at]) for rank, at in enumerate(order, 1)]
    return (*ranked, *others)


def _describe_passage(hit: models.SearchHit) -> str:
    """A passage below its title and section, because a passage alone often does not say what it is about."""
    return "\n".join(part for part in (hit.title, hit.section_title, hit.markdown or hit.text) if part)
