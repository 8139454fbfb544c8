-- When the functions of sql/60 to sql/66 run; which tables clients may watch; and the bucket that uploads arrive in.
create trigger touch_updated_at before update on rag.notebooks for each row execute function rag.touch_updated_at();
create trigger touch_updated_at before update on rag.documents for each row execute function rag.touch_updated_at();
-- Only what a user edits counts as a change of a note; indexing it does not.
create trigger touch_updated_at before update of title, content, notebook_id, trashed_at on rag.notes
    for each row execute function rag.touch_updated_at();

create trigger note_inserted after insert on rag.notes for each row execute function rag.on_note_saved();
create trigger note_changed after update of title, content on rag.notes for each row
    when (old.title is distinct from new.title or old.content is distinct from new.content)
    execute function rag.on_note_saved();

create trigger remove_generation_rows after delete on rag.generations
    referencing old table as removed for each statement execute function rag.remove_generation_rows();

create trigger audit_setting after insert or update or delete on rag.settings
    for each row execute function rag.audit_setting();

insert into storage.buckets (id, name, public) values ('documents', 'documents', false) on conflict (id) do nothing;
create trigger rag_on_object_stored after insert or update of version on storage.objects
    for each row when (new.bucket_id = 'documents') execute function rag.on_object_stored();

do $$
begin
    if exists (select from pg_publication where pubname = 'supabase_realtime') then
        alter publication supabase_realtime add table rag.documents, rag.messages, rag.notes;
    end if;
end
$$;
