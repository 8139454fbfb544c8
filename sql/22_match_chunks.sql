-- Vector search alone: the dense arm of rag.hybrid_search_v2, for passages at least `match_threshold` similar to the question
-- on the scale of the server.
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
    ) wanted, rag.embedding_servers e, lateral rag.hybrid_search_v2(
        array[''], array['simple'], array[e.id], array[query_embedding], array[1], array_fill(e.similarity_floor, array[3]),
        array_fill(e.similarity_ceiling, array[3]), document_ids => document_ids, notebook_id => notebook_id,
        note_id => note_id, filters => filters, match_count => wanted.count, arm_count => wanted.count, blend_weight => 0) h
    where e.id = server_id and h.similarity >= wanted.threshold
$$;
revoke all on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb)
    to authenticated, rag_worker;
