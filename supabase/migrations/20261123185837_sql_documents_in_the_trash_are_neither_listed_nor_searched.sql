-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/08_untrashed_documents.sql sha256:e45215d42154bf60ec0dd7e2360914f4606ab364903704a527e63bc82b9178e7
-- The documents outside the trash, of every version: a document is in the trash by itself, or while the note that it is attached
-- to is.
create or replace view rag.untrashed_documents with (security_invoker = true) as
select d.*
from rag.documents d
where d.trashed_at is null
    and not exists (select from rag.notes n where n.id = d.note_id and n.trashed_at is not null);
grant select on rag.untrashed_documents to authenticated, rag_worker;

-- from sql/09_live_documents.sql sha256:f848c527d090caba94aaf519e16f99bc612dd5d145f066b9d03499c786290f40
-- The documents that a library shows: the newest version of each, no duplicates, and nothing that is in the trash.
create or replace view rag.live_documents with (security_invoker = true) as
select d.*
from rag.untrashed_documents d
where d.superseded_by is null and d.duplicate_of is null;
grant select on rag.live_documents to authenticated, rag_worker;

-- from sql/17_find_translations.sql sha256:27670d2c388316e2d5d2893cf2e1c98ff07ec81bbdfc3a3636f6fc1267a8ee0d
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

-- from sql/38_supersede_versions.sql sha256:ce9a42d0b339c8ac3ba320bf7ceea34e756b8c07ded5082b5bea9145be7a1bf4
-- Of all indexed documents with the name and the place of this one, makes the newest upload live and the others its older
-- versions: search no longer finds those, but what cited them stays readable. Called when a document gets its new generation.
-- Versions are numbered in the order of upload, whichever was indexed first; the number of a document never decreases. What is in
-- the trash is left as it is, so that restoring it brings back what was there.
create or replace function rag.supersede_versions(document_id uuid) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    one record;
    number int := 0;
    newest uuid;
begin
    for one in
        select d.id, d.version, last_value(d.id) over (
            order by d.created_at, d.id rows between unbounded preceding and unbounded following) as newest
        from rag.documents flipped
        join rag.documents d on d.owner_id = flipped.owner_id and d.file_name = flipped.file_name
            and d.notebook_id is not distinct from flipped.notebook_id and d.note_id is not distinct from flipped.note_id
        where flipped.id = supersede_versions.document_id and d.generation is not null and d.duplicate_of is null
            and d.trashed_at is null
        order by d.created_at, d.id
    loop
        number := greatest(one.version, number + 1);
        newest := nullif(one.newest, one.id);
        update rag.documents d set version = number, superseded_by = newest
        where d.id = one.id and (d.version <> number or d.superseded_by is distinct from newest);
    end loop;
end
$$;
revoke all on function rag.supersede_versions(uuid) from public;
grant execute on function rag.supersede_versions(uuid) to rag_worker;
