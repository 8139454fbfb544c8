"""What ingestion has left in a database and a storage folder: the result, and any orphans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

Rows = list[tuple[Any, ...]]

_SOURCES = """
    select d.file_name as name, d.generation, concat_ws(': ', d.status, d.error_code) as status
    from rag.documents d where d.owner_id = %(owner)s and d.duplicate_of is null
    union all
    select n.title, n.generation, concat_ws(': ', n.status, n.error_code) from rag.notes n where n.owner_id = %(owner)s
"""
# Everything that indexing writes, except values that come from a clock or a sequence.
_CONTENTS = {
    "pages": """
        select page_number, text, warnings, ocr_confidence, words::text, table_count, hidden_characters
        from rag.pages where generation = %s order by 1
    """,
    "chunks": """
        select c.chunk_index, c.page_start, c.page_end, c.start_offset, c.end_offset, c.section_title, c.text,
            c.search_prefix, c.search_text, c.lang, c.markdown, c.token_count, v.embedding::text, t.terms::text, t.lang
        from rag.chunks c
        left join rag.chunk_vectors v on v.chunk_id = c.id left join rag.chunk_terms t on t.chunk_id = c.id
        where c.generation = %s order by 1
    """,
    # Batches depend on when a run was interrupted; their sum does not.
    "terms": """
        select split_part(e.element, ':', 1)::int, sum(split_part(e.element, ':', 2)::float8)
        from rag.generation_terms t
        cross join unnest(string_to_array(btrim(split_part(t.terms::text, '/', 1), '{}'), ',')) as e (element)
        where t.generation = %s group by 1 order by 1
    """,
}
_OWNED = (
    "documents",
    "generations",
    "pages",
    "chunks",
    "chunk_vectors",
    "chunk_terms",
    "generation_terms",
    "ingest_jobs",
)
_ORPHANS = {
    **{
        table: f"""
            select distinct generation from rag.{table} x
            where not exists (select from rag.generations g where g.id = x.generation)
        """
        for table in _OWNED[2:7]
    },
    "generations": """
        select id from rag.generations g where not exists (select from rag.documents d where d.generation = g.id)
            and not exists (select from rag.notes n where n.generation = g.id)
    """,
    "vectors without a chunk": """
        select chunk_id from rag.chunk_vectors v where not exists (select from rag.chunks c where c.id = v.chunk_id)
    """,
    "terms without a chunk": """
        select chunk_id from rag.chunk_terms t where not exists (select from rag.chunks c where c.id = t.chunk_id)
    """,
    "open jobs": "select id from rag.ingest_jobs where status in ('queued', 'running')",
    "objects": """
        select name from storage.objects o where not exists (
            select from rag.documents d where d.object_path = o.name and d.duplicate_of is null)
    """,
}


def read_contents(dsn: str, owner_id: str) -> dict[str, dict[str, Rows]]:
    """Name of each document and note of an owner → the rows of its live generation."""
    with psycopg.connect(dsn) as connection:
        sources = connection.execute(_SOURCES, {"owner": owner_id}).fetchall()
        return {
            name: {what: connection.execute(query, (generation,)).fetchall() for what, query in _CONTENTS.items()}
            for name, generation, _ in sources
        }


def read_statuses(dsn: str, owner_id: str) -> dict[str, str]:
    """Name of each document and note → its status, with the reason of a failure."""
    with psycopg.connect(dsn) as connection:
        return {name: status for name, _, status in connection.execute(_SOURCES, {"owner": owner_id})}


def find_leftovers(dsn: str, storage: Path) -> dict[str, list[Any]]:
    """Orphans in the database and in the storage folder; empty when all is well."""
    with psycopg.connect(dsn) as connection:
        found = {what: [row[0] for row in connection.execute(query)] for what, query in _ORPHANS.items()}
        stored = {row[0] for row in connection.execute("select name from storage.objects")}
    bucket = storage / "documents"
    files = {str(path.relative_to(bucket)) for path in bucket.rglob("*") if path.is_file()}
    found["files"] = sorted(files ^ stored)
    found["half-sent files"] = sorted(path.name for path in (storage / ".incoming").glob("*"))
    return {what: rows for what, rows in found.items() if rows}


def count_rows(dsn: str, owner_id: str) -> dict[str, int]:
    """Table → number of rows of an owner, without empty tables."""
    counts = " union all ".join(f"select '{t}', count(*) from rag.{t} where owner_id = %(owner)s" for t in _OWNED)
    with psycopg.connect(dsn) as connection:
        return {table: n for table, n in connection.execute(counts, {"owner": owner_id}) if n}


@contextmanager
def trigger_disabled(dsn: str) -> Iterator[None]:
    """Disables the storage trigger: inside the block, stored objects create no jobs."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter table storage.objects disable trigger rag_on_object_stored")
        try:
            yield
        finally:
            connection.execute("alter table storage.objects enable trigger rag_on_object_stored")
