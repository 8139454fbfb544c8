-- Ends the move of the library: what waits stays with the server that indexed it, what has moved stays with the default server,
-- and what a worker is moving at this moment still moves. Returns how many documents and notes stay behind.
create or replace function rag.cancel_reindexing() returns int
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    staying int;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0));
    select count(*) into staying from rag.leaving_sources l;
    with dropped as (
        delete from rag.ingest_jobs j where j.background and j.status = 'queued' returning j.document_id
    )
    update rag.documents d set status = 'indexed', stage = null, error_code = null, error = null
    from dropped
    where d.id = dropped.document_id and d.status = 'reindexing';
    update rag.embedding_servers s set replaced_at = null, paused_at = null
    where exists (select from rag.leaving_sources l where l.server_id = s.id);
    return staying;
end
$$;
revoke all on function rag.cancel_reindexing() from public;
grant execute on function rag.cancel_reindexing() to rag_worker;
