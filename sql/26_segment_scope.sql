-- How a scope is searched by words: in the posting lists of these segments, without the chunks that are left out because they
-- are not in scope, and in the remaining generations chunk by chunk. A segment of which less than a quarter is in scope is not
-- worth it. A generation that got translations after its segment was written is stale there, and searched chunk by chunk.
create or replace function rag.segment_scope(
    generations bigint[],
    out segment_ids bigint[],
    out left_out bigint[],
    out unlisted bigint[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan -- planning for thousands of generations would take longer
as $$
declare
    listed record;
begin
    -- The subquery in the select list has one plan, a hash table of the generations.
    select coalesce(array_agg(g.segment_id), '{}') as segments, coalesce(bool_or(g.wanted < g.total), false) as is_part,
        coalesce(sum(g.wanted), 0) as wanted
    into listed
    from (
        select c.segment_id, count(*) as total, count(*) filter (where c.is_wanted) as wanted
        from (
            select s.segment_id, s.chunk_count, not s.is_stale and s.generation in (select unnest(generations)) as is_wanted
            from rag.segment_generations s
            offset 0 -- looks each generation up once
        ) c
        group by 1 having sum(c.chunk_count) filter (where c.is_wanted) >= sum(c.chunk_count) / 4
    ) g;
    segment_ids := listed.segments;
    -- Most scopes are whole libraries, of which nothing is left out; then neither of the others is looked for.
    left_out := case when not listed.is_part then '{}' else array(
        select c.chunk_id
        from rag.segment_generations g cross join unnest(g.chunk_ids) as c (chunk_id)
        where g.segment_id = any (segment_ids) and (g.is_stale or not g.generation in (select unnest(generations)))
    ) end;
    -- A full join has one plan, which reads each side once.
    unlisted := case when listed.wanted = cardinality(generations) then '{}' else array(
        select w.generation
        from (
            select s.generation from rag.segment_generations s where s.segment_id = any (segment_ids) and not s.is_stale
        ) g
        full join unnest(generations) as w (generation) on w.generation = g.generation
        where g.generation is null
    ) end;
end
$$;
revoke all on function rag.segment_scope(bigint[]) from public;
grant execute on function rag.segment_scope(bigint[]) to authenticated, rag_worker;
