-- The question as BM25 query vectors: one row for each language of chunks, always in the order 'en', 'fr', 'simple'. The idf of
-- a term is ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene, computed over the scope; only the 64 rarest terms are searched.
-- A translated question has several texts: chunks are searched with the text in their language, or else with all of them.
-- `terms` and `idf` are all terms of the question, whether or not they occur, for coverage: that idf is computed as for a
-- scope of at least a hundred chunks.
create or replace function rag.lexical_queries(
    query_texts text[], query_langs text[], generations bigint[], chunk_count bigint
) returns table (lang text, query extensions.sparsevec, terms int[], idf real[])
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for every question would take longer than counting
as $$
#variable_conflict use_column
declare
    langs text[];
    terms_of_langs int[];
    distinct_terms int[];
    frequencies jsonb;
begin
    select array_agg(l.lang), array_agg(t.term) into langs, terms_of_langs
    from (
        select l.lang, coalesce(string_agg(q.words, ' ') filter (where q.lang = l.lang), string_agg(q.words, ' ')) as words
        from (select rag.content_words(p.content, p.lang) as words, p.lang from unnest(query_texts, query_langs) as p (content, lang)
            offset 0) q
        cross join unnest(array['en', 'fr', 'simple']) as l (lang)
        group by l.lang
    ) l
    cross join lateral rag.lexemes(l.lang, l.words) t;
    distinct_terms := array(select distinct unnest(terms_of_langs));
    if rag.prefers_posting_lists(chunk_count) then
        frequencies := rag.posting_frequencies(distinct_terms, generations);
    else
        frequencies := rag.chunk_frequencies(distinct_terms, generations);
    end if;
    return query
    with weighted as (
        select t.lang, t.term, coalesce(f.df, 0) as df,
            ln(1 + (chunk_count - coalesce(f.df, 0) + 0.5::float8) / (coalesce(f.df, 0) + 0.5::float8))::real as idf,
            row_number() over (partition by t.lang order by coalesce(f.df, 0) = 0, f.df, t.term) as rarity
        from unnest(langs, terms_of_langs) as t (lang, term)
        cross join lateral (select (frequencies ->> t.term::text)::float8 as df) f
    ), found as (
        select w.lang,
            '{' || string_agg(w.term || ':' || w.idf, ',') filter (where w.df > 0 and w.rarity <= 64) || '}' as elements,
            array_agg(w.term) as terms,
            -- In a small scope idf says little: in a scope of one passage, a word that it lacks would outweigh four that it has.
            array_agg(ln(1 + (greatest(chunk_count, 100) - w.df + 0.5::float8) / (w.df + 0.5::float8))::real) as idf
        from weighted w
        group by w.lang
    )
    select l.lang, (coalesce(f.elements, '{}') || '/268435456')::sparsevec, coalesce(f.terms, '{}'), coalesce(f.idf, '{}')
    from unnest(array['en', 'fr', 'simple']) with ordinality as l (lang, place)
    left join found f on f.lang = l.lang
    order by l.place;
end
$$;
revoke all on function rag.lexical_queries(text[], text[], bigint[], bigint) from public;
grant execute on function rag.lexical_queries(text[], text[], bigint[], bigint) to authenticated, rag_worker;
