"""Runs a whole search in one statement, and so in one round trip to the database.

Also writes the posting lists of large libraries, and keeps the translations of queries for a day.
"""

from __future__ import annotations

import json
import time
from dataclasses import fields
from typing import Any

from psycopg.rows import tuple_row

from functions.adapters.postgres import users
from functions.adapters.postgres.connection import Connection, Database, write_claims
from functions.core import models
from functions.core.retrieval import retriever, suggestions
from functions.core.text.storable import clean_text

_HIT_COLUMNS = tuple(f.name for f in fields(models.SearchHit) if not f.name.startswith(("rerank_", "is_")))

# `act` sets role and claims. It is evaluated first because the function takes its argument from it, so the function is
# planned and run as the user. The only write is the count of requests, which need not wait for the disk. The columns
# are named, because a newer database may have more of them: it is migrated before the code is deployed.
_SEARCH = f"""
with act as materialized (
    select set_config('role', 'authenticated', true), set_config('request.jwt.claims', %(claims)s, true),
        set_config('synchronous_commit', 'off', true), rag.take_quota('request', %(quota)s),
        %(query_texts)s::text[] as query_texts
)
select {", ".join(_HIT_COLUMNS).replace("source_id", "source_id::text")}, candidate_sources, candidate_chunks
from act, lateral rag.hybrid_search_v2(
    act.query_texts, %(query_langs)s::text[], %(server_ids)s::uuid[], %(embeddings)s::extensions.halfvec[],
    %(server_weights)s::real[], %(similarity_floors)s::real[], %(similarity_ceilings)s::real[],
    %(document_ids)s::uuid[], %(notebook_id)s::uuid, %(note_id)s::uuid, %(filters)s::jsonb,
    match_count => %(match_count)s::int, arm_count => %(arm_count)s::int, fts_weight => %(fts_weight)s::real,
    vector_weight => %(vector_weight)s::real, blend_weight => %(blend_weight)s::real,
    blend_alpha => %(blend_alpha)s::real, rrf_k => %(rrf_k)s::real, foreign_fts_weight => %(foreign_fts_weight)s::real
) h
"""


_HEADED_PASSAGES = """
with latest as materialized (
    select generation
    from rag.search_scope(%(document_ids)s::uuid[], %(notebook_id)s::uuid, %(note_id)s::uuid, '{}') s,
        unnest(s.generations) as generation
    order by generation desc limit %(source_count)s
)
select coalesce(d.file_name, n.title) as source, c.section_title as heading, c.text, c.lang
from latest
cross join lateral (
    select * from rag.chunks c where c.generation = latest.generation
    order by c.chunk_index limit %(chunk_count)s
) c
left join rag.documents d on d.generation = latest.generation
left join rag.notes n on n.generation = latest.generation
order by latest.generation desc, c.chunk_index
"""
_MAX_SOURCES, _MAX_CHUNKS = 4, 60


def list_passages(connection: Connection, scope: models.Scope) -> list[suggestions.Passage]:
    """The first passages of the sources that were indexed last."""
    parameters = {
        "document_ids": list(scope.document_ids) or None,
        "notebook_id": scope.notebook_id,
        "note_id": scope.note_id,
        "source_count": _MAX_SOURCES,
        "chunk_count": _MAX_CHUNKS,
    }
    rows = connection.execute(_HEADED_PASSAGES, parameters).fetchall()
    return [suggestions.Passage(**row) for row in rows]


def hybrid_search(
    database: Database, user: models.User, query: retriever.Query, *, requests_per_minute: int = 0
) -> retriever.Ranking:
    """Searches as `user`; see sql/19_hybrid_search_v2.sql.

    With `requests_per_minute` the same statement counts the search as a request of the user, and raises
    RateLimitedError beyond that limit.
    """
    settings = query.settings
    parameters = {
        "claims": write_claims(user),
        "quota": requests_per_minute,
        "query_texts": [clean_text(text) for text, _ in query.versions],
        "query_langs": [lang for _, lang in query.versions],
        "server_ids": [v.server_id for v in query.vectors],
        "embeddings": [_format_vector(v.vector) for v in query.vectors],
        "server_weights": [v.weight for v in query.vectors],
        "similarity_floors": [scale.floor for v in query.vectors for scale in v.scales],
        "similarity_ceilings": [scale.ceiling for v in query.vectors for scale in v.scales],
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
        "foreign_fts_weight": settings.foreign_fts_weight,
    }
    with users.quota_errors(), database.autocommit() as connection, connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(_SEARCH, parameters).fetchall()
    if not rows:
        return retriever.Ranking(())
    langs = {lang for _, lang in query.versions}
    return retriever.Ranking(tuple(_read_hit(row, langs) for row in rows), *rows[0][len(_HIT_COLUMNS) :])


def _format_vector(vector: tuple[float, ...]) -> str:
    return ("[" + ",".join(["%.7g"] * len(vector)) + "]") % vector  # one format for all numbers takes half the time


def _read_hit(row: tuple[Any, ...], langs: set[str]) -> models.SearchHit:
    """The hit of a row that begins with _HIT_COLUMNS: the first fields in their order, before `is_foreign`."""
    lang = row[_HIT_COLUMNS.index("lang")]
    is_translated = row[_HIT_COLUMNS.index("translation")] is not None
    is_foreign = not is_translated and not {lang, "simple"} & langs and lang != "simple"
    values = (*row[: len(_HIT_COLUMNS)], is_foreign)
    return models.SearchHit(*values)


def renew_segments(database: Database, seconds: float | None = None) -> list[int]:
    """Writes the posting lists of large libraries, see sql/72_renew_segments.sql; returns the passages of each segment.

    Each segment is a transaction of its own. None is begun after `seconds`; the next run continues.
    """
    started, sizes = time.monotonic(), []
    while seconds is None or time.monotonic() - started < seconds:
        with database.as_worker() as connection:
            row = connection.execute("select rag.renew_segments() as size").fetchone()
        if row is None or row["size"] is None:
            break
        sizes.append(int(row["size"]))
    return sizes


def find_translation(database: Database, user: models.User, text_hash: str, lang: str) -> str | None:
    """The user's translation of a query into `lang`, if it is less than a day old."""
    with database.as_user(user) as connection:
        row = connection.execute(
            "select translation from rag.query_translations"
            " where text_hash = %s and lang = %s and created_at > clock_timestamp() - interval '1 day'",
            (text_hash, lang),
        ).fetchone()
    return None if row is None else row["translation"]


def save_translation(database: Database, user: models.User, text_hash: str, lang: str, translation: str) -> None:
    with database.as_user(user) as connection:
        connection.execute(
            "insert into rag.query_translations (owner_id, text_hash, lang, translation) values (%s, %s, %s, %s)"
            " on conflict (owner_id, text_hash, lang) do update"
            " set translation = excluded.translation, created_at = excluded.created_at",
            (user.id, text_hash, lang, translation),
        )


def purge_translations(database: Database) -> int:
    """Deletes the translations that are more than a day old; returns how many."""
    with database.as_worker() as connection:
        return connection.execute(
            "delete from rag.query_translations where created_at < clock_timestamp() - interval '1 day'"
        ).rowcount
