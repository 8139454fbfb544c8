-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/60_enqueue_stored_object.sql sha256:387f7efb7b248e2bfb32f16b8c9efadeeaeeff6459149d27b5d89de9edeec540
-- Queues the ingestion of a stored object; calling it again for the same version changes nothing. The storage trigger, the
-- finalize request and the sweeper call it. Returns the id of the job, or null when the object belongs to no document, has been
-- replaced by a newer version, or is larger than its upload announced.
create or replace function rag.enqueue_stored_object(object_path text, object_version text, object_size bigint) returns bigint
language plpgsql
security definer -- neither the storage service nor users may write the queue
set search_path = ''
as $$
declare
    document rag.documents;
    job_id bigint;
begin
    select * into document from rag.documents d where d.object_path = enqueue_stored_object.object_path for update;
    if not found then
        return null;
    end if;
    -- An event for a version that has been replaced since: the version stored now has its own event.
    if exists (
        select from storage.objects o
        where o.bucket_id = 'documents' and o.name = enqueue_stored_object.object_path
            and o.version <> enqueue_stored_object.object_version
    ) then
        return null;
    end if;
    select j.id into job_id from rag.ingest_jobs j
    where j.document_id = document.id and j.kind = 'ingest' and j.object_version = enqueue_stored_object.object_version;
    if found then
        return job_id;
    end if;
    update rag.ingest_jobs j set status = 'superseded', finished_at = clock_timestamp(), lease_token = null
    where j.document_id = document.id and j.status in ('queued', 'running');
    -- Quotas count the announced size. A larger file is not read, and the sweeper removes it.
    if object_size > coalesce(document.announced_bytes, document.size_bytes) then
        update rag.documents d
        set status = case when d.generation is null then 'failed' else 'indexed' end, stage = null,
            error_code = 'larger_than_announced',
            error = format('%s bytes arrived where %s were announced. Upload the file again, with its real size.',
                object_size, coalesce(document.announced_bytes, document.size_bytes))
        where d.id = document.id and d.error_code is distinct from 'larger_than_announced';
        return null;
    end if;
    insert into rag.ingest_jobs (owner_id, document_id, kind, object_version)
    values (document.owner_id, document.id, 'ingest', enqueue_stored_object.object_version)
    returning id into job_id;
    -- A duplicate whose file was replaced is a document of its own again.
    update rag.documents d
    set duplicate_of = null, status = case when d.generation is null then 'uploaded' else 'reindexing' end,
        announced_bytes = coalesce(d.announced_bytes, d.size_bytes),
        size_bytes = coalesce(object_size, d.size_bytes), error_code = null, error = null, stage = 'queued', pages_done = 0
    where d.id = document.id;
    return job_id;
end
$$;
revoke all on function rag.enqueue_stored_object(text, text, bigint) from public;
grant execute on function rag.enqueue_stored_object(text, text, bigint) to rag_worker, service_role;

-- from sql/68_refuse_second_upload.sql sha256:3f029ecfb11be0620cdf9206c8b19e000dff239d15ea86dd17919d4020518af8
-- Trigger of storage.objects, before an object or another version of it is written: refuses a second file through one upload
-- link. The link stays valid for two hours; the resumable route of Supabase Storage checks nothing else and overwrites, and
-- every route accepts it again once its object was removed. The setting storage.operation names the route; where a storage sets
-- none, the age of the document decides. The storage reports a unique_violation as 409 "The resource already exists" and keeps
-- the first file. Whoever has the secret key may replace a file, and a file that got no job may be sent again.
create or replace function rag.refuse_second_upload() returns trigger
language plpgsql
security definer -- the storage service writes objects under a role that cannot see our tables
set search_path = ''
as $$
declare
    operation constant text := coalesce(current_setting('storage.operation', true), '');
begin
    if new.version is distinct from old.version and (operation = '' or operation like '%\_signed') and exists (
        select from rag.documents d
        join rag.ingest_jobs j on j.document_id = d.id and j.kind = 'ingest' and j.object_version <> new.version
        where d.object_path = new.name and (operation <> '' or d.created_at > clock_timestamp() - interval '2 hours 10 minutes')
    ) then
        raise exception using errcode = 'unique_violation', message = 'a file has already arrived through this upload link';
    end if;
    return new;
end
$$;
revoke all on function rag.refuse_second_upload() from public;
