-- A question without the stop words of its own language, at most 2,000 characters of it. Other languages' stop word lists
-- would leave « quelle » or "which" in, as the rarest term of all. When nothing else is left, the words are kept.
create or replace function rag.content_words(query_text text, query_lang text) returns text
language plpgsql stable parallel safe -- plpgsql keeps the plan for the session, sql plans anew for every question
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        with words as (
            select p.token,
                -- ts_lexize gives an empty array for a stop word. Token types 9–14 are parts of compounds, blanks and tags.
                query_lang in ('en', 'fr') and ts_lexize(
                    case query_lang when 'fr' then 'pg_catalog.french_stem' else 'pg_catalog.english_stem' end::regdictionary,
                    lower(p.token)) = '{}' as is_stop_word
            from ts_parse('default', left(normalize(query_text, NFKC), 2000)) as p
            where p.tokid not between 9 and 14
        )
        select coalesce(string_agg(token, ' ') filter (where not is_stop_word), string_agg(token, ' '), '') from words);
end
$$;
revoke all on function rag.content_words(text, text) from public;
grant execute on function rag.content_words(text, text) to authenticated, rag_worker;
