-- Puts right what a crash or a lost message left: leases that expired too often become dead jobs and failed documents,
-- stored objects without a job get one, uploads that never came are given up after a day, and unfinished generations that
-- no job will finish are removed. Returns counts and the ids of the jobs that are due, oldest first, at most 100.
create or replace function rag.sweep_ingest_jobs(max_attempts int) returns jsonb
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    dead int;
    enqueued int;
    expired int;
    orphans int;
    due jsonb;
begin
    with exhausted as materialized (
        select j.id, j.document_id
        from rag.ingest_jobs j join rag.documents d on d.id = j.document_id
        where j.status = 'running' and j.lease_expires_at < clock_timestamp() and j.attempts >= max_attempts
        order by d.id
        for update of d, j skip locked
    ), buried as (
        update rag.ingest_jobs j
        set status = 'dead', lease_token = null, error_code = 'worker_lost', finished_at = clock_timestamp(),
            error = 'The document could not be processed: every attempt ended without an answer. Try again, or split the file.'
        from exhausted e where j.id = e.id
        returning j.document_id, j.error_code, j.error
    ), failed as (
        update rag.documents d
        set status = case when d.generation is null then 'failed' else 'indexed' end, stage = null,
            error_code = b.error_code, error = b.error
        from buried b where d.id = b.document_id
        returning 1
    )
    select count(*) into dead from failed;

    select count(rag.enqueue_stored_object(o.name, o.version, (o.metadata ->> 'size')::bigint)) into enqueued
    from storage.objects o
    join rag.documents d on d.object_path = o.name
    where o.bucket_id = 'documents'
        and not exists (select from rag.ingest_jobs j where j.document_id = d.id and j.kind = 'ingest' and j.object_version = o.version);

    update rag.documents d
    set status = 'failed', error_code = 'upload_expired', error = 'The file never arrived. Upload it again.'
    where d.status = 'awaiting_upload' and d.created_at < clock_timestamp() - interval '1 day';
    get diagnostics expired = row_count;

    delete from rag.generations g
    where not exists (select from rag.documents d where d.generation = g.id)
        and not exists (select from rag.notes n where n.generation = g.id)
        and not exists (select from rag.ingest_jobs j where j.generation = g.id and j.status in ('queued', 'running'));
    get diagnostics orphans = row_count;

    select coalesce(jsonb_agg(j.id order by j.run_after), '[]') into due
    from (
        select q.id, q.run_after from rag.ingest_jobs q
        where q.run_after <= clock_timestamp()
            and (q.status = 'queued' or (q.status = 'running' and q.lease_expires_at < clock_timestamp()))
        order by q.run_after limit 100
    ) j;
    return jsonb_build_object('dead', dead, 'enqueued', enqueued, 'expired', expired, 'orphans', orphans, 'due', due);
end
$$;
revoke all on function rag.sweep_ingest_jobs(int) from public;
grant execute on function rag.sweep_ingest_jobs(int) to rag_worker;
