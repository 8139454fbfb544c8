-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/17_find_translations.sql sha256:c67d6d9b4694802179bc0f3ef57fc3590c89fc4ce2077c9d8d5389932f3fcf9b
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
                    and d.superseded_by is null and d.duplicate_of is null
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

-- from sql/55_forget_user.sql sha256:c391bdc6a3a950326548924d8252abeeb082ce68cbf2fb8eabcd4b67f1649ddc
-- Deletes everything of one user: at most `batch_size` documents, notes and conversations in a call, and with the last of them
-- every other row that has the user's id. Returns the number of deleted rows of each kind, the paths of the stored objects,
-- which the caller then removes, and `is_done`; call it until that is true. Repeating it is safe and deletes what was added
-- meanwhile.
create or replace function rag.forget_user(user_id uuid, batch_size int) returns jsonb
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    doomed uuid[];
    paths jsonb;
    receipt jsonb := '{}';
    removed bigint;
    is_done boolean;
begin
    -- Notes are locked before documents, and each kind by id, as in rag.delete_sources.
    select array_agg(n.id) into doomed
    from (select id from rag.notes where owner_id = user_id order by id limit batch_size for update) n;
    delete from rag.notes n where n.id = any (doomed);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('notes', removed);

    -- Duplicates are deleted with the document that answers for them.
    select array_agg(d.id) into doomed
    from (
        select d.id from rag.documents d
        where d.owner_id = user_id and coalesce(d.duplicate_of, d.id) in (
            select first.id from rag.documents first
            where first.owner_id = user_id and first.duplicate_of is null order by first.id limit batch_size)
        order by d.id for update
    ) d;
    select coalesce(jsonb_agg(d.object_path), '[]') into paths from rag.documents d where d.id = any (doomed);
    delete from rag.documents d where d.id = any (doomed);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('documents', removed);

    delete from rag.conversations c
    where c.id in (select id from rag.conversations where owner_id = user_id order by id limit batch_size);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('conversations', removed);

    is_done := not exists (select from rag.notes where owner_id = user_id)
        and not exists (select from rag.documents where owner_id = user_id)
        and not exists (select from rag.conversations where owner_id = user_id);
    if is_done then
        delete from rag.notebooks where owner_id = user_id;
        get diagnostics removed = row_count;
        receipt := receipt || jsonb_build_object('notebooks', removed);
        delete from rag.generations where owner_id = user_id;
        delete from rag.ingest_jobs where owner_id = user_id;
        delete from rag.usage_counters where owner_id = user_id;
        delete from rag.query_translations where owner_id = user_id;
        update rag.settings set updated_by = null where updated_by = user_id;
        update rag.settings_audit set changed_by = null where changed_by = user_id;
        -- Objects that were uploaded to the path of a deleted document.
        select paths || coalesce(jsonb_agg(o.name), '[]') into paths
        from storage.objects o
        where o.bucket_id = 'documents' and starts_with(o.name, user_id::text || '/') and not paths ? o.name;
    end if;
    return receipt || jsonb_build_object('object_paths', paths, 'is_done', is_done);
end
$$;
revoke all on function rag.forget_user(uuid, int) from public;
grant execute on function rag.forget_user(uuid, int) to rag_worker;
