-- The best chunks of a scope for the words of a question, best first: at most `match_count`, each with at least one of the
-- words. `queries` are those of rag.lexical_queries, `distance` is that of rag.lexical_distance.
create or replace function rag.lexical_matches(
    queries extensions.sparsevec[], generations bigint[], match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for thousands of generations would take longer than the search
as $$
#variable_conflict use_column
begin
    return query
    select m.chunk_id, m.distance
    from (
        select t.chunk_id, rag.lexical_distance(queries, t.lang, t.terms) as distance
        from rag.chunk_terms t
        where t.generation = any (generations)
        order by 2, 1
        limit match_count
    ) m
    where m.distance < 0
    order by m.distance, m.chunk_id;
end
$$;
revoke all on function rag.lexical_matches(extensions.sparsevec[], bigint[], int) from public;
grant execute on function rag.lexical_matches(extensions.sparsevec[], bigint[], int) to authenticated, rag_worker;
