-- Vector search alone: the dense arm of rag.hybrid_search, for passages at least `match_threshold` similar to the question.
create or replace function rag.match_chunks(
    query_embedding extensions.halfvec,
    server_id uuid,
    match_count int default 20,
    match_threshold real default 0.3,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select * from rag.hybrid_search(
        '', 'simple', array[server_id], array[query_embedding], array[1], document_ids => document_ids,
        notebook_id => notebook_id, note_id => note_id, filters => filters,
        match_count => match_count, arm_count => match_count, blend_weight => 0) h
    where h.similarity >= match_threshold
$$;
revoke all on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb)
    to authenticated, rag_worker;
