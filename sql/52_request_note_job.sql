-- Queues one of the caller's notes again, for example after a failure; search finds the old passages until the new ones replace
-- them. An open job stays as it is and, if it was waiting, becomes due now, ahead of background jobs. Returns the
-- id of the job, or null when the note is not the caller's or has no text.
create or replace function rag.request_note_job(note_id uuid) returns bigint
language plpgsql volatile
security definer -- users may not write the queue; the owner is checked here
set search_path = pg_catalog, pg_temp
as $$
declare
    note rag.notes;
    job_id bigint;
begin
    select * into note from rag.notes n where n.id = request_note_job.note_id and n.owner_id = auth.uid() for update;
    if not found or note.status = 'empty' then
        return null;
    end if;
    update rag.ingest_jobs j set run_after = least(j.run_after, clock_timestamp()), background = false
    where j.note_id = note.id and j.status in ('queued', 'running')
    returning j.id into job_id;
    if job_id is null then
        insert into rag.ingest_jobs (owner_id, note_id, kind, object_version)
        values (note.owner_id, note.id, 'note', clock_timestamp()::text)
        returning id into job_id;
    end if;
    update rag.notes n set status = 'queued', error_code = null, error = null where n.id = note.id;
    return job_id;
end
$$;
revoke all on function rag.request_note_job(uuid) from public;
grant execute on function rag.request_note_job(uuid) to authenticated;
