-- A question without the stop words of its own language; only its first 2,000 characters count. The stop words of its language
-- are removed before it is stemmed in the other languages, where « quelle » or "which" would be the rarest term of all. A
-- question of nothing but stop words keeps them. The French list of Postgres lacks question words and a few plurals, which are
-- in hardly any passage, so that they would weigh most; they are added here, with and without accents.
create or replace function rag.content_words(query_text text, query_lang text) returns text
language plpgsql stable parallel safe -- plpgsql keeps the plan for the session, sql would plan for every question
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        with words as (
            select p.token,
                -- ts_lexize returns an empty array for a stop word. Token types 9–14 are parts of compounds, blanks and tags.
                query_lang in ('en', 'fr') and ts_lexize(
                    case query_lang when 'fr' then 'pg_catalog.french_stem' else 'pg_catalog.english_stem' end::regdictionary,
                    lower(p.token)) = '{}'
                or query_lang = 'fr' and lower(p.token) = any (
                    '{quel,quelle,quels,quelles,lequel,laquelle,lesquels,lesquelles,quoi,comment,où,quand,combien,pourquoi,les,ils,'
                    'elles,cet,cette,plus,apres,etre,etait,etaient,ete,meme}'::text[]) as is_stop_word
            from ts_parse('default', rag.spell_years(left(normalize(query_text, NFKC), 2000))) as p
            where p.tokid not between 9 and 14
        )
        select coalesce(string_agg(token, ' ') filter (where not is_stop_word), string_agg(token, ' '), '') from words);
end
$$;
revoke all on function rag.content_words(text, text) from public;
grant execute on function rag.content_words(text, text) to authenticated, rag_worker;
