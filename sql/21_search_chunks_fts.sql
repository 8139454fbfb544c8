-- Full text search alone: the lexical arm of rag.hybrid_search. A chunk needs one term of the question, and BM25 ranks them.
-- There is no operator syntax, so no question can be a syntax error.
create or replace function rag.search_chunks_fts(
    query_text text,
    query_lang text default 'simple',
    match_count int default 20,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select * from rag.hybrid_search(
        query_text, query_lang, document_ids => document_ids, notebook_id => notebook_id, note_id => note_id,
        filters => filters, match_count => match_count, arm_count => match_count, blend_weight => 0)
$$;
revoke all on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;
