"""Builds the approximate vector index of an embedding server when a library is large enough to need it.

Below that size the exact search is faster and finds everything, and an index would only slow down ingestion.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from psycopg import sql

from functions.adapters.postgres.connection import Database

LOCK_TIMEOUT = "20s"
MEMORY = "256MB"
"""At least; the server's `maintenance_work_mem` may be more. A graph that does not fit takes three times as long."""

_MISSING = """
select s.id::text, s.dimensions
from rag.embedding_servers s
where to_regclass('rag.chunk_vectors_hnsw_' || replace(s.id::text, '-', '')) is null and exists (
    select from (
        select d.owner_id, sum(d.chunk_count) as owned, sum(sum(d.chunk_count)) over () as total
        from rag.documents d
        where d.embedding_server_id = s.id and d.generation is not null and d.superseded_by is null
        group by 1
    ) l where rag.prefers_vector_index(l.owned::bigint, l.total::bigint))
order by 1
"""
# By inner product, because all vectors are unit vectors. The statement in sql/14_nearest_chunks_hnsw.sql repeats the
# expression and the predicate. With the default of 64 for `ef_construction`, recall differs from build to build by as
# much as the index misses: levels are drawn at random, and a sparse graph has dead ends. With the default of 16 for
# `m`, a walk among a million passages missed one in sixty of the nearest 20.
_CREATE = """
create index if not exists {name} on rag.chunk_vectors
    using hnsw ((embedding::extensions.halfvec({dimensions})) extensions.halfvec_ip_ops)
    with (m = 24, ef_construction = 200) where server_id = {server_id}
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The vector index of one embedding server; sql/12_prefers_vector_index.sql says when a search uses it."""

    server_id: str
    dimensions: int

    @property
    def name(self) -> str:
        return "chunk_vectors_hnsw_" + self.server_id.replace("-", "")


def build_vector_indexes(database: Database, seconds: float | None = None) -> list[str]:
    """Builds the missing indexes and returns their names; writers wait meanwhile, searches do not.

    The role of the connection must own the tables. Raises DatabaseUnavailableError, also when the table stays locked or
    a build takes more than `seconds`; the next run tries again.
    """
    built = []
    for index in list_missing(database):
        started = time.monotonic()
        _build(database, index, seconds)
        _log.info("built %s in %.1f s", index.name, time.monotonic() - started)
        built.append(index.name)
    return built


def list_missing(database: Database) -> list[VectorIndex]:
    """The indexes that a large library needs and that do not exist yet."""
    with database.as_worker() as connection:
        return [VectorIndex(row["id"], row["dimensions"]) for row in connection.execute(_MISSING).fetchall()]


def _build(database: Database, index: VectorIndex, seconds: float | None) -> None:
    """Builds in one transaction: a failed build leaves nothing behind, and the settings end with it."""
    statement = sql.SQL(_CREATE).format(
        name=sql.Identifier(index.name),
        dimensions=sql.Literal(index.dimensions),
        server_id=sql.Literal(index.server_id),
    )
    with database.autocommit() as connection, connection.transaction():
        connection.execute(
            "select set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true),"
            " set_config('maintenance_work_mem', greatest("
            "pg_size_bytes(current_setting('maintenance_work_mem')), pg_size_bytes(%s)) / 1024 || 'kB', true)",
            ("0" if seconds is None else f"{max(1, round(seconds * 1000))}ms", LOCK_TIMEOUT, MEMORY),
        )
        connection.execute(statement)
