-- How many chunks of a scope contain each of these different terms: {"term": number}, null if no chunk has any of them. Counts
-- are dot products of the rows of rag.generation_terms with unit vectors, or with several at once: in rows of bucket 0 no count
-- exceeds 7, so eight terms can have the weights 1, 8, 64, …, and their sum, which has at most 24 bits, is exact in `real`.
create or replace function rag.chunk_frequencies(terms int[], generations bigint[]) returns jsonb
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for every question would take longer than counting
as $$
declare
    buckets constant smallint[] := array(select 0 union all select rag.term_bucket(t) from unnest(terms) as t);
begin
    -- Two statements, because each has one right plan: look up the rows of each generation or, with many generations, the
    -- owner's buckets. `is true` prevents the first plan in the second statement.
    if cardinality(generations) <= 20 then
        return (
            with asked as materialized (
                select t.term, rag.term_bucket(t.term) as bucket, ('{' || t.term || ':1}/268435456')::sparsevec as direction
                from unnest(terms) as t (term)
            ), counted as (
                select a.term, - sum(a.direction <#> g.terms) as df
                from rag.generation_terms g join asked a on g.bucket in (0, a.bucket)
                where g.generation = any (generations) and g.bucket = any (buckets)
                group by a.term
            )
            select jsonb_object_agg(c.term, c.df) from counted c where c.df > 0);
    end if;
    return (
        with packs as materialized (
            select 0 as bucket, (t.place - 1) / 8 as pack, array_agg(t.term order by t.place) as terms,
                ('{' || string_agg(t.term || ':' || (1 << 3 * ((t.place - 1) % 8)::int), ',') || '}/268435456')::sparsevec as query
            from unnest(terms) with ordinality as t (term, place) group by 2
            union all
            select rag.term_bucket(t.term), t.place, array[t.term], ('{' || t.term || ':1}/268435456')::sparsevec
            from unnest(terms) with ordinality as t (term, place)
        ), sums as (
            select p.bucket, p.pack, - (p.query <#> g.terms) as counts, count(*) as times
            from rag.generation_terms g join packs p on p.bucket = g.bucket
            where g.bucket = any (buckets) and (g.generation in (select unnest(generations))) is true
            group by 1, 2, 3
        ), counted as (
            select t.term, sum(s.times * case s.bucket when 0 then s.counts::bigint >> 3 * (t.place - 1)::int & 7
                else s.counts::bigint end) as df
            from sums s join packs p on p.bucket = s.bucket and p.pack = s.pack
            cross join unnest(p.terms) with ordinality as t (term, place)
            where s.counts > 0
            group by t.term
        )
        select jsonb_object_agg(c.term, c.df) from counted c where c.df > 0);
end
$$;
revoke all on function rag.chunk_frequencies(int[], bigint[]) from public;
grant execute on function rag.chunk_frequencies(int[], bigint[]) to authenticated, rag_worker;
