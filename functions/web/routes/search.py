"""Ranked passages without a model."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Query

from functions.adapters.postgres import documents
from functions.core import errors, models
from functions.core.retrieval import guard, retriever
from functions.core.text import languages
from functions.runtime import asking, searching
from functions.web.deps import CurrentUser, ServicesDep
from functions.web.routes.chat import describe_scope
from functions.web.schemas import requests

router = APIRouter(prefix="/api/rag/search")


@router.get("")
def search(user: CurrentUser, services: ServicesDep, asked: Annotated[requests.Search, Query()]) -> dict[str, Any]:
    """The fused ranking, reranked where a reranker is set up; with `debug`, ranks, scores, evidence and timings."""
    if not asked.q.strip():
        raise errors.InvalidInputError("q: Say what to search for.")
    scope = _read_scope(asked)
    if scope.kind != "library":
        with services.database.as_user(user) as connection:
            documents.check_scope(connection, scope.document_ids, scope.notebook_id, scope.note_id)
    policy = services.policy()
    limit = asked.limit or policy.settings.match_count
    wide = max(limit, policy.settings.arm_count)
    settings = replace(policy.settings, hybrid_top_k=limit, arm_count=wide)
    lang = languages.detect_language(asked.q)
    wide_policy = replace(policy, settings=settings)
    retrieval = searching.retrieve(services, user, wide_policy, asked.q, lang, scope, is_request=True)
    body: dict[str, Any] = {
        "query": asked.q,
        "lang": lang,
        "scope": describe_scope(scope),
        "hits": [_describe_hit(hit, asked.debug) for hit in retrieval.ranking.hits],
        "degraded": list(retrieval.degraded),
    }
    if asked.debug:
        body["debug"] = _describe_retrieval(retrieval)
    return body


def _describe_retrieval(retrieval: retriever.Retrieval) -> dict[str, Any]:
    return {
        "candidate_sources": retrieval.ranking.candidate_sources,
        "candidate_chunks": retrieval.ranking.candidate_chunks,
        "context": [hit.segment_id for hit in retrieval.context],
        "embed_ms": round(retrieval.embed_ms, 2),
        "search_ms": round(retrieval.search_ms, 2),
        "rerank_ms": None if retrieval.rerank_ms is None else round(retrieval.rerank_ms, 2),
        "degraded": list(retrieval.degraded),
    }


_RANKS = ("fts_rank", "vector_rank", "blend_rank", "rerank_rank")
_SCORES = ("fts_score", "similarity", "blend_score", "coverage", "rerank_score")


def _describe_hit(hit: models.SearchHit, debug: bool) -> dict[str, Any]:
    row = asdict(hit)
    row["document_id"] = row["source_id"]
    del row["chunk_id"]
    arms = {key: row.pop(key) for key in (*_RANKS, *_SCORES)}
    return row | {"arms": arms, "evidence": guard.weigh_evidence(hit)} if debug else row


def _read_scope(asked: requests.Search) -> models.Scope:
    return asking.choose_scope(
        asking.Question(
            asked.q,
            document_ids=tuple(map(str, asked.document_id)),
            notebook_id=None if asked.notebook_id is None else str(asked.notebook_id),
            note_id=None if asked.note_id is None else str(asked.note_id),
            filters=asked.given(),
        )
    )
