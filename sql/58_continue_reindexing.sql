-- Moves the library from replaced embedding servers to the default one: queues up to `batch_size` of their documents and notes
-- for indexing, behind all other work, and retires a server on which nothing is left. A source that is locked or that changes
-- meanwhile is left to the next call; every call after a crash goes on where the last one stopped. Nothing moves in the first
-- `pause_seconds`, after which every process has read of the new default, nor while the move is paused. Returns how many it queued.
create or replace function rag.continue_reindexing(batch_size int, pause_seconds float8) returns int
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    source record;
    queued int := 0;
begin
    for source in
        select l.* from rag.leaving_sources l
        where l.state = 'waiting' and not exists (
            select from rag.embedding_servers s where s.paused_at is not null and s.replaced_at is not null)
        order by l.replaced_at, l.document_id, l.note_id limit batch_size
    loop
        -- The source is locked before its job, as everywhere. It may have been moved since the loop began.
        perform from rag.documents d
        where d.id = source.document_id and d.embedding_server_id = source.server_id for update skip locked;
        if not found then
            perform from rag.notes n
            where n.id = source.note_id and n.embedding_server_id = source.server_id and n.generation is not null
            for update skip locked;
            continue when not found;
        end if;
        insert into rag.ingest_jobs (owner_id, document_id, note_id, kind, object_version, background, run_after)
        select source.owner_id, source.document_id, source.note_id,
            case when source.note_id is null then 'reindex' else 'note' end,
            case when source.note_id is null then source.object_version else clock_timestamp()::text end, true,
            greatest(clock_timestamp(), source.replaced_at + make_interval(secs => pause_seconds))
        on conflict do nothing; -- it was queued since the loop began
        if found then
            queued := queued + 1;
        end if;
    end loop;
    update rag.embedding_servers s set active = false, paused_at = null
    where s.active and s.replaced_at < clock_timestamp() - make_interval(secs => pause_seconds)
        and not exists (select from rag.leaving_sources l where l.server_id = s.id);
    return queued;
end
$$;
revoke all on function rag.continue_reindexing(int, float8) from public;
grant execute on function rag.continue_reindexing(int, float8) to rag_worker;
