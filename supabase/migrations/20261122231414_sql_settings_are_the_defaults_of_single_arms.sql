-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/21_search_chunks_fts.sql sha256:d2bc0c41ec45b7616d47850121bd2f39c329149f1d0c95a654e7a21af450471a
-- Full text search alone: the lexical arm of rag.hybrid_search. A chunk needs one term of the question, and BM25 ranks them.
-- There is no operator syntax, so no question can be a syntax error. Without `match_count` the setting of that name counts, or 20.
create or replace function rag.search_chunks_fts(
    query_text text,
    query_lang text default 'simple',
    match_count int default null,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select h.*
    from (
        select coalesce(match_count, (select s.value::int from rag.settings s where s.key = 'match_count'), 20) as count
    ) wanted, lateral rag.hybrid_search(
        query_text, query_lang, document_ids => document_ids, notebook_id => notebook_id, note_id => note_id,
        filters => filters, match_count => wanted.count, arm_count => wanted.count, blend_weight => 0) h
$$;
revoke all on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;

-- from sql/22_match_chunks.sql sha256:ada78b57812d378cd1704a7c5429e48dbe3d18d91b8c9c783d6c1a93def01158
-- Vector search alone: the dense arm of rag.hybrid_search, for passages at least `match_threshold` similar to the question.
-- Without `match_count` or `match_threshold` the settings of those names count, or 20 and 0.3.
create or replace function rag.match_chunks(
    query_embedding extensions.halfvec,
    server_id uuid,
    match_count int default null,
    match_threshold real default null,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select h.*
    from (
        select coalesce(match_count, (select s.value::int from rag.settings s where s.key = 'match_count'), 20) as count,
            coalesce(match_threshold, (select s.value::real from rag.settings s where s.key = 'match_threshold'), 0.3)
                as threshold
    ) wanted, lateral rag.hybrid_search(
        '', 'simple', array[server_id], array[query_embedding], array[1], document_ids => document_ids,
        notebook_id => notebook_id, note_id => note_id, filters => filters,
        match_count => wanted.count, arm_count => wanted.count, blend_weight => 0) h
    where h.similarity >= wanted.threshold
$$;
revoke all on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb)
    to authenticated, rag_worker;
