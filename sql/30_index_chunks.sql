-- Builds the lexical index of freshly saved chunks: BM25 term weights per chunk, chunk frequencies per generation.
-- tf part = tf (k1 + 1) / (tf + k1 (1 - b + b dl / 100)), k1 0.9, b 0.6. The length is held against a fixed 100 terms, about
-- one default chunk, so that a chunk's vector depends on nothing but the chunk. Called by the worker, in the same
-- transaction as the chunks.
create or replace function rag.index_chunks(chunk_ids bigint[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    with lexemes as materialized (
        select c.id, c.generation, c.owner_id, c.lang, l.term, l.frequency,
            sum(l.frequency) over (partition by c.id) as length
        from rag.chunks c left join lateral rag.lexemes(c.lang, c.search_text) l on true
        where c.id = any (chunk_ids)
    ), counted as (
        insert into rag.generation_terms as g (generation, owner_id, term, chunk_frequency)
        select l.generation, l.owner_id, l.term, count(*) from lexemes l where l.term is not null group by 1, 2, 3
        order by 1, 3 -- one lock order for all writers
        on conflict (generation, term) do update set chunk_frequency = g.chunk_frequency + excluded.chunk_frequency
    ), indexed as (
        insert into rag.chunk_terms (chunk_id, generation, owner_id, lang, terms)
        select l.id, l.generation, l.owner_id, l.lang,
            (coalesce('{' || string_agg(
                l.term || ':' || round((l.frequency * 1.9 / (l.frequency + 0.9 * (0.4 + 0.6 * l.length / 100.0)))::numeric, 5), ',')
                || '}', '{}') || '/268435456')::sparsevec
        from lexemes l group by l.id, l.generation, l.owner_id, l.lang order by l.id
        returning 1
    )
    select count(*)::int from indexed
$$;
revoke all on function rag.index_chunks(bigint[]) from public;
grant execute on function rag.index_chunks(bigint[]) to rag_worker;
