-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/69_follow_environment.sql sha256:7b134e2abc62be1309db147d9fbffd597afccb3583a2f33167e7765feb25a96b
-- Makes the server that the environment describes the default, if the present one has indexed nothing yet and was not set up by
-- an administrator. The present one is switched off: no vector needs it, and what it refused is tried again. Returns whether the default changed.
create or replace function rag.follow_environment(server jsonb) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    unused uuid;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0));
    select s.id into unused from rag.embedding_servers s
    where s.is_default and not s.managed
        and not exists (select from rag.documents d where d.embedding_server_id = s.id)
        and not exists (select from rag.notes n where n.embedding_server_id = s.id);
    if unused is null then
        return false;
    end if;
    -- A worker that is indexing with it at this moment switches it on again, and what it has indexed moves.
    update rag.embedding_servers s set active = false where s.id = unused;
    perform rag.adopt_embedding_server(server, null);
    update rag.embedding_servers s set replaced_at = clock_timestamp() where s.id = unused and not s.is_default;
    perform rag.retry_rejected_sources();
    return true;
end
$$;
revoke all on function rag.follow_environment(jsonb) from public;
grant execute on function rag.follow_environment(jsonb) to rag_worker;

-- from sql/71_retry_rejected_sources.sql sha256:465bd1c3300cefb61a0f4db80374e056045d91447ebb0bc6eb54e7a3810b38fd
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
