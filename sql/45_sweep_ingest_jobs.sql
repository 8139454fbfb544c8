-- Repairs what a crash or a lost message left behind:
-- * jobs whose leases expired too often become dead, and their documents or notes fail. A lost worker is tolerated twice as
--   often as a failure, because most lost workers were merely stopped;
-- * stored objects without a job get one;
-- * uploads that never arrived fail, long after their signed URL has expired;
-- * unfinished generations that no open job will finish are removed.
-- Returns the counts, the ids of at most 100 due jobs (background jobs last, otherwise oldest first), and the paths of at most 100
-- stored objects that the caller must remove: files of deleted documents, duplicates, and files larger than announced.
create or replace function rag.sweep_ingest_jobs(max_attempts int) returns jsonb
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    lost record;
    dead int := 0;
    enqueued int;
    expired int;
    orphans int;
    due jsonb;
    objects jsonb;
    message constant text :=
        'The document could not be processed: every attempt was interrupted. Try again, or split the file.';
begin
    for lost in
        select j.id from rag.ingest_jobs j
        where j.status = 'running' and j.lease_expires_at < clock_timestamp() and j.attempts >= 2 * max_attempts
        order by j.document_id, j.note_id
    loop
        perform rag.lock_job_source(lost.id);
        update rag.ingest_jobs j
        set status = 'dead', lease_token = null, error_code = 'worker_lost', error = message, finished_at = clock_timestamp()
        where j.id = lost.id and j.status = 'running' and j.lease_expires_at < clock_timestamp();
        continue when not found;
        perform rag.fail_job_source(lost.id, 'worker_lost', message);
        dead := dead + 1;
    end loop;

    select count(rag.enqueue_stored_object(o.name, o.version, (o.metadata ->> 'size')::bigint)) into enqueued
    from storage.objects o
    join rag.documents d on d.object_path = o.name
    where o.bucket_id = 'documents' and d.duplicate_of is null
        and not exists (
            select from rag.ingest_jobs j where j.document_id = d.id and j.kind = 'ingest' and j.object_version = o.version);

    update rag.documents d
    set status = 'failed', error_code = 'upload_expired', error = 'The file never arrived. Upload it again.'
    where d.status = 'awaiting_upload' and d.created_at < clock_timestamp() - interval '3 hours';
    get diagnostics expired = row_count;

    delete from rag.generations g
    where not exists (select from rag.documents d where d.generation = g.id)
        and not exists (select from rag.notes n where n.generation = g.id)
        and not exists (select from rag.ingest_jobs j where j.generation = g.id and j.status in ('queued', 'running'));
    get diagnostics orphans = row_count;

    select coalesce(jsonb_agg(j.id order by j.background, j.run_after), '[]') into due
    from (
        select q.id, q.background, q.run_after from rag.due_jobs q order by q.background, q.run_after limit 100
    ) j;

    select coalesce(jsonb_agg(s.name), '[]') into objects
    from (
        select o.name from storage.objects o
        where o.bucket_id = 'documents' and o.name ~ '^[0-9a-f-]{36}/[0-9a-f-]{36}/original\.[a-z]+$'
            and not exists (
                select from rag.documents d
                where d.object_path = o.name and d.duplicate_of is null
                    and d.error_code is distinct from 'larger_than_announced'
            )
        order by o.created_at limit 100
    ) s;
    return jsonb_build_object('dead', dead, 'enqueued', enqueued, 'expired', expired, 'orphans', orphans, 'due', due,
        'objects', objects);
end
$$;
revoke all on function rag.sweep_ingest_jobs(int) from public;
grant execute on function rag.sweep_ingest_jobs(int) to rag_worker;
