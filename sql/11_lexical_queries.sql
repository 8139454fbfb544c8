-- The question as one BM25 query vector per chunk language. The idf of each term is computed here, over the scope.
-- `terms` and `idf` are all of its terms, found or not (for coverage); that idf is of a scope of at least a hundred chunks.
-- idf = ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene; at most the 64 rarest terms are searched.
create or replace function rag.lexical_queries(
    query_text text, query_lang text, generations bigint[], chunk_count bigint
) returns table (lang text, query extensions.sparsevec, terms int[], idf real[])
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for each question would take longer than counting
as $$
#variable_conflict use_column
declare
    langs text[];
    terms_of_langs int[];
    frequencies jsonb;
begin
    select array_agg(l.lang), array_agg(t.term) into langs, terms_of_langs
    from (select rag.content_words(query_text, query_lang) as words offset 0) q
    cross join unnest(array['en', 'fr', 'simple']) as l (lang)
    cross join lateral rag.lexemes(l.lang, q.words) t;
    -- Two statements, because each has one right plan: a probe for each generation and term, or, where there are many
    -- generations, the owner's index by term. `+ 0` keeps the planner from the first where the second is meant.
    if cardinality(generations) <= 20 then
        select jsonb_object_agg(f.term, f.df) into frequencies from (
            select g.term, sum(g.chunk_frequency) as df from rag.generation_terms g
            where g.generation = any (generations) and g.term = any (terms_of_langs) group by 1) f;
    else
        select jsonb_object_agg(f.term, f.df) into frequencies from (
            select g.term, sum(g.chunk_frequency) as df from rag.generation_terms g
            where g.term = any (terms_of_langs) and g.generation + 0 in (select unnest(generations)) group by 1) f;
    end if;
    return query
    with weighted as (
        select t.lang, t.term, coalesce(f.df, 0) as df,
            ln(1 + (chunk_count - coalesce(f.df, 0) + 0.5::float8) / (coalesce(f.df, 0) + 0.5::float8))::real as idf,
            row_number() over (partition by t.lang order by coalesce(f.df, 0) = 0, f.df, t.term) as rarity
        from unnest(langs, terms_of_langs) as t (lang, term)
        cross join lateral (select (frequencies ->> t.term::text)::float8 as df) f
    )
    select w.lang,
        (coalesce('{' || string_agg(w.term || ':' || w.idf, ',') filter (where w.df > 0 and w.rarity <= 64) || '}', '{}')
            || '/268435456')::sparsevec,
        array_agg(w.term),
        -- What a word weighs in coverage must not depend on how little is searched: in a scope of one passage every word that
        -- stands there is common, and one that does not would outweigh four that do.
        array_agg(ln(1 + (greatest(chunk_count, 100) - w.df + 0.5::float8) / (w.df + 0.5::float8))::real)
    from weighted w
    group by w.lang;
end
$$;
revoke all on function rag.lexical_queries(text, text, bigint[], bigint) from public;
grant execute on function rag.lexical_queries(text, text, bigint[], bigint) to authenticated, rag_worker;
