-- The question as one BM25 query vector per chunk language. The idf of each term is computed here, over the scope.
-- `terms` and `idf` are all of its terms, found or not (for coverage).
-- idf = ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene; at most the 64 rarest terms are searched.
create or replace function rag.lexical_queries(
    query_text text, query_lang text, generations bigint[], chunk_count bigint
) returns table (lang text, query extensions.sparsevec, terms int[], idf real[])
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_custom_plan -- so that the planner knows how many generations there are
as $$
#variable_conflict use_column
begin
    return query
    with question as materialized (
        select rag.content_words(query_text, query_lang) as words
    ), terms as materialized (
        select l.lang, t.term
        from question q
        cross join unnest(array['en', 'fr', 'simple']) as l (lang)
        cross join lateral rag.lexemes(l.lang, q.words) t
    ), frequencies as materialized (
        select g.term, sum(g.chunk_frequency) as df
        -- A join: `= any` of thousands of generations is planned, or compared, one by one.
        from unnest(generations) as s (generation) join rag.generation_terms g using (generation)
        where g.term = any (array(select distinct t.term from terms t))
        group by g.term
    ), weighted as (
        select t.lang, t.term, coalesce(f.df, 0) as df,
            ln(1 + (chunk_count - coalesce(f.df, 0) + 0.5) / (coalesce(f.df, 0) + 0.5))::real as idf,
            row_number() over (partition by t.lang order by coalesce(f.df, 0) = 0, f.df, t.term) as rarity
        from terms t left join frequencies f using (term)
    )
    select w.lang,
        (coalesce('{' || string_agg(w.term || ':' || w.idf, ',') filter (where w.df > 0 and w.rarity <= 64) || '}', '{}')
            || '/268435456')::sparsevec,
        array_agg(w.term),
        array_agg(w.idf)
    from weighted w
    group by w.lang;
end
$$;
revoke all on function rag.lexical_queries(text, text, bigint[], bigint) from public;
grant execute on function rag.lexical_queries(text, text, bigint[], bigint) to authenticated, rag_worker;
