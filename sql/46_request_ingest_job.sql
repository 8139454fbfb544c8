-- Queues one of the caller's documents again: a failed one from its stored file, an indexed one for indexing it again (search
-- finds the old passages until the new ones replace them). An open job stays as it is and, if it was waiting, becomes due now,
-- ahead of background jobs. Returns the id of the job, or null when the document is not the caller's or has no stored file that
-- may be read.
create or replace function rag.request_ingest_job(document_id uuid) returns bigint
language plpgsql volatile
security definer -- users may not write the queue; the owner is checked here
set search_path = pg_catalog, pg_temp
as $$
declare
    document rag.documents;
    version text;
    size_bytes bigint;
    job_id bigint;
begin
    select * into document from rag.documents d
    where d.id = request_ingest_job.document_id and d.owner_id = auth.uid() for update;
    select o.version, (o.metadata ->> 'size')::bigint into version, size_bytes from storage.objects o
    where o.bucket_id = 'documents' and o.name = document.object_path;
    if version is null or document.error_code = 'larger_than_announced' then
        return null;
    end if;
    update rag.ingest_jobs j set run_after = least(j.run_after, clock_timestamp()), background = false
    where j.document_id = document.id and j.status in ('queued', 'running')
    returning j.id into job_id;
    if job_id is not null then
        return job_id;
    end if;
    if not exists (select from rag.ingest_jobs j where j.document_id = document.id) then
        return rag.enqueue_stored_object(document.object_path, version, size_bytes);
    end if;
    insert into rag.ingest_jobs (owner_id, document_id, kind, object_version)
    values (document.owner_id, document.id, 'reindex', version)
    returning id into job_id;
    update rag.documents d
    set status = case when d.generation is null then 'uploaded' else 'reindexing' end, stage = 'queued', pages_done = 0,
        error_code = null, error = null
    where d.id = document.id;
    return job_id;
end
$$;
revoke all on function rag.request_ingest_job(uuid) from public;
grant execute on function rag.request_ingest_job(uuid) to authenticated;
