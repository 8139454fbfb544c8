-- Ends the leases of dead processes on a host: a job whose holder is "host:…", and not one of those alive, is due now, not when
-- its lease would have expired. It counts as lost (see rag.sweep_ingest_jobs), so a job that kills every worker is given up in
-- the end. Returns the number of jobs.
create or replace function rag.release_lost_jobs(host text, alive text[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    with released as (
        update rag.ingest_jobs j
        set lease_token = null, lease_expires_at = clock_timestamp() - interval '1 millisecond', holder = null
        where j.status = 'running' and starts_with(j.holder, host || ':') and j.holder <> all (alive)
        returning 1
    )
    select count(*)::int from released
$$;
revoke all on function rag.release_lost_jobs(text, text[]) from public;
grant execute on function rag.release_lost_jobs(text, text[]) to rag_worker;
