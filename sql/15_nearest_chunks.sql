-- The chunks of a scope nearest to a question, nearest first: from an index where there is one and its result can be trusted, and
-- otherwise by exact comparison. An index that filters by scope afterwards misses most of the nearest chunks when a question is
-- off the subjects of the scope, because other people's chunks are nearer. So its result counts only if half of it is in scope.
create or replace function rag.nearest_chunks(
    server_id uuid, embedding extensions.halfvec, generations bigint[], chunk_count bigint, match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
as $$
#variable_conflict use_column
declare
    row_count constant int := 1000; -- the most that a search of the index can find; recall grows with it
    total_count bigint;
begin
    if rag.prefers_vector_index(chunk_count, 0) then
        select c.reltuples into total_count
        from pg_class c join pg_index i on i.indexrelid = c.oid
        where c.oid = to_regclass('rag.chunk_vectors_hnsw_' || replace(server_id::text, '-', '')) and i.indisvalid;
        if rag.prefers_vector_index(chunk_count, total_count) then
            return query
            with nearest as materialized (
                select h.chunk_id, h.distance, count(*) over () as found
                from rag.nearest_chunks_hnsw(server_id, embedding, generations, row_count) h
            )
            select n.chunk_id, n.distance from nearest n where n.found >= row_count / 2
            order by 2, 1 limit match_count;
            if found then
                return;
            end if;
        end if;
    end if;
    return query select * from rag.nearest_chunks_exact(server_id, embedding, generations, match_count);
end
$$;
revoke all on function rag.nearest_chunks(uuid, extensions.halfvec, bigint[], bigint, int) from public;
grant execute on function rag.nearest_chunks(uuid, extensions.halfvec, bigint[], bigint, int) to authenticated, rag_worker;
