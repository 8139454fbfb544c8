"""Runs the function `hybrid_search` of Supabase's guide to hybrid search, which users copy into their databases.

The function here makes the same choices: AND queries with `websearch_to_tsquery`, `ts_rank_cd`, vector ranks over the
whole table before the limit, reciprocal ranks with k = 50, whole rows as results, and no filter. Its text search
configuration is the database's default, which is set to the language of the questions.
"""

from __future__ import annotations

from typing import Any

import psycopg

from tests.bench.peers import datasets, serving

SCHEMA = """
create extension if not exists vector;
create table documents (
    id bigint generated always as identity primary key,
    content text,
    fts tsvector generated always as (to_tsvector('{language}', content)) stored,
    embedding vector(384)
);
create function hybrid_search(
    query_text text,
    query_embedding vector(384),
    match_count int,
    full_text_weight float default 1,
    semantic_weight float default 1,
    rrf_k int default 50
) returns setof documents language sql as $$
with by_words as (
    select d.id, row_number() over (order by ts_rank_cd(d.fts, websearch_to_tsquery(query_text)) desc) as place
    from documents d
    where d.fts @@ websearch_to_tsquery(query_text)
    order by place
    limit 2 * least(match_count, 30)
), by_meaning as (
    select d.id, row_number() over (order by d.embedding <#> query_embedding) as place
    from documents d
    order by place
    limit 2 * least(match_count, 30)
)
select d.*
from by_words w full outer join by_meaning m on w.id = m.id
join documents d on d.id = coalesce(w.id, m.id)
order by full_text_weight * coalesce(1.0 / (rrf_k + w.place), 0.0)
    + semantic_weight * coalesce(1.0 / (rrf_k + m.place), 0.0) desc
limit least(match_count, 30)
$$
"""
INDEXES = (
    "create index on documents using gin (fts)",
    "create index on documents using hnsw (embedding vector_ip_ops)",
)


class SupabaseFunction:
    def load(self, dsn: str, dataset: datasets.Dataset, language: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"alter database {connection.info.dbname} set default_text_search_config = '{language}'")
            connection.execute(SCHEMA.format(language=language))
            with connection.cursor().copy("copy documents (content, embedding) from stdin") as copy:
                for unit, vector in zip(dataset.units, dataset.vectors, strict=True):
                    copy.write_row((unit.text, format_vector(vector)))
            for statement in INDEXES:
                connection.execute(statement)

    def open(self, dsn: str, dataset: datasets.Dataset, language: str, depth: int) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._passages = [unit.passage for unit in dataset.units]
        self._depth = depth

    def ask(self, text: str, vector: Any, owner: str | None) -> list[str]:
        rows = self._connection.execute(
            "select * from hybrid_search(%s, %s::vector, %s)", (text, format_vector(vector), self._depth)
        )
        return [self._passages[row[0] - 1] for row in rows.fetchall()]


def format_vector(vector: Any) -> str:
    return "[" + ",".join(f"{value:.7g}" for value in vector.tolist()) + "]"


if __name__ == "__main__":
    serving.serve(SupabaseFunction())
