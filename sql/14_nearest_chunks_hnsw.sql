-- The chunks of a large scope nearest to a question, by the index of their embedding server (see 12_prefers_vector_index).
-- The scan goes on until enough rows in scope are found (iterative_scan); their order is then put right.
-- The index is partial and on an expression, so the statement must repeat both as constants: it is made for the server.
create or replace function rag.nearest_chunks_hnsw(
    server_id uuid, embedding extensions.halfvec, generations bigint[], match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set enable_seqscan = off -- these leave one plan only: the index by distance, the generations as a filter
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
    perform set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '200', true),
        set_config('hnsw.max_scan_tuples', '100000', true), set_config('hnsw.scan_mem_multiplier', '4', true);
    return query execute format(
        'with nearest as materialized (
            select v.chunk_id, v.embedding::halfvec(%1$s) <#> $1::halfvec(%1$s) as distance
            from rag.chunk_vectors v
            where v.server_id = %2$L::uuid and v.generation + 0 = any ($2)
            order by v.embedding::halfvec(%1$s) <#> $1::halfvec(%1$s)
            limit $3
        )
        select n.chunk_id, n.distance from nearest n', vector_dims(embedding), server_id)
        using embedding, generations, match_count;
end
$$;
revoke all on function rag.nearest_chunks_hnsw(uuid, extensions.halfvec, bigint[], int) from public;
grant execute on function rag.nearest_chunks_hnsw(uuid, extensions.halfvec, bigint[], int) to authenticated, rag_worker;
