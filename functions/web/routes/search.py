"""Ranks passages for a query, without asking a language model."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from functions.adapters.postgres import documents
from functions.adapters.postgres import search as stored_search
from functions.core import models
from functions.core.retrieval import guard, retriever, suggestions
from functions.core.text import languages
from functions.runtime import asking, searching
from functions.web.deps import CurrentUser, ServicesDep
from functions.web.routes.chat import describe_scope
from functions.web.schemas import requests
from functions.web.schemas.answers import SearchResults, Suggestions

router = APIRouter(prefix="/api/rag/search")


@router.get("", response_model=SearchResults, responses={404: {}, 409: {}})
def search(user: CurrentUser, services: ServicesDep, parameters: Annotated[requests.Search, Query()]) -> Response:
    """The fused ranking, reranked where a reranker is set up; with `debug`, ranks, scores, evidence and timings."""
    scope = _read_scope(parameters)
    if scope.kind != "library":
        with services.database.as_user(user) as connection:
            documents.check_scope(connection, scope.document_ids, scope.notebook_id, scope.note_id)
    policy = services.policy()
    limit = parameters.limit or policy.settings.match_count
    wide = max(limit, policy.settings.arm_count)
    settings = replace(policy.settings, hybrid_top_k=limit, arm_count=wide)
    lang = languages.guess_language(parameters.q)
    wide_policy = replace(policy, settings=settings)
    retrieval = searching.retrieve(services, user, wide_policy, parameters.q, lang, scope, is_request=True)
    body: dict[str, Any] = {
        "query": parameters.q,
        "lang": lang,
        "scope": describe_scope(scope),
        "hits": [_describe_hit(hit, parameters.debug) for hit in retrieval.ranking.hits],
        "degraded": list(retrieval.degraded),
    }
    if parameters.debug:
        body["debug"] = _describe_retrieval(retrieval)
    # FastAPI would check a dict in another thread, and write it in the event loop, where all requests wait for it.
    content = SearchResults.model_validate(body).model_dump_json(exclude_unset=True)
    return Response(content, media_type="application/json")


@router.get("/suggestions")
def suggest_questions(user: CurrentUser, services: ServicesDep, lang: Literal["en", "fr"] = "en") -> Suggestions:
    """Questions that the library answers, read from the sources indexed last; no model is asked."""
    with services.database.as_user(user) as connection:
        passages = stored_search.list_passages(connection, models.Scope("library"))
    return Suggestions(items=suggestions.suggest_questions(passages, lang))


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


def _read_scope(parameters: requests.Search) -> models.Scope:
    return asking.choose_scope(
        asking.Question(
            parameters.q,
            document_ids=tuple(map(str, parameters.document_id)),
            notebook_id=None if parameters.notebook_id is None else str(parameters.notebook_id),
            note_id=None if parameters.note_id is None else str(parameters.note_id),
            filters=parameters.as_dict(),
        )
    )
