-- The best chunks of a scope for the words of a question, best first: from posting lists where the scope is large, and otherwise by
-- reading every chunk. Both find the same.
create or replace function rag.matching_chunks(
    queries extensions.sparsevec[], generations bigint[], chunk_count bigint, match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
as $$
#variable_conflict use_column
begin
    if rag.prefers_posting_lists(chunk_count) then
        return query select * from rag.posting_matches(queries, generations, match_count);
    else
        return query select * from rag.lexical_matches(queries, generations, match_count);
    end if;
end
$$;
revoke all on function rag.matching_chunks(extensions.sparsevec[], bigint[], bigint, int) from public;
grant execute on function rag.matching_chunks(extensions.sparsevec[], bigint[], bigint, int) to authenticated, rag_worker;
