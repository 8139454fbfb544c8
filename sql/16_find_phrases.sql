-- The chunks of a scope that hold every phrase a question has in quotation marks, word for word; none without such phrases.
-- Case, accents, punctuation and line breaks do not matter. The first ten phrases count, and the thousand chunks that BM25 puts
-- first for their words are read.
create or replace function rag.find_phrases(
    query_text text, query_lang text, generations bigint[], chunk_count bigint, match_count int
) returns setof bigint
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    phrases text[];
    question record;
    query_en sparsevec := '{}/268435456';
    query_fr sparsevec := '{}/268435456';
    query_simple sparsevec := '{}/268435456';
begin
    if query_text !~ '["“”„«]' then
        return;
    end if;
    phrases := array(
        select ' ' || btrim(regexp_replace(lower(rag.fold(m[1])), '[^[:alnum:]]+', ' ', 'g')) || ' '
        from regexp_matches(left(query_text, 2000), '["“”„«]\s*([^"“”„«»]*[[:alnum:]][^"“”„«»]*)["“”»]', 'g') as m
        limit 10);
    if phrases = '{}' then
        return;
    end if;
    for question in
        select q.lang, q.query
        from rag.lexical_queries(array_to_string(phrases, ''), query_lang, generations, chunk_count) q
    loop
        case question.lang
            when 'en' then query_en := question.query;
            when 'fr' then query_fr := question.query;
            else query_simple := question.query;
        end case;
    end loop;
    return query
    select n.chunk_id
    from (
        select t.chunk_id,
            t.terms <#> case t.lang when 'en' then query_en when 'fr' then query_fr else query_simple end as distance
        from rag.chunk_terms t
        where t.generation = any (generations)
        order by 2, 1
        limit 1000
    ) n
    join rag.chunks c on c.id = n.chunk_id
    cross join lateral (
        select ' ' || regexp_replace(lower(rag.fold(c.search_text)), '[^[:alnum:]]+', ' ', 'g') || ' ' as words offset 0) said
    where n.distance < 0 and not exists (select from unnest(phrases) as p where strpos(said.words, p) = 0)
    order by n.distance, n.chunk_id
    limit match_count;
end
$$;
revoke all on function rag.find_phrases(text, text, bigint[], bigint, int) from public;
grant execute on function rag.find_phrases(text, text, bigint[], bigint, int) to authenticated, rag_worker;
