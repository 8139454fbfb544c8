-- The search of the previous release, which knew neither translations nor scales; its handlers may still run while a release is
-- deployed. The next release drops it.
create or replace function rag.hybrid_search(
    query_text text,
    query_lang text default 'simple',
    server_ids uuid[] default '{}',
    embeddings extensions.halfvec[] default '{}',
    server_weights real[] default '{}',
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}',
    match_count int default 24,
    arm_count int default 50,
    fts_weight real default 1,
    vector_weight real default 1,
    blend_weight real default 10,
    blend_alpha real default 0.6,
    rrf_k real default 10
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select * from rag.hybrid_search_v2(
        array[query_text], array[query_lang], server_ids, embeddings, server_weights,
        array_fill(0::real, array[3 * cardinality(server_ids)]),
        array_fill(1::real, array[3 * cardinality(server_ids)]),
        document_ids, notebook_id, note_id, filters, match_count, arm_count, fts_weight, vector_weight, blend_weight,
        blend_alpha, rrf_k)
$$;
revoke all on function rag.hybrid_search(
    text, text, uuid[], extensions.halfvec[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real, real, real)
    from public;
grant execute on function rag.hybrid_search(
    text, text, uuid[], extensions.halfvec[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real, real, real)
    to authenticated, rag_worker;
