-- Which of English and French the sources of a scope are in, each with the caller's translation of a question into it that is
-- less than a day old, or null: {"en": null, "fr": "Que brûle la chaudière ?"}. `text_hash` is that of the question; null asks
-- nothing and returns {}. The languages are those of documents and notes, so the cost hardly grows with a library: an index
-- answers for a whole library, and only for a part of a bilingual one its scope is determined.
create or replace function rag.find_translations(
    text_hash text,
    document_ids uuid[],
    notebook_id uuid,
    note_id uuid,
    filters jsonb
) returns jsonb
language plpgsql stable security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan -- one plan is right for every question
as $$
declare
    found_langs jsonb := '{}';
    candidate text;
begin
    if text_hash is null then
        return found_langs;
    end if;
    foreach candidate in array array['en', 'fr'] loop
        continue when coalesce(filters ->> 'lang', candidate) <> candidate;
        -- The first language from the candidate on, because its order makes Postgres take the index: a plan for any value of
        -- an equality may be to read every row.
        continue when candidate is distinct from (
                -- The documents of rag.live_documents, which would first read all notes in the trash.
                select d.lang from rag.documents d
                where d.owner_id = (select auth.uid()) and d.lang >= candidate and d.generation is not null
                    and d.superseded_by is null and d.duplicate_of is null and d.trashed_at is null
                    and (d.note_id is null or exists (
                        select from rag.notes n where n.id = d.note_id and n.trashed_at is null))
                order by d.lang limit 1)
            and candidate is distinct from (
                select n.lang from rag.notes n
                where n.owner_id = (select auth.uid()) and n.lang >= candidate and n.generation is not null
                    and n.trashed_at is null
                order by n.lang limit 1);
        continue when (coalesce(document_ids, '{}') <> '{}' or notebook_id is not null or note_id is not null
                or coalesce(filters, '{}') <> '{}')
            and (
                select s.source_count = 0
                from rag.search_scope(nullif(document_ids, '{}'), find_translations.notebook_id, find_translations.note_id,
                    coalesce(filters, '{}') || jsonb_build_object('lang', candidate)) s);
        found_langs := found_langs || jsonb_build_object(candidate, (
            select t.translation from rag.query_translations t
            where t.owner_id = (select auth.uid()) and t.text_hash = find_translations.text_hash and t.lang = candidate
                and t.created_at > clock_timestamp() - interval '1 day'));
    end loop;
    return found_langs;
end
$$;
revoke all on function rag.find_translations(text, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.find_translations(text, uuid[], uuid, uuid, jsonb) to authenticated;
