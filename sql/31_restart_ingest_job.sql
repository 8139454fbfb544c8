-- Lets a claimed job start over, in a new generation, when another embedding server embedded what it had saved: all vectors of a
-- source come from one server. Returns the new generation, or null when there is nothing to start over. Returns null for a lost
-- lease, too: the next save reports it.
create or replace function rag.restart_ingest_job(job_id bigint, token uuid, server_id uuid) returns bigint
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    fresh bigint;
begin
    perform rag.lock_job_source(job_id);
    select * into job from rag.ingest_jobs j
    where j.id = job_id and j.lease_token = token and j.status = 'running' for update;
    if not exists (
        select from rag.chunk_vectors v
        where v.generation = job.generation and v.server_id <> restart_ingest_job.server_id
    ) then
        return null;
    end if;
    insert into rag.generations (owner_id, document_id, note_id) values (job.owner_id, job.document_id, job.note_id)
    returning id into fresh;
    update rag.ingest_jobs j set generation = fresh, checkpoint = '{}' where j.id = job.id;
    update rag.documents d set pages_done = 0 where d.id = job.document_id;
    delete from rag.generations g where g.id = job.generation;
    return fresh;
end
$$;
revoke all on function rag.restart_ingest_job(bigint, uuid, uuid) from public;
grant execute on function rag.restart_ingest_job(bigint, uuid, uuid) to rag_worker;
