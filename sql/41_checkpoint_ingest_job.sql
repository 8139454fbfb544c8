-- Saves the progress of a job, in the transaction that saves its rows, and renews the lease. Progress sets the attempts back to
-- 0. Returns false when the lease is lost (to another worker, a newer upload, or a deleted source): then nothing may be saved.
create or replace function rag.checkpoint_ingest_job(
    job_id bigint, token uuid, lease_seconds int, checkpoint jsonb, page_count int
) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    document_id uuid;
begin
    perform rag.lock_job_source(job_id);
    update rag.ingest_jobs j
    set checkpoint = checkpoint_ingest_job.checkpoint, attempts = 0,
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
    where j.id = job_id and j.lease_token = token and j.status = 'running'
    returning j.document_id into document_id;
    if not found then
        return false;
    end if;
    update rag.documents d
    set pages_done = (checkpoint_ingest_job.checkpoint ->> 'pages_done')::int, page_count = checkpoint_ingest_job.page_count,
        stage = 'indexing'
    where d.id = document_id;
    return true;
end
$$;
revoke all on function rag.checkpoint_ingest_job(bigint, uuid, int, jsonb, int) from public;
grant execute on function rag.checkpoint_ingest_job(bigint, uuid, int, jsonb, int) to rag_worker;
