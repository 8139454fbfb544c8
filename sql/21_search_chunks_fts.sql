-- Full text search alone: the lexical arm of rag.hybrid_search_v2. A chunk needs one term of the question, and BM25 ranks them.
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
    ) wanted, lateral rag.hybrid_search_v2(
        array[query_text], array[query_lang], document_ids => document_ids, notebook_id => notebook_id, note_id => note_id,
        filters => filters, match_count => wanted.count, arm_count => wanted.count, blend_weight => 0) h
$$;
revoke all on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;
