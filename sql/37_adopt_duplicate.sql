-- Records the sha256 of the file of a job's document. When the owner's library already has a live document with the same bytes,
-- ends the job: the document becomes a duplicate of that one, and nothing is ingested twice. Two uploads of the same bytes take
-- turns here. Returns the id of the other document, or null when the bytes are new. Returns null for a lost lease, too: the
-- next save reports it. Raises IB001 when the sha256 is not the announced one.
create or replace function rag.adopt_duplicate(job_id bigint, token uuid, content_sha256 text) returns uuid
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    twin uuid;
begin
    select * into job from rag.ingest_jobs j
    where j.id = job_id and j.lease_token = token and j.status = 'running' and j.document_id is not null;
    if not found then
        return null;
    end if;
    perform pg_advisory_xact_lock(hashtextextended(job.owner_id || adopt_duplicate.content_sha256, 0));
    perform rag.lock_job_source(job_id);
    if exists (
        select from rag.documents d
        where d.id = job.document_id and d.content_sha256 is null and d.sha256 <> adopt_duplicate.content_sha256
    ) then
        raise exception 'the file does not have the announced sha256' using errcode = 'IB001';
    end if;
    select d.id into twin from rag.live_documents d
    where d.owner_id = job.owner_id and d.content_sha256 = adopt_duplicate.content_sha256 and d.id <> job.document_id
        and d.status <> 'failed'
    order by d.created_at limit 1;
    -- A document that was indexed before, and whose file was then replaced, never becomes a duplicate.
    if twin is null or exists (select from rag.documents d where d.id = job.document_id and d.generation is not null) then
        update rag.documents d
        set content_sha256 = adopt_duplicate.content_sha256, sha256 = adopt_duplicate.content_sha256
        where d.id = job.document_id;
        return null;
    end if;
    update rag.ingest_jobs j
    set status = 'done', finished_at = clock_timestamp(), lease_token = null where j.id = job_id and j.lease_token = token;
    if not found then
        return null;
    end if;
    update rag.documents d
    set status = 'failed', stage = null, duplicate_of = twin, error_code = 'duplicate',
        error = 'Your library has a document with the same bytes.'
    where d.id = job.document_id;
    delete from rag.generations g where g.id = job.generation;
    return twin;
end
$$;
revoke all on function rag.adopt_duplicate(bigint, uuid, text) from public;
grant execute on function rag.adopt_duplicate(bigint, uuid, text) to rag_worker;
