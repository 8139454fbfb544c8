"""Ranked passages without a model."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from functions.adapters.postgres import documents
from functions.core import errors, guard, languages, models
from functions.runtime import asking
from functions.runtime.wiring import Services
from functions.web.deps import CurrentUser, ServicesDep
from functions.web.routes_chat import describe_scope

router = APIRouter(prefix="/api/rag/search")


@router.get("")
def search(
    user: CurrentUser,
    services: ServicesDep,
    q: Annotated[str, Query(min_length=1, max_length=4000)],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    document_id: Annotated[list[UUID] | None, Query(max_length=100)] = None,
    notebook_id: UUID | None = None,
    note_id: UUID | None = None,
    debug: bool = False,
) -> dict[str, Any]:
    """The fused ranking; with `debug`, ranks and scores per arm, evidence and timings."""
    if not q.strip():
        raise errors.InvalidInputError("q: Say what to search for.")
    scope = _describe_request(tuple(str(i) for i in document_id or ()), notebook_id, note_id)
    if scope.kind != "library":
        _check_scope(services, user, scope)
    policy = services.policy()
    settings = replace(policy.settings, hybrid_top_k=limit, arm_count=max(limit, policy.settings.arm_count))
    lang = languages.detect_language(q)
    found = asking.retrieve(services, user, replace(policy, settings=settings), q, lang, scope)
    body: dict[str, Any] = {
        "query": q,
        "lang": lang,
        "scope": describe_scope(scope),
        "hits": [_describe_hit(hit, debug) for hit in found.found.hits],
    }
    if debug:
        body["debug"] = {
            "candidate_sources": found.found.candidate_sources,
            "candidate_chunks": found.found.candidate_chunks,
            "embed_ms": round(found.embed_ms, 2),
            "search_ms": round(found.search_ms, 2),
            "degraded": list(found.degraded),
        }
    return body


def _check_scope(services: Services, user: models.User, scope: models.Scope) -> None:
    with services.database.as_user(user) as connection:
        for document_id in scope.document_ids:
            documents.find(connection, document_id)
        documents.check_place(connection, scope.notebook_id, scope.note_id)


_ARMS = ("fts_rank", "fts_score", "vector_rank", "similarity", "blend_score", "coverage")


def _describe_hit(hit: models.SearchHit, debug: bool) -> dict[str, Any]:
    row = asdict(hit)
    row["document_id"] = row.pop("source_id")
    del row["chunk_id"]
    arms = {key: row.pop(key) for key in _ARMS}
    return row | {"arms": arms, "evidence": guard.weigh_evidence(hit)} if debug else row


def _describe_request(document_ids: tuple[str, ...], notebook_id: UUID | None, note_id: UUID | None) -> models.Scope:
    if document_ids:
        return models.Scope("documents", document_ids=document_ids)
    if note_id:
        return models.Scope("note", note_id=str(note_id))
    if notebook_id:
        return models.Scope("notebook", notebook_id=str(notebook_id))
    return models.Scope("library")
