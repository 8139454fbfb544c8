"""A question becomes passages: embed it once per embedding server, search once, choose what the model will read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from functions.core import errors, models, ports
from functions.core.settings import Settings

if TYPE_CHECKING:
    from functions.core.ports import Matrix


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The question as one embedding server sees it; `weight` scales that server's ranking in the fusion."""

    server_id: str
    vector: tuple[float, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Query:
    """Everything `hybrid_search` needs."""

    text: str
    lang: str
    vectors: tuple[QueryVector, ...]
    scope: models.Scope
    settings: Settings
    blend_alpha: float
    filters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """The fused ranking, and how much was in scope."""

    hits: tuple[models.SearchHit, ...]
    candidate_sources: int = 0
    candidate_chunks: int = 0


class Search(Protocol):
    """One round trip to the database, as one user."""

    def __call__(self, query: Query) -> Found: ...


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What was found, what of it goes to the model, how long it took; `degraded` names servers that did not answer."""

    found: Found
    context: tuple[models.SearchHit, ...]
    embed_ms: float
    search_ms: float
    degraded: tuple[str, ...] = ()


def retrieve(
    question: str,
    lang: str,
    scope: models.Scope,
    *,
    servers: Sequence[models.EmbeddingServer],
    embedder_of: Callable[[models.EmbeddingServer], ports.Embedder],
    search: Search,
    settings: Settings,
    filters: Mapping[str, Any] | None = None,
) -> Retrieval:
    """Finds the passages for a question.

    An embedding server that does not answer is left out (the other arms still answer), not fatal.
    """
    started = time.perf_counter()
    vectors, degraded = _embed_question(question, lang, servers, embedder_of, settings)
    embedded = time.perf_counter()
    share = max((v.weight for v in vectors), default=0.0)
    query = Query(question, lang, tuple(vectors), scope, settings, settings.blend_alpha * share, filters or {})
    found = search(query)
    searched = time.perf_counter()
    context = choose_context(found.hits, settings)
    return Retrieval(
        found, context, (embedded - started) * 1000, (searched - embedded) * 1000, tuple(s.name for s in degraded)
    )


def find_passages(
    text: str,
    vector: Matrix,
    *,
    lang: str,
    server: models.EmbeddingServer,
    search: Search,
    settings: Settings,
) -> Found:
    """Searches the whole library for a text whose vector of one server is known already."""
    weight = _weigh(server, lang, settings)
    query_vector = QueryVector(server.id, tuple(vector.tolist()), weight)
    return search(Query(text, lang, (query_vector,), models.Scope("library"), settings, settings.blend_alpha * weight))


def _weigh(server: models.EmbeddingServer, lang: str, settings: Settings) -> float:
    return 1.0 if not server.languages or lang in server.languages else settings.foreign_vector_weight


def _embed_question(
    question: str,
    lang: str,
    servers: Sequence[models.EmbeddingServer],
    embedder_of: Callable[[models.EmbeddingServer], ports.Embedder],
    settings: Settings,
) -> tuple[list[QueryVector], list[models.EmbeddingServer]]:
    vectors, degraded = [], []
    for server in servers:
        try:
            row = embedder_of(server).embed([question])[0]
        except errors.UnavailableError:
            degraded.append(server)
            continue
        vectors.append(QueryVector(server.id, tuple(row.tolist()), _weigh(server, lang, settings)))
    return vectors, degraded


def choose_context(hits: Sequence[models.SearchHit], settings: Settings) -> tuple[models.SearchHit, ...]:
    """The best `context_passages` hits, at most `passages_per_source` of one source, none mostly inside another."""
    chosen: list[models.SearchHit] = []
    per_source: Counter[str] = Counter()
    for hit in hits:
        if len(chosen) == settings.context_passages:
            break
        if per_source[hit.source_id] < settings.passages_per_source and not any(_overlap(hit, c) > 0.5 for c in chosen):
            chosen.append(hit)
            per_source[hit.source_id] += 1
    return tuple(chosen)


def _overlap(a: models.SearchHit, b: models.SearchHit) -> float:
    """The share of the shorter passage that both cover; the same words in two sources count as well."""
    if a.text == b.text:
        return 1.0
    if a.source_id != b.source_id or a.page_start != b.page_start or a.page_end != b.page_end:
        return 0.0
    shared = min(a.end_offset, b.end_offset) - max(a.start_offset, b.start_offset)
    return shared / max(1, min(a.end_offset - a.start_offset, b.end_offset - b.start_offset))
