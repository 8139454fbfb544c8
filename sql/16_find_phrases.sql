-- The chunks of a scope that contain, word for word, every phrase that a question has in quotation marks; none without such
-- phrases. Case, accents, punctuation and line breaks do not matter. Only the first ten phrases count, and only the thousand
-- best chunks for their words are read.
create or replace function rag.find_phrases(
    query_text text, query_lang text, generations bigint[], chunk_count bigint, match_count int
) returns setof bigint
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    phrases text[];
    queries sparsevec[];
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
    queries := array(
        select q.query from rag.lexical_queries(array[array_to_string(phrases, '')], array[query_lang], generations, chunk_count) q);
    return query
    select m.chunk_id
    from rag.matching_chunks(queries, generations, chunk_count, 1000) m
    join rag.chunks c on c.id = m.chunk_id
    cross join lateral (
        select ' ' || regexp_replace(
            lower(rag.fold(coalesce(c.search_text, c.search_prefix || c.text))), '[^[:alnum:]]+', ' ', 'g') || ' ' as words
        offset 0) said
    where not exists (select from unnest(phrases) as p where strpos(said.words, p) = 0)
    order by m.distance, m.chunk_id
    limit match_count;
end
$$;
revoke all on function rag.find_phrases(text, text, bigint[], bigint, int) from public;
grant execute on function rag.find_phrases(text, text, bigint[], bigint, int) to authenticated, rag_worker;
