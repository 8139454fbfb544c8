-- The chunks nearest to a question in the index of an embedding server that are also in scope (see rag.prefers_vector_index).
-- There may be few of them, or none: the caller must check. The index is partial and on an expression, and the statement must
-- repeat both as constants, so it is built for the server.
create or replace function rag.nearest_chunks_hnsw(
    server_id uuid, embedding extensions.halfvec, generations bigint[], row_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set enable_seqscan = off -- these leave one plan: the index by distance, with the generations as a filter
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
    -- Not as `set` clauses: the role that creates the function may not set parameters of a library that is not loaded yet.
    perform set_config('hnsw.iterative_scan', 'off', true), set_config('hnsw.ef_search', row_count::text, true);
    return query execute format(
        'select v.chunk_id, v.embedding::halfvec(%1$s) <#> $1::halfvec(%1$s)
        from rag.chunk_vectors v
        where v.server_id = %2$L::uuid and v.generation + 0 = any ($2)
        order by v.embedding::halfvec(%1$s) <#> $1::halfvec(%1$s)
        limit $3', vector_dims(embedding), server_id)
        using embedding, generations, row_count;
end
$$;
revoke all on function rag.nearest_chunks_hnsw(uuid, extensions.halfvec, bigint[], int) from public;
grant execute on function rag.nearest_chunks_hnsw(uuid, extensions.halfvec, bigint[], int) to authenticated, rag_worker;
