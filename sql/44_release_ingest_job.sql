-- Queues an unfinished job again, because the time limit of this run is near; the next claim continues after the checkpoint.
-- The attempt is not given back: saving progress has already set the attempts to 0.
create or replace function rag.release_ingest_job(job_id bigint, token uuid) returns boolean
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    with released as (
        update rag.ingest_jobs j
        set status = 'queued', lease_token = null, lease_expires_at = null,
            run_after = clock_timestamp()
        where j.id = job_id and j.lease_token = token and j.status = 'running'
        returning 1
    )
    select exists (select from released)
$$;
revoke all on function rag.release_ingest_job(bigint, uuid) from public;
grant execute on function rag.release_ingest_job(bigint, uuid) to rag_worker;
