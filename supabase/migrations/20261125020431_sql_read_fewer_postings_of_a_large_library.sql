-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/26_segment_scope.sql sha256:303b2de690b710465de95d9e98b45980094f998787a4761c0248ae20dcee7616
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

-- from sql/28_posting_matches.sql sha256:e008e3b3ca70d48f1a08ae33043ba524a75b84b01adc327654ad8c17b0609ff6
-- What rag.lexical_matches returns, for a large scope, from posting lists: exactly the best chunks, without reading the others.
-- The terms of the question are read rarest first. A chunk that is not among the best `candidate_count` for the terms read so far
-- has at most the score of the last of them, plus `rest`, the most that the other terms can add (Turtle and Flood 1995,
-- "MaxScore"). When that is less than the score of the last match, no other chunk can be a match. Where it cannot be shown,
-- because thousands of chunks have the same score, every chunk is read.
create or replace function rag.posting_matches(
    queries extensions.sparsevec[], generations bigint[], match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan
set work_mem = '64MB' -- for the sums of half a million chunks
as $$
#variable_conflict use_column
declare
    candidate_count constant int := 100 + 40 * match_count;
    scope record;
    asked record;
    share float8;
    term_count int := 0; -- how many terms are read
    rest float8;
    best record;
    least_score float8; -- of the last match, at least
    least_sum float8; -- that a match has for the terms that are read
begin
    select * into scope from rag.segment_scope(generations);
    if scope.segment_ids = '{}' then
        return query select * from rag.lexical_matches(queries, generations, match_count);
        return;
    end if;
    -- `rests` are the most that a term and all after it can add to a chunk, which has one language.
    select coalesce(array_agg(r.lang order by r.place), '{}') as langs, coalesce(array_agg(r.term order by r.place), '{}') as terms,
        array_agg(r.idf order by r.place) as idfs, array_agg(r.read order by r.place) as reads,
        array_agg(r.rest order by r.place) as rests
    into asked
    from (
        select l.*, row_number() over rarest_first as place, sum(l.frequency) over rarest_first as read,
            greatest(
                sum(l.bound) filter (where l.lang = 1) over commonest_first,
                sum(l.bound) filter (where l.lang = 2) over commonest_first,
                sum(l.bound) filter (where l.lang = 3) over commonest_first) as rest
        from (
            select q.lang, q.term, q.idf, sum(p.chunk_frequency) as frequency, q.idf * max(p.max_weight) as bound
            from (
                select v.lang::smallint, split_part(e.element, ':', 1)::int as term, split_part(e.element, ':', 2)::float8 as idf
                from unnest(queries) with ordinality as v (query, lang)
                cross join string_to_table(split_part(ltrim(v.query::text, '{'), '}', 1), ',') as e (element)
                where e.element <> ''
            ) q
            cross join lateral (
                select p.chunk_frequency, p.max_weight from rag.posting_lists p
                where p.segment_id = any (scope.segment_ids) and p.term = q.term and p.lang = q.lang
                offset 0 -- leaves one plan: look each term up in each segment
            ) p
            group by q.lang, q.term, q.idf
        ) l
        window rarest_first as (order by l.frequency, l.term, l.lang),
            commonest_first as (order by l.frequency desc, l.term desc, l.lang desc)
    ) r;
    if asked.terms = '{}' then
        return query select * from rag.lexical_matches(queries, scope.unlisted, match_count);
        return;
    end if;
    -- First the terms that few chunks have, to learn what score the last match has at least. Then all but the commonest terms,
    -- which together weigh less than these shares of that score; then all. Searches took least at 0.7: a higher share reads fewer
    -- terms, but then more chunks can still be matches than there are candidates.
    foreach share in array array[null, 0.7, 0.25, 0] loop
        exit when term_count = cardinality(asked.terms);
        term_count := case
            when share is null then (
                select min(p.place) from unnest(asked.reads) with ordinality as p (read, place)
                where p.read >= candidate_count or p.place = cardinality(asked.terms))
            else coalesce((
                select min(p.place) - 1 from unnest(asked.rests) with ordinality as p (rest, place)
                where p.rest < least_score * share and p.place > term_count + 1), cardinality(asked.terms)) end;
        rest := coalesce(asked.rests[term_count + 1], 0);
        least_sum := least_score - rest - 0.002;
        with summed as (
            select c.chunk_id, c.score
            from unnest(scope.segment_ids) as s (id)
            -- Segment by segment, because the sums of one fit into the processor's cache.
            cross join lateral (
                select l.posting >> 15 as chunk_id, sum((l.posting & 32767) * l.unit) as score
                from unnest(asked.langs[:term_count], asked.terms[:term_count], asked.idfs[:term_count]) as q (lang, term, idf)
                cross join lateral (
                    select p.postings from rag.posting_lists p
                    where p.segment_id = s.id and p.term = q.term and p.lang = q.lang
                    offset 0
                ) p
                cross join lateral (select unnest(p.postings) as posting, q.idf / 10000 as unit) l
                group by 1
                having least_sum is null or sum((l.posting & 32767) * l.unit) >= least_sum
                offset 0
            ) c
            where not c.chunk_id in (select unnest(scope.left_out))
            order by 2 desc
            limit candidate_count
        ), candidates as (
            select s.chunk_id, s.score as partial_score, - rag.lexical_distance(queries, t.lang, t.terms) as score
            from summed s join rag.chunk_terms t on t.chunk_id = s.chunk_id
            offset 0
        ), ranked as (
            select c.* from candidates c order by c.score desc, c.chunk_id limit match_count
        )
        select array_agg(b.chunk_id) as chunk_ids, array_agg(b.score) as scores,
            case when count(*) = match_count then min(b.score) else 0 end as score,
            (select case when count(*) = candidate_count then min(c.partial_score) else 0 end from candidates c) as others
        into best
        from ranked b;
        least_score := best.score;
        if best.others + rest = 0 or best.others + rest + 0.001 < least_score then
            return query
            select m.chunk_id, m.distance
            from (
                select f.chunk_id, - f.score as distance from unnest(best.chunk_ids, best.scores) as f (chunk_id, score)
                union all
                select u.chunk_id, u.distance from rag.lexical_matches(queries, scope.unlisted, match_count) u
            ) m
            order by 2, 1
            limit match_count;
            return;
        end if;
    end loop;
    return query select * from rag.lexical_matches(queries, generations, match_count);
end
$$;
revoke all on function rag.posting_matches(extensions.sparsevec[], bigint[], int) from public;
grant execute on function rag.posting_matches(extensions.sparsevec[], bigint[], int) to authenticated, rag_worker;
