-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/24_search.sql sha256:dee08df430d04d57471b4259b1af354bac4dd4946bc773921c82716bd8ad5831
-- The hybrid search for Supabase's own clients: supabase.schema('ibid').rpc('search', {…}). Row level security applies as for every
-- other search; the quotas and limits of the HTTP API do not.
-- `query_embedding` is the question's embedding by the server `server_id`, or by the default one; with its query prefix, if the
-- server has one. It need not be a unit vector. Without it only the words are searched, without `query_text` only the meaning.
-- `query_lang` is 'en' or 'fr'; without it the words are searched in both. Translations are searched with their passages; `content` is
-- always the original, and `translation` what it was translated into, unless the question is in the language of the passage.
create or replace function ibid.search(
    query_text text default '',
    query_embedding extensions.halfvec default null,
    match_count int default null,
    query_lang text default null,
    server_id uuid default null,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns table (
    source text,
    source_id uuid,
    chunk_index int,
    file_name text,
    title text,
    section_title text,
    page_start int,
    page_end int,
    start_offset int,
    end_offset int,
    lang text,
    content text,
    score double precision,
    similarity double precision,
    translation text
)
language plpgsql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
#variable_conflict use_column
declare
    wanted int := coalesce(search.match_count, (select s.value::int from rag.settings s where s.key = 'match_count'), 20);
    langs text[] := case when search.query_lang is null then array['en', 'fr'] else array[search.query_lang] end;
    server rag.embedding_servers;
    has_vector boolean := search.query_embedding is not null;
    has_words boolean := coalesce(search.query_text, '') ~ '\S';
begin
    if not (has_vector or has_words) then
        raise exception 'query_text or query_embedding is needed' using errcode = '22023';
    elsif wanted not between 1 and 100 then
        raise exception 'match_count must be 1 to 100, not %', wanted using errcode = '22023';
    elsif langs[1] not in ('en', 'fr') then
        raise exception 'query_lang must be en or fr, not %', langs[1] using errcode = '22023';
    end if;
    select * into server from rag.embedding_servers e
    where e.active and (e.id = search.server_id or (search.server_id is null and e.is_default));
    if has_vector and server.id is null then
        raise exception 'There is no active embedding server %', coalesce(search.server_id::text, 'by default')
            using errcode = '22023';
    elsif has_vector and vector_dims(search.query_embedding) <> server.dimensions then
        raise exception 'query_embedding has % dimensions, but those of the server "%" have %',
            vector_dims(search.query_embedding), server.name, server.dimensions using errcode = '22023';
    elsif has_vector and l2_norm(search.query_embedding) = 0 then
        raise exception 'query_embedding has no direction: all its numbers are 0' using errcode = '22023';
    end if;
    return query
    with scales as (
        -- Between a floor and a ceiling for passages in English, French and other languages; see rag.hybrid_search_v2.
        select array_agg(coalesce(s.scale ->> 0, server.similarity_floor::text)::real order by p.place) as floors,
            array_agg(coalesce(s.scale ->> 1, server.similarity_ceiling::text)::real order by p.place) as ceilings
        from unnest(array['en', 'fr', 'simple']) with ordinality as p (lang, place)
        cross join lateral (select server.similarity_scales -> (search.query_lang || '>' || p.lang) as scale) s
        where has_vector
    )
    select h.source, h.source_id, h.chunk_index, h.file_name, h.title, h.section_title, h.page_start, h.page_end,
        h.start_offset, h.end_offset, h.lang, h.text, h.score, h.similarity, (
            select x.text from rag.chunk_translations x
            where x.id = - h.chunk_id and x.lang = coalesce(search.query_lang, x.lang))
    from scales, lateral rag.hybrid_search_v2(
        array_fill(case when has_words then search.query_text else '' end, array[cardinality(langs)]), langs,
        case when has_vector then array[server.id] else '{}' end,
        case when has_vector then array[l2_normalize(search.query_embedding)] else '{}' end,
        case when has_vector then array[1::real] else '{}' end,
        coalesce(scales.floors, '{}'), coalesce(scales.ceilings, '{}'),
        search.document_ids, search.notebook_id, search.note_id, search.filters, wanted) h;
end
$$;
revoke all on function ibid.search(text, extensions.halfvec, int, text, uuid, uuid[], uuid, uuid, jsonb) from public;
grant execute on function ibid.search(text, extensions.halfvec, int, text, uuid, uuid[], uuid, uuid, jsonb) to authenticated;
