-- The chunks of a scope nearest to a question, nearest first. Every chunk is compared, so that none is missed however small the
-- scope is.
create or replace function rag.nearest_chunks_exact(
    server_id uuid, embedding extensions.halfvec, generations bigint[], match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for thousands of generations would take longer than the search
as $$
#variable_conflict use_column
begin
    return query
    select v.chunk_id, v.embedding <#> nearest_chunks_exact.embedding
    from rag.chunk_vectors v
    where v.generation = any (generations) and v.server_id = nearest_chunks_exact.server_id
    order by 2, 1
    limit match_count;
end
$$;
revoke all on function rag.nearest_chunks_exact(uuid, extensions.halfvec, bigint[], int) from public;
grant execute on function rag.nearest_chunks_exact(uuid, extensions.halfvec, bigint[], int) to authenticated, rag_worker;
