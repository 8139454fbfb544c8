-- Writes the lexical index of freshly saved chunks or translations (rag.search_texts), a batch of each generation: BM25 term
-- weights for each of them, chunk frequencies for the batch. The worker calls it in the transaction that saves them. A chunk that
-- has a term in both of its forms is counted once, so translations are indexed after their chunks.
-- The weight of a term is tf (k1 + 1) / (tf + k1 (1 - b + b dl / 100)), with k1 0.9 and b 0.6. The length dl is compared with a
-- fixed 100 terms, about one default chunk, so that the vector of a chunk depends on that chunk alone.
create or replace function rag.index_chunks(chunk_ids bigint[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    with lexemes as materialized (
        select c.id, c.generation, c.owner_id, c.lang, l.terms, l.frequencies, l.length
        from rag.search_texts c
        cross join lateral (
            select array_agg(x.term) as terms, array_agg(x.frequency) as frequencies, sum(x.frequency) as length
            from rag.lexemes(c.lang, c.content) x
        ) l
        where c.id = any (chunk_ids)
    ), batches as (
        select l.generation, l.owner_id, min(l.id) as first_chunk_id, count(*) as chunk_count from lexemes l group by 1, 2
    ), counted as (
        select l.generation, t.term, count(*) as frequency, count(*) over (partition by l.generation) as term_count
        from lexemes l cross join unnest(l.terms) as t (term)
        where l.id > 0 or not exists (
            select from rag.chunk_terms o
            where o.chunk_id = - l.id and o.terms <#> ('{' || t.term || ':1}/268435456')::sparsevec < 0)
        group by 1, 2
    ), counts as (
        insert into rag.generation_terms (generation, bucket, first_chunk_id, owner_id, terms)
        select b.generation, k.bucket, b.first_chunk_id, b.owner_id,
            ('{' || string_agg(c.term || ':' || c.frequency, ',') || '}/268435456')::sparsevec
        from batches b
        join counted c on c.generation = b.generation
        -- A row of bucket 0 counts at most 7 chunks (see rag.chunk_frequencies), and fits into a page of the table.
        cross join lateral (
            select case when b.chunk_count <= 7 and c.term_count <= 900 then 0 else rag.term_bucket(c.term) end as bucket) k
        group by 1, 2, 3, 4
    ), indexed as (
        insert into rag.chunk_terms (chunk_id, generation, owner_id, lang, terms)
        select l.id, l.generation, l.owner_id, l.lang, (coalesce(weights.list, '{}') || '/268435456')::sparsevec
        from lexemes l
        cross join lateral (
            -- Four decimals are enough for a ranking. Arithmetic in `numeric` would take three times as long.
            select '{' || string_agg(t.term || ':' || round(
                1.9e4::float8 * t.frequency / (t.frequency + 0.9::float8 * (0.4::float8 + 0.006::float8 * l.length))) / 1e4::float8,
                ',') || '}' as list
            from unnest(l.terms, l.frequencies) as t (term, frequency)
        ) weights
        order by l.id
        returning 1
    )
    select count(*)::int from indexed
$$;
revoke all on function rag.index_chunks(bigint[]) from public;
grant execute on function rag.index_chunks(bigint[]) to rag_worker;
