-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/02_spell_years.sql sha256:9a28fa5a1514fec7068481199d006afd4b4d39bba0a39cadb910737f0cf5efc4
-- Text with its years written in full, so that "FY22", "fiscal '22", "2022/23", "3Q21" and "2021-2022" in a question or a passage
-- meet the same years in the other: fiscal 2022, 2022 2023, Q3 2021, 2021 2022 (which the parser would read as 2021 and minus
-- 2022). Each step prepares for the next; a text that has been through them stays as it is.
create or replace function rag.spell_years(content text) returns text
language sql immutable parallel safe
as $$
    select case when content ~ '\d' then
        regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
        regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(content,
        '\m((?:19|20)\d\d)-?Q([1-4])\M', 'Q\2 \1', 'gi'), -- 2023Q4
        '\m([1-4])Q[- ]?(?:FY)?[''’]?(\d\d)\M', 'Q\1 ''\2', 'gi'), -- 3Q21
        '\m([1-4])Q[- ]?(?:FY)?((?:19|20)\d\d)\M', 'Q\1 \2', 'gi'),
        '\m(Q[1-4])[-/](\d\d)\M', '\1 ''\2', 'gi'), -- Q3/21
        '\m(Q[1-4])[-/]?(?=FY|(?:19|20)\d\d\M|[''’]\d\d\M)', '\1 ', 'gi'), -- Q3FY21
        '\m(?:FY[- ]?|fiscal (?:year )?)(?=[''’]?\d\d(?:\d\d)?\M)', 'fiscal ', 'gi'), -- FY 2022
        '\m(fiscal )[''’]?(?=\d\d\M(?![.,]\d|%))', '\1''', 'gi'), -- fiscal 22
        '(?<!\w)[''’](?=[0-4]\d\M)', '20', 'g'), -- '22
        '(?<!\w)[''’](?=[5-9]\d\M)', '19', 'g'), -- '93
        '\m(19|20)(\d)(\d) ?[-–/] ?(\2\d)\M(?![-–/.]\d)', '\1\2\3 \1\4', 'g'), -- 2022/23
        '\m(19|20)(\d9) ?[-–/] ?([1-9]0)\M(?![-–/.]\d)', '\1\2 \1\3', 'g'), -- 2019/20
        '\m1999 ?[-–/] ?00\M(?![-–/.]\d)', '1999 2000', 'g'),
        '(\d)[-/](?=(?:19|20)\d\d\M)', '\1 ', 'g') -- 2021-2022, 12/31/2022
        else content end
$$;
revoke all on function rag.spell_years(text) from public;
grant execute on function rag.spell_years(text) to authenticated, rag_worker;

-- from sql/04_lexemes.sql sha256:41cc91519467f343b6cde914f12b082e92c7480233836c163efc9300d03f45e0
-- The terms of a text in a language, with their frequencies. Accents are folded before stemming, so that a text and a question
-- have the same stems whether or not either is written with accents. The stemmer recognizes French stop words only with their
-- accents (à, été, était, même …), so the stems of their folded forms are removed here.
-- Years are written in full first (rag.spell_years).
-- There is no `set` clause, so that the planner can inline the function, which saves a quarter of the time for a chunk.
create or replace function rag.lexemes(lang text, content text) returns table (term int, frequency int)
language sql immutable parallel safe
as $$
    select rag.term_id(l.lexeme), sum(coalesce(cardinality(l.positions), 1))::int
    from unnest(to_tsvector(rag.text_config(lang), rag.fold(rag.spell_years(content)))) as l
    where lang is distinct from 'fr'
        or l.lexeme <> all ('{a,ete,etant,etais,etait,etaient,etion,eti,mem,fum,eum}')
    group by 1
$$;
revoke all on function rag.lexemes(text, text) from public;
grant execute on function rag.lexemes(text, text) to authenticated, rag_worker;

-- from sql/05_content_words.sql sha256:3fbf389ab3d2a4f0ccc762df8d5e850df1ccb0f4567a0c6701cb2987129a17eb
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
