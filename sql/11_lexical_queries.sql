-- The question as one BM25 query vector per chunk language. The idf of each term is computed here, over the scope.
-- `terms` and `idf` are the question's own terms (for coverage). The vector also holds what the stemmer makes of the
-- unaccented words, so that a question with accents finds text without them.
-- idf = ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene; at most the 64 rarest terms are searched.
create or replace function rag.lexical_queries(
    query_text text, query_lang text, generations bigint[], chunk_count bigint
) returns table (lang text, query extensions.sparsevec, terms int[], idf real[])
language sql stable
set search_path = pg_catalog, extensions, pg_temp
as $$
    with question as materialized (
        select rag.content_words(query_text, query_lang) as words
    ), variants as materialized (
        select l.lang, v.term, bool_or(v.own) as own
        from question q
        cross join unnest(array['en', 'fr', 'simple']) as l (lang)
        cross join lateral (
            select term, true as own from rag.lexemes(l.lang, q.words)
            union all
            select term, false from rag.lexemes(l.lang, rag.fold(q.words))
        ) v
        group by l.lang, v.term
    ), frequencies as materialized (
        select g.term, sum(g.chunk_frequency) as df
        from rag.generation_terms g
        where g.term = any (array(select distinct v.term from variants v)) and g.generation = any (generations)
        group by g.term
    ), weighted as (
        select v.lang, v.term, v.own, coalesce(f.df, 0) as df,
            ln(1 + (chunk_count - coalesce(f.df, 0) + 0.5) / (coalesce(f.df, 0) + 0.5))::real as idf,
            row_number() over (partition by v.lang order by coalesce(f.df, 0) = 0, f.df, v.term) as rarity
        from variants v left join frequencies f using (term)
    )
    select w.lang,
        (coalesce('{' || string_agg(w.term || ':' || w.idf, ',') filter (where w.df > 0 and w.rarity <= 64) || '}', '{}')
            || '/268435456')::sparsevec,
        coalesce(array_agg(w.term) filter (where w.own), '{}'),
        coalesce(array_agg(w.idf) filter (where w.own), '{}')
    from weighted w
    group by w.lang
$$;
revoke all on function rag.lexical_queries(text, text, bigint[], bigint) from public;
grant execute on function rag.lexical_queries(text, text, bigint[], bigint) to authenticated, rag_worker;
