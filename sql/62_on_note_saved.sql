-- Trigger of rag.notes: queues the indexing of a saved note and supersedes the job for its older text. A note without any text
-- has nothing to index, so it leaves search at once.
create or replace function rag.on_note_saved() returns trigger
language plpgsql
security definer -- users may not write the queue
set search_path = ''
as $$
begin
    update rag.ingest_jobs j set status = 'superseded', finished_at = clock_timestamp(), lease_token = null
    where j.note_id = new.id and j.status in ('queued', 'running');
    if new.content ~ '[^[:space:]\u00ad\u200b\u2060\ufeff]' then
        insert into rag.ingest_jobs (owner_id, note_id, kind, object_version)
        values (new.owner_id, new.id, 'note', clock_timestamp()::text);
        update rag.notes n set status = 'queued', error_code = null, error = null where n.id = new.id;
    else
        update rag.notes n
        set status = 'empty', generation = null, chunk_count = 0, lang = null, error_code = null, error = null
        where n.id = new.id;
        delete from rag.generations g where g.note_id = new.id;
    end if;
    return null;
end
$$;
revoke all on function rag.on_note_saved() from public;
