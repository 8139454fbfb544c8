-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/34_due_jobs.sql sha256:41d4aac96ce19b9545fd8095cb33851323125d8b2925ea9cd283a37209f6cb85
-- The jobs that a worker may claim now: those that are queued for no later time, and those whose worker let the lease expire.
-- Jobs that are marked `background` come last (rag.claim_ingest_job); while the move of the library is paused, none of them is due.
create or replace view rag.due_jobs with (security_invoker = true) as
select j.*
from rag.ingest_jobs j
where j.run_after <= clock_timestamp()
    and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()))
    and not (j.background and exists (
        select from rag.embedding_servers s where s.paused_at is not null and s.replaced_at is not null));
grant select, update on rag.due_jobs to rag_worker; -- update, because `select … for update` needs it

-- from sql/58_continue_reindexing.sql sha256:f3689a8b9980b34e4ca58e419fed2d70a171213860815fef55cd91afc7e4da7e
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

-- from sql/59_describe_reindexing.sql sha256:b79cbe1107572345dd1c45b14c66f9af7d39769815281905fe2be309cff5af79
-- How far the move to the default embedding server has come: how many documents and notes of all users it has indexed (`done`),
-- how many a replaced server still has (`remaining`), how many of these cannot be moved (`failed`), and whether an administrator
-- has paused the move. Null when none is left.
create or replace function rag.describe_reindexing() returns jsonb
language sql stable
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'done', (
            select count(*) from rag.documents d join rag.embedding_servers s on s.id = d.embedding_server_id and s.is_default
            where d.generation is not null and d.superseded_by is null and d.duplicate_of is null
        ) + (
            select count(*) from rag.notes n join rag.embedding_servers s on s.id = n.embedding_server_id and s.is_default
            where n.generation is not null
        ),
        'remaining', count(*), 'failed', count(*) filter (where l.state = 'failed'),
        'paused', exists (
            select from rag.embedding_servers s where s.paused_at is not null and s.replaced_at is not null))
    from rag.leaving_sources l
    having count(*) > 0
$$;
revoke all on function rag.describe_reindexing() from public;
grant execute on function rag.describe_reindexing() to rag_worker;

-- from sql/68_move_to_embedding_server.sql sha256:30a951be3014c1415ee90614935bcb18701f85149052c9fb46b00dda555eafc2
-- Makes a registered server the default, and marks every other one that is active or holds documents or notes as replaced, so
-- that rag.continue_reindexing moves the whole library to it. Moves that failed or were paused begin again. The audit of the
-- settings records who did it.
create or replace function rag.move_to_embedding_server(server_id uuid, changed_by uuid) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    before text;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0)); -- two administrators take turns
    select s.name into before from rag.embedding_servers s where s.is_default;
    update rag.embedding_servers s set is_default = false where s.is_default and s.id <> move_to_embedding_server.server_id;
    update rag.embedding_servers s set paused_at = null where s.paused_at is not null;
    update rag.embedding_servers s set replaced_at = clock_timestamp()
    where s.id <> move_to_embedding_server.server_id and (
        s.active
        or exists (
            select from rag.documents d
            where d.embedding_server_id = s.id and d.generation is not null and d.superseded_by is null
                and d.duplicate_of is null)
        or exists (select from rag.notes n where n.embedding_server_id = s.id and n.generation is not null));
    update rag.embedding_servers s set is_default = true, active = true, replaced_at = null
    where s.id = move_to_embedding_server.server_id;
    insert into rag.settings_audit (key, old_value, new_value, changed_by)
    select 'embedding_server', to_jsonb(before), to_jsonb(s.name), move_to_embedding_server.changed_by
    from rag.embedding_servers s where s.id = move_to_embedding_server.server_id;
end
$$;
revoke all on function rag.move_to_embedding_server(uuid, uuid) from public;
grant execute on function rag.move_to_embedding_server(uuid, uuid) to rag_worker;

-- from sql/70_cancel_reindexing.sql sha256:2e457cce57e779cbc44bb88f06ee5c3b9d320429c7b8492a4196e33726ec238c
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
