-- Writes the posting lists of one segment more, and returns how many chunks it has, or null when nothing is left to do. First a
-- segment with deleted or stale generations is dissolved, so that nothing stays of their words. Then the library with most chunks outside
-- segments gets one, of up to `max_chunks` of them, if it is large (rag.prefers_posting_lists) and they are at least `min_chunks`.
create or replace function rag.renew_segments(min_chunks int default 20000, max_chunks int default 50000) returns int
language plpgsql volatile security invoker
set search_path = pg_catalog, extensions, pg_temp
set work_mem = '64MB' -- sorts some million postings
as $$
declare
    owner uuid;
    new_id bigint;
    written int;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.renew_segments', 0)); -- one at a time
    delete from rag.segments s
    where s.id in (
        select g.segment_id from rag.segment_generations g
        where g.is_stale or not exists (select from rag.generations r where r.id = g.generation));
    select l.owner_id into owner
    from (
        select d.owner_id, d.generation, d.chunk_count from rag.documents d where d.generation is not null
        union all
        select n.owner_id, n.generation, n.chunk_count from rag.notes n where n.generation is not null
    ) l
    left join rag.segment_generations g on g.generation = l.generation
    group by 1
    having rag.prefers_posting_lists(sum(l.chunk_count)::bigint)
        and sum(l.chunk_count) filter (where g.generation is null) >= min_chunks
    order by sum(l.chunk_count) filter (where g.generation is null) desc
    limit 1;
    if owner is null then
        return null;
    end if;
    insert into rag.segments (owner_id) values (owner) returning id into new_id;
    insert into rag.segment_generations (generation, segment_id, owner_id, chunk_count, chunk_ids)
    select l.generation, new_id, owner, l.chunk_count, array(
        select t.chunk_id from rag.chunk_terms t where t.generation = l.generation order by 1)
    from (
        select o.*, sum(o.chunk_count) over (order by o.generation) as total
        from (
            select d.generation, d.chunk_count from rag.documents d where d.owner_id = owner and d.generation is not null
            union all
            select n.generation, n.chunk_count from rag.notes n where n.owner_id = owner and n.generation is not null
        ) o
        where o.chunk_count > 0 and not exists (select from rag.segment_generations g where g.generation = o.generation)
    ) l
    where l.total - l.chunk_count < max_chunks;
    insert into rag.posting_lists (segment_id, term, lang, owner_id, chunk_frequency, max_weight, postings)
    select new_id, p.term, p.lang, owner, count(*) filter (where not p.is_repeated), max(p.weight) / 10000.0,
        array_agg(p.chunk_id << 15 | p.weight order by p.chunk_id)
    from (
        select t.chunk_id, case t.lang when 'en' then 1 when 'fr' then 2 else 3 end as lang,
            split_part(e.element, ':', 1)::int as term, round(10000 * split_part(e.element, ':', 2)::float8)::int as weight,
            -- A chunk that has a term in both of its forms is counted once, as in rag.index_chunks.
            t.chunk_id < 0 and exists (
                select from rag.chunk_terms o
                where o.chunk_id = - t.chunk_id
                    and o.terms <#> ('{' || split_part(e.element, ':', 1) || ':1}/268435456')::sparsevec < 0) as is_repeated
        from rag.segment_generations g
        cross join unnest(g.chunk_ids) as c (id)
        join rag.chunk_terms t on t.chunk_id = c.id
        cross join string_to_table(split_part(ltrim(t.terms::text, '{'), '}', 1), ',') as e (element)
        where g.segment_id = new_id and e.element <> ''
    ) p
    group by p.term, p.lang;
    select sum(g.chunk_count) into written from rag.segment_generations g where g.segment_id = new_id;
    return written;
end
$$;
revoke all on function rag.renew_segments(int, int) from public;
grant execute on function rag.renew_segments(int, int) to rag_worker;
