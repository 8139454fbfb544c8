-- Of the chunks nearest to a question in the index of an embedding server, those in scope (see 12_prefers_vector_index).
-- There may be few of them, or none: who asks has to look. The index is partial and on an expression, so the statement must
-- repeat both as constants: it is made for the server.
create or replace function rag.nearest_chunks_hnsw(
    server_id uuid, embedding extensions.halfvec, generations bigint[], row_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set enable_seqscan = off -- these leave one plan only: the index by distance, the generations as a filter
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
    -- Not in the header: who creates the function may not set what the library, not loaded yet, has not declared.
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
