-- The generations that a search looks at, under the caller's row level security, and how much they hold: those of live
-- documents and of notes outside the trash. A notebook includes the attachments of its notes. The id of an older version, or of
-- a duplicate, stands for the document that replaced it.
-- `filters` may have source ('document' or 'note'), file_type, lang, author, journal, doi, published_from and published_to.
-- Authors and journals match by the words they contain, whatever their case and accents. Dates are YYYY, YYYY-MM or YYYY-MM-DD
-- on either side; a year or a month includes all of its days. Notes match the filters source and lang only.
create or replace function rag.search_scope(
    document_ids uuid[],
    notebook_id uuid,
    note_id uuid,
    filters jsonb,
    out generations bigint[],
    out source_count int,
    out chunk_count bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan -- one plan for every scope: planning takes longer than finding most scopes
as $$
begin
    with wanted as materialized (
        select f.asked, f.asked ->> 'source' as source, f.asked ->> 'file_type' as file_type, f.asked ->> 'lang' as lang,
            array(select '\m' || m[1] || '\M'
                from regexp_matches(rag.fold(lower(left(f.asked ->> 'author', 300))), '\w+', 'g') m) as author,
            array(select '\m' || m[1] || '\M'
                from regexp_matches(rag.fold(lower(left(f.asked ->> 'journal', 300))), '\w+', 'g') m) as journal,
            regexp_replace(lower(btrim(f.asked ->> 'doi')), '^((https?://)?((dx|www)\.)?doi\.org/|doi:?\s*)', '') as doi,
            f.asked ->> 'published_from' as published_from,
            (f.asked ->> 'published_to') || substr('9999-99-99', length(f.asked ->> 'published_to') + 1) as published_to
        from jsonb_strip_nulls(filters) as f (asked)
    ), sources as (
        select d.generation, d.chunk_count
        from rag.live_documents d
        where d.generation is not null
            and (search_scope.document_ids is null or d.id = any (search_scope.document_ids) or d.id in (
                select coalesce(o.superseded_by, o.duplicate_of) from rag.documents o where o.id = any (search_scope.document_ids)))
            and (search_scope.notebook_id is null or d.notebook_id = search_scope.notebook_id or exists (
                select from rag.notes n where n.id = d.note_id and n.notebook_id = search_scope.notebook_id))
            and (search_scope.note_id is null or d.note_id = search_scope.note_id)
            -- The subquery is evaluated once: without filters, each row costs the test of one boolean.
            and ((select coalesce(filters, '{}') = '{}') or exists (
                select from wanted w
                where (w.source is null or w.source = 'document')
                    and (w.file_type is null or d.file_type = w.file_type) and (w.lang is null or d.lang = w.lang)
                    and (w.doi is null or lower(d.ingestion_log ->> 'doi_extracted') = w.doi)
                    and (w.published_from is null or d.ingestion_log ->> 'published_at_extracted'
                        || substr('9999-99-99', length(d.ingestion_log ->> 'published_at_extracted') + 1)
                        >= w.published_from collate "C")
                    and (w.published_to is null
                        or d.ingestion_log ->> 'published_at_extracted' <= w.published_to collate "C")
                    and (w.asked ->> 'author' is null or w.author <> '{}'
                        and rag.fold(lower(d.ingestion_log ->> 'authors_extracted')) ~ all (w.author))
                    and (w.asked ->> 'journal' is null or w.journal <> '{}'
                        and rag.fold(lower(d.ingestion_log ->> 'journal_extracted')) ~ all (w.journal))))
        union all
        select n.generation, n.chunk_count
        from rag.notes n
        where n.generation is not null and n.trashed_at is null and search_scope.document_ids is null
            and (search_scope.notebook_id is null or n.notebook_id = search_scope.notebook_id)
            and (search_scope.note_id is null or n.id = search_scope.note_id)
            and ((select coalesce(filters, '{}') = '{}') or exists (
                select from wanted w
                where w.asked - 'lang' - 'source' = '{}' and (w.lang is null or n.lang = w.lang)
                    and (w.source is null or w.source = 'note')))
    )
    select coalesce(array_agg(s.generation), '{}'), count(*)::int, coalesce(sum(s.chunk_count), 0)::bigint
    into generations, source_count, chunk_count
    from sources s;
end
$$;
revoke all on function rag.search_scope(uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_scope(uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;
