-- Locks the document or the note of a job. Every function does so before it changes the job: one order of locks, so no
-- deadlock.
create or replace function rag.lock_job_source(job_id bigint) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job record;
begin
    select j.document_id, j.note_id into job from rag.ingest_jobs j where j.id = job_id;
    perform from rag.documents d where d.id = job.document_id for update;
    perform from rag.notes n where n.id = job.note_id for update;
end
$$;
revoke all on function rag.lock_job_source(bigint) from public;
grant execute on function rag.lock_job_source(bigint) to rag_worker;
