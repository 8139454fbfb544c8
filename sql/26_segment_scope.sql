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
begin
    with joined as materialized (
        -- A full join has one plan, which reads each side once.
        select g.segment_id, g.chunk_count, g.generation as listed, w.generation as wanted
        from (
            select s.*, case when not s.is_stale then s.generation end as current from rag.segment_generations s
        ) g
        full join unnest(generations) as w (generation) on w.generation = g.current
    ), chosen as materialized (
        select j.segment_id from joined j
        group by 1 having sum(j.chunk_count) filter (where j.wanted is not null) >= sum(j.chunk_count) / 4
    )
    select array(select c.segment_id from chosen c), array(
        select c.chunk_id
        from joined j
        join chosen using (segment_id)
        join rag.segment_generations g on g.generation = j.listed
        cross join unnest(g.chunk_ids) as c (chunk_id)
        where j.wanted is null
    ), array(
        select j.wanted from joined j
        where j.wanted is not null and (j.segment_id is null or not j.segment_id in (select c.segment_id from chosen c))
    ) into segment_ids, left_out, unlisted;
end
$$;
revoke all on function rag.segment_scope(bigint[]) from public;
grant execute on function rag.segment_scope(bigint[]) to authenticated, rag_worker;
