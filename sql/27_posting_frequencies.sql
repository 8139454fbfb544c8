-- What rag.chunk_frequencies returns, for a large scope: how many of its chunks contain each of these different terms. Posting
-- lists know their lengths; chunks outside the scope are looked for in them.
create or replace function rag.posting_frequencies(terms int[], generations bigint[]) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    scope record;
    unlisted jsonb;
begin
    select * into scope from rag.segment_scope(generations);
    if scope.segment_ids = '{}' then
        return rag.chunk_frequencies(terms, generations);
    end if;
    unlisted := rag.chunk_frequencies(terms, scope.unlisted);
    return (
        with listed as (
            select p.term, sum(p.chunk_frequency - case scope.left_out when '{}' then 0 else (
                select count(*) from unnest(p.postings) as l (posting)
                where l.posting > 0 and l.posting >> 15 in (select unnest(scope.left_out))) end) as df
            from unnest(terms) as t (term)
            cross join lateral (
                select p.* from rag.posting_lists p
                where p.segment_id = any (scope.segment_ids) and p.term = t.term
                offset 0 -- leaves one plan: look each term up in each segment
            ) p
            group by p.term
        )
        select jsonb_object_agg(t.term, c.df)
        from unnest(terms) as t (term)
        left join listed l on l.term = t.term
        cross join lateral (select coalesce(l.df, 0) + coalesce((unlisted ->> t.term::text)::bigint, 0) as df) c
        where c.df > 0);
end
$$;
revoke all on function rag.posting_frequencies(int[], bigint[]) from public;
grant execute on function rag.posting_frequencies(int[], bigint[]) to authenticated, rag_worker;
