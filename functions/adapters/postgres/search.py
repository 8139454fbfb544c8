"""Runs a whole search in one statement, and so in one round trip to the database."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from functions.adapters.postgres import users
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.core.retrieval import retriever
from functions.core.text.storable import clean_text

# `act` sets role and claims. It is evaluated first because the function takes its argument from it, so the function is
# planned and run as the user. The only write is the count of requests, which need not wait for the disk.
_SEARCH = """
with act as materialized (
    select set_config('role', 'authenticated', true), set_config('request.jwt.claims', %(claims)s, true),
        set_config('synchronous_commit', 'off', true), rag.take_quota('request', %(quota)s),
        %(query_text)s::text as query_text
)
select h.* from act, lateral rag.hybrid_search(
    act.query_text, %(query_lang)s, %(server_ids)s::uuid[], %(embeddings)s::extensions.halfvec[],
    %(server_weights)s::real[], %(document_ids)s::uuid[], %(notebook_id)s::uuid, %(note_id)s::uuid, %(filters)s::jsonb,
    match_count => %(match_count)s::int, arm_count => %(arm_count)s::int, fts_weight => %(fts_weight)s::real,
    vector_weight => %(vector_weight)s::real, blend_weight => %(blend_weight)s::real,
    blend_alpha => %(blend_alpha)s::real,
    rrf_k => %(rrf_k)s::real
) h
"""


_COLUMNS = tuple(f.name for f in fields(models.SearchHit) if not f.name.startswith("rerank_"))


def hybrid_search(
    database: Database, user: models.User, query: retriever.Query, *, requests_per_minute: int = 0
) -> retriever.Ranking:
    """Searches as `user`; see sql/20_hybrid_search.sql.

    With `requests_per_minute` the same statement counts the search as a request of the user, and raises
    RateLimitedError beyond that limit.
    """
    settings = query.settings
    parameters = {
        "claims": json.dumps({**user.claims, "sub": user.id, "role": "authenticated"}),
        "quota": requests_per_minute,
        "query_text": clean_text(query.query_text),
        "query_lang": query.lang,
        "server_ids": [v.server_id for v in query.vectors],
        "embeddings": [_format_vector(v.vector) for v in query.vectors],
        "server_weights": [v.weight for v in query.vectors],
        "document_ids": list(query.scope.document_ids) or None,
        "notebook_id": query.scope.notebook_id,
        "note_id": query.scope.note_id,
        "filters": json.dumps(dict(query.scope.filters)),
        # Not the setting `match_count`: that is the default of a search's limit, which is in `hybrid_top_k` here.
        "match_count": settings.hybrid_top_k,
        "arm_count": settings.arm_count,
        "fts_weight": settings.fts_weight,
        "vector_weight": settings.vector_weight,
        "blend_weight": settings.blend_weight,
        "blend_alpha": query.blend_alpha,
        "rrf_k": settings.rrf_k,
    }
    with users.quota_errors(), database.autocommit() as connection:
        rows = connection.execute(_SEARCH, parameters).fetchall()
    if not rows:
        return retriever.Ranking(())
    return retriever.Ranking(
        tuple(_read_hit(row) for row in rows), rows[0]["candidate_sources"], rows[0]["candidate_chunks"]
    )


def _format_vector(vector: tuple[float, ...]) -> str:
    return "[" + ",".join(f"{x:.7g}" for x in vector) + "]"


def _read_hit(row: dict[str, Any]) -> models.SearchHit:
    """Ignores columns that it does not know: the database is migrated before the code is deployed."""
    values = {name: row[name] for name in _COLUMNS}
    return models.SearchHit(**values | {"source_id": str(row["source_id"])})
