-- Records a failure. A retryable one is tried again until `max_attempts`, after the wait that a server asked for (an hour at
-- most), or after 2, 4, 8 … seconds (5 minutes at most, with jitter); then the job is dead. Any other failure is final. What a
-- job had written is removed when it ends; a source that was indexed before stays searchable as it was. Returns the job's new
-- status, or null when the lease is lost.
create or replace function rag.fail_ingest_job(
    job_id bigint, token uuid, code text, message text, retryable boolean, max_attempts int, wait_seconds int default null
) returns text
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    again boolean;
begin
    perform rag.lock_job_source(job_id);
    select * into job from rag.ingest_jobs j
    where j.id = job_id and j.lease_token = token and j.status = 'running' for update;
    if not found then
        return null;
    end if;
    again := retryable and job.attempts < max_attempts;
    update rag.ingest_jobs j
    set status = case when again then 'queued' when retryable then 'dead' else 'failed' end,
        lease_token = null, lease_expires_at = null, error_code = code, error = message,
        -- least() ignores null, so a missing wait must be handled apart.
        run_after = clock_timestamp() + make_interval(secs => case
            when wait_seconds is null then least(300, 2 ^ job.attempts) * (0.5 + random())
            else least(wait_seconds, 3600) * (1 + random() / 5) end),
        finished_at = case when not again then clock_timestamp() end
    where j.id = job.id
    returning j.* into job;
    if again then
        update rag.documents d set stage = 'waiting', error_code = code, error = message where d.id = job.document_id;
        update rag.notes n set error_code = code, error = message where n.id = job.note_id;
        return job.status;
    end if;
    perform rag.fail_job_source(job.id, code, message);
    return job.status;
end
$$;
revoke all on function rag.fail_ingest_job(bigint, uuid, text, text, boolean, int, int) from public;
grant execute on function rag.fail_ingest_job(bigint, uuid, text, text, boolean, int, int) to rag_worker;
