-- Gives the caller the lease of one due job: a given one, or the longest waiting. Expired leases are due again.
-- No row means nothing to do. The first claim opens the generation that the job writes into.
create or replace function rag.claim_ingest_job(job_id bigint, lease_seconds int) returns setof rag.ingest_jobs
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
begin
    -- Everybody locks the document before its job: one order, no deadlock.
    select j.* into job from rag.ingest_jobs j join rag.documents d on d.id = j.document_id
    where (claim_ingest_job.job_id is null or j.id = claim_ingest_job.job_id)
        and j.run_after <= clock_timestamp()
        and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()))
    order by j.run_after, j.id
    for update of d, j skip locked
    limit 1;
    if not found then
        return;
    end if;
    if job.generation is null then
        insert into rag.generations (owner_id, document_id) values (job.owner_id, job.document_id)
        returning id into job.generation;
    end if;
    update rag.documents d
    set status = case when d.generation is null then 'processing' else 'reindexing' end,
        stage = 'reading', pages_done = coalesce((job.checkpoint ->> 'pages_done')::int, 0)
    where d.id = job.document_id;
    return query
    update rag.ingest_jobs j
    set status = 'running', attempts = j.attempts + 1, generation = job.generation, lease_token = gen_random_uuid(),
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
    where j.id = job.id
    returning j.*;
end
$$;
revoke all on function rag.claim_ingest_job(bigint, int) from public;
grant execute on function rag.claim_ingest_job(bigint, int) to rag_worker;
