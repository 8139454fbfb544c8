-- Queues every document and note of all users again whose indexing ended because an embedding server refused it or did not answer,
-- once that server has been corrected. What is locked at this moment is left out. Returns how many it queued.
create or replace function rag.retry_rejected_sources() returns int
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    document record;
    note record;
    queued int := 0;
begin
    for document in
        select d.id, d.owner_id, d.generation, o.version
        from rag.documents d join storage.objects o on o.bucket_id = 'documents' and o.name = d.object_path
        where d.status = 'failed' and d.error_code like 'model\_%' and o.version is not null
            and not exists (select from rag.ingest_jobs j where j.document_id = d.id and j.status in ('queued', 'running'))
        for update of d skip locked
    loop
        insert into rag.ingest_jobs (owner_id, document_id, kind, object_version)
        values (document.owner_id, document.id, 'reindex', document.version);
        update rag.documents d
        set status = case when d.generation is null then 'uploaded' else 'reindexing' end, stage = 'queued', pages_done = 0,
            error_code = null, error = null
        where d.id = document.id;
        queued := queued + 1;
    end loop;
    for note in
        select n.id, n.owner_id from rag.notes n
        where n.status = 'failed' and n.error_code like 'model\_%'
            and not exists (select from rag.ingest_jobs j where j.note_id = n.id and j.status in ('queued', 'running'))
        for update skip locked
    loop
        insert into rag.ingest_jobs (owner_id, note_id, kind, object_version)
        values (note.owner_id, note.id, 'note', clock_timestamp()::text);
        update rag.notes n set status = 'queued', error_code = null, error = null where n.id = note.id;
        queued := queued + 1;
    end loop;
    return queued;
end
$$;
revoke all on function rag.retry_rejected_sources() from public;
grant execute on function rag.retry_rejected_sources() to rag_worker;
