-- Renews the lease of a worker between two saves, for example while a slow model server answers. Returns false when the lease
-- is lost.
create or replace function rag.extend_ingest_lease(job_id bigint, token uuid, lease_seconds int) returns boolean
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    with extended as (
        update rag.ingest_jobs j
        set lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
        where j.id = job_id and j.lease_token = token and j.status = 'running'
        returning 1
    )
    select exists (select from extended)
$$;
revoke all on function rag.extend_ingest_lease(bigint, uuid, int) from public;
grant execute on function rag.extend_ingest_lease(bigint, uuid, int) to rag_worker;
