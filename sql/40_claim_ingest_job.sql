-- Gives the caller the lease of one due job: the given one, or the one that has waited longest. Background jobs come after all
-- others, also after those that become due while a message names a background job. No row means that no job is due. The first
-- claim creates the generation that the job writes.
create or replace function rag.claim_ingest_job(job_id bigint, lease_seconds int, holder text default null)
returns setof rag.ingest_jobs
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    due record;
    job rag.ingest_jobs;
begin
    -- The source is locked before its job, as in rag.lock_job_source, but a locked source is left to the next claim.
    for due in
        select j.id, j.document_id, j.note_id from rag.due_jobs j
        where claim_ingest_job.job_id is null or j.id = claim_ingest_job.job_id or not j.background and exists (
            select from rag.ingest_jobs named where named.id = claim_ingest_job.job_id and named.background)
        order by j.background, j.run_after, j.id
        limit 100
    loop
        perform from rag.documents d where d.id = due.document_id for update skip locked;
        if not found then
            perform from rag.notes n where n.id = due.note_id for update skip locked;
            continue when not found;
        end if;
        select * into job from rag.due_jobs j where j.id = due.id for update skip locked;
        exit when found;
    end loop;
    if job.id is null then
        return;
    end if;
    if job.generation is null then
        insert into rag.generations (owner_id, document_id, note_id) values (job.owner_id, job.document_id, job.note_id)
        returning id into job.generation;
    end if;
    update rag.documents d
    set status = case when d.generation is null then 'processing' else 'reindexing' end,
        stage = 'reading', pages_done = coalesce((job.checkpoint ->> 'pages_done')::int, 0)
    where d.id = job.document_id;
    return query
    update rag.ingest_jobs j
    set status = 'running', attempts = j.attempts + 1, generation = job.generation, lease_token = gen_random_uuid(),
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds), holder = claim_ingest_job.holder
    where j.id = job.id
    returning j.*;
end
$$;
revoke all on function rag.claim_ingest_job(bigint, int, text) from public;
grant execute on function rag.claim_ingest_job(bigint, int, text) to rag_worker;
