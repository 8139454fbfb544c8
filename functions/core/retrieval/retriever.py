"""A question becomes passages: embed it once per embedding server, search once, rerank, choose what is read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from functions.core import errors, models, ports
from functions.core.retrieval.context import choose_context
from functions.core.settings import Settings

if TYPE_CHECKING:
    from functions.core.ports import Vector

RERANKER = "reranker"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The question as one embedding server sees it; `weight` scales that server's ranking in the fusion."""

    server_id: str
    vector: tuple[float, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Query:
    """Everything `hybrid_search` needs."""

    query_text: str
    lang: str
    vectors: tuple[QueryVector, ...]
    scope: models.Scope
    settings: Settings
    blend_alpha: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The fused ranking, and how much was in scope."""

    hits: tuple[models.SearchHit, ...]
    candidate_sources: int = 0
    candidate_chunks: int = 0


class Search(Protocol):
    """One round trip to the database, as one user."""

    def __call__(self, query: Query) -> Ranking: ...


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What was found, what of it goes to the model, how long it took.

    `answered` are the embedding servers whose vectors were searched; `degraded` names those that did not answer, and
    "reranker" where the fused order had to do. `rerank_ms` is None where no reranker is set up.
    """

    ranking: Ranking
    context: tuple[models.SearchHit, ...]
    embed_ms: float
    search_ms: float
    degraded: tuple[str, ...] = ()
    answered: tuple[models.EmbeddingServer, ...] = ()
    rerank_ms: float | None = None


def retrieve(
    query_text: str,
    lang: str,
    scope: models.Scope,
    *,
    servers: Sequence[models.EmbeddingServer],
    embedder_of: Callable[[models.EmbeddingServer], ports.Embedder],
    search: Search,
    settings: Settings,
    reranker: ports.Reranker | None = None,
) -> Retrieval:
    """Finds the passages for a question: `hybrid_top_k` of them, after a reranker has seen `rerank_count`.

    An embedding server that does not answer is left out (the other arms still answer), not fatal; nor is a reranker.
    """
    started = time.perf_counter()
    vectors, degraded = _embed_question(query_text, lang, servers, embedder_of, settings)
    embedded = time.perf_counter()
    share = max((v.weight for v in vectors), default=0.0)
    count = settings.hybrid_top_k if reranker is None else max(settings.hybrid_top_k, settings.rerank_count)
    query = Query(
        query_text=query_text,
        lang=lang,
        vectors=tuple(vectors),
        scope=scope,
        settings=replace(settings, hybrid_top_k=count),
        blend_alpha=settings.blend_alpha * share,
    )
    ranking = search(query)
    searched = time.perf_counter()
    hits, has_failed = _rerank(query_text, ranking.hits, reranker, settings.rerank_count)
    reranked = time.perf_counter()
    hits = hits[: settings.hybrid_top_k]
    return Retrieval(
        ranking=replace(ranking, hits=hits),
        context=choose_context(hits, settings),
        embed_ms=(embedded - started) * 1000,
        search_ms=(searched - embedded) * 1000,
        answered=tuple(server for server in servers if server not in degraded),
        degraded=(*(server.name for server in degraded), *([RERANKER] if has_failed else [])),
        rerank_ms=None if reranker is None else (reranked - searched) * 1000,
    )


def _rerank(
    query_text: str, hits: tuple[models.SearchHit, ...], reranker: ports.Reranker | None, count: int
) -> tuple[tuple[models.SearchHit, ...], bool]:
    """The hits in the reranker's order, or as they were; and whether it was asked in vain."""
    if reranker is None:
        return hits, False
    try:
        return rerank(query_text, hits, reranker, count), False
    except errors.UnavailableError as exc:
        _log.warning("the reranker gave no order: %s", exc.message)
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
    """Searches the whole library for a text whose vector of one server is known already."""
    weight = _weigh(server, lang, settings)
    query_vector = QueryVector(server.id, tuple(vector.tolist()), weight)
    return search(Query(text, lang, (query_vector,), models.Scope("library"), settings, settings.blend_alpha * weight))


def _weigh(server: models.EmbeddingServer, lang: str, settings: Settings) -> float:
    return 1.0 if not server.languages or lang in server.languages else settings.foreign_vector_weight


def _embed_question(
    query_text: str,
    lang: str,
    servers: Sequence[models.EmbeddingServer],
    embedder_of: Callable[[models.EmbeddingServer], ports.Embedder],
    settings: Settings,
) -> tuple[list[QueryVector], list[models.EmbeddingServer]]:
    vectors, degraded = [], []
    for server in servers:
        try:
            row = embedder_of(server).embed([query_text])[0]
        except errors.UnavailableError:
            degraded.append(server)
            continue
        vectors.append(QueryVector(server.id, tuple(row.tolist()), _weigh(server, lang, settings)))
    return vectors, degraded


def rerank(
    query_text: str, hits: Sequence[models.SearchHit], reranker: ports.Reranker, count: int
) -> tuple[models.SearchHit, ...]:
    """The first `count` hits by the reranker's score, equal ones as they stood, then the others as they stood.

    Raises what the reranker raises; nobody is asked about fewer than two hits.
    """
    best, others = hits[:count], hits[count:]
    if len(best) < 2:
        return tuple(hits)
    scores = reranker.score(query_text, [_describe_passage(hit) for hit in best])
    order = sorted(range(len(best)), key=lambda at: -scores[at])
    ranked = [replace(best[at], rerank_rank=rank, rerank_score=scores[at]) for rank, at in enumerate(order, 1)]
    return (*ranked, *others)


def _describe_passage(hit: models.SearchHit) -> str:
    """A passage as a model reads it: a passage alone often does not say what it is about, its headings do."""
    return "\n".join(part for part in (hit.title, hit.section_title, hit.markdown or hit.text) if part)
