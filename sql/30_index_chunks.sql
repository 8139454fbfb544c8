-- Writes the lexical index of freshly saved chunks: BM25 term weights for each chunk, chunk frequencies for the generation. The
-- worker calls it in the transaction that saves the chunks.
-- The weight of a term is tf (k1 + 1) / (tf + k1 (1 - b + b dl / 100)), with k1 0.9 and b 0.6. The length dl is compared with a
-- fixed 100 terms, about one default chunk, so that the vector of a chunk depends on that chunk alone.
create or replace function rag.index_chunks(chunk_ids bigint[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    with lexemes as materialized (
        select c.id, c.generation, c.owner_id, c.lang, l.terms, l.frequencies, l.length
        from rag.chunks c
        cross join lateral (
            select array_agg(x.term) as terms, array_agg(x.frequency) as frequencies, sum(x.frequency) as length
            from rag.lexemes(c.lang, c.search_text) x
        ) l
        where c.id = any (chunk_ids)
    ), counted as (
        insert into rag.generation_terms as g (generation, owner_id, term, chunk_frequency)
        select l.generation, l.owner_id, t.term, count(*) from lexemes l, unnest(l.terms) as t (term) group by 1, 2, 3
        order by 1, 3 -- one lock order for all writers
        on conflict (generation, term) do update set chunk_frequency = g.chunk_frequency + excluded.chunk_frequency
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
