-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/56_leaving_sources.sql sha256:a51622aef6ff6ab5222181a803bf8b8ea3ae52394d69c6ef1b23f1ddf6851efd
-- The documents and notes that a replaced embedding server has indexed, with the state of their move to the default server:
-- 'open' with a job that will move them, 'failed' when the job since the replacement failed or the file is gone, or 'waiting'.
-- The trash is included, because restoring from it needs no new embeddings. Older versions of documents are not: search never
-- finds them again.
create or replace view rag.leaving_sources with (security_invoker = true) as
select d.id as document_id, null::uuid as note_id, d.owner_id, s.id as server_id, s.replaced_at, o.version as object_version,
    case
        when exists (select from rag.ingest_jobs j where j.document_id = d.id and j.status in ('queued', 'running')) then 'open'
        when o.version is null or exists (
            select from rag.ingest_jobs j
            where j.document_id = d.id and j.background and j.status in ('failed', 'dead') and j.created_at >= s.replaced_at)
            then 'failed'
        else 'waiting' end as state
from rag.embedding_servers s
join rag.documents d on d.embedding_server_id = s.id
left join storage.objects o on o.bucket_id = 'documents' and o.name = d.object_path
where s.replaced_at is not null
    and d.generation is not null and d.superseded_by is null and d.duplicate_of is null
union all
select null, n.id, n.owner_id, s.id, s.replaced_at, null,
    case
        when exists (select from rag.ingest_jobs j where j.note_id = n.id and j.status in ('queued', 'running')) then 'open'
        when exists (
            select from rag.ingest_jobs j
            where j.note_id = n.id and j.background and j.status in ('failed', 'dead') and j.created_at >= s.replaced_at)
            then 'failed'
        else 'waiting' end
from rag.embedding_servers s
join rag.notes n on n.embedding_server_id = s.id
where s.replaced_at is not null and n.generation is not null;

-- from sql/57_adopt_embedding_server.sql sha256:c3c4ac44ed1e1b5efa35bec55c9999237d499d420599c89b24dbfbe965631c9e
-- Makes an embedding server the default, and marks the others as replaced; rag.continue_reindexing moves the library.
-- `server` has columns of rag.embedding_servers. A row that gives the same vectors is brought up to date, otherwise there is a
-- new row. When that server already is the default, the moves that failed are tried again. The audit of the settings records
-- who did it. Returns the id of the server.
create or replace function rag.adopt_embedding_server(server jsonb, changed_by uuid) returns uuid
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    wanted rag.embedding_servers := jsonb_populate_record(null::rag.embedding_servers, server);
    adopted uuid;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0)); -- two administrators take turns
    select s.id into adopted from rag.embedding_servers s
    where s.kind = wanted.kind and s.model = wanted.model and s.dimensions = wanted.dimensions
        and s.passage_prefix = wanted.passage_prefix
    order by s.is_default desc, s.active desc, s.created_at desc limit 1;
    if adopted is null then
        insert into rag.embedding_servers (name, kind, base_url, model, dimensions, max_input_tokens, languages, batch_size,
            api_key_env, token_level, query_prefix, passage_prefix, similarity_floor, similarity_ceiling, similarity_scales,
            calibrated_passages)
        select case when exists (select from rag.embedding_servers s where s.name = wanted.name)
                then format('%s (%s)', wanted.name, (select count(*) + 1 from rag.embedding_servers)) else wanted.name end,
            wanted.kind, wanted.base_url, wanted.model, wanted.dimensions, wanted.max_input_tokens, wanted.languages,
            wanted.batch_size, wanted.api_key_env, wanted.token_level, wanted.query_prefix, wanted.passage_prefix,
            wanted.similarity_floor, wanted.similarity_ceiling, wanted.similarity_scales, wanted.calibrated_passages
        returning id into adopted;
    else
        update rag.embedding_servers s
        set base_url = wanted.base_url, max_input_tokens = wanted.max_input_tokens, languages = wanted.languages,
            batch_size = wanted.batch_size, api_key_env = wanted.api_key_env, token_level = wanted.token_level,
            query_prefix = wanted.query_prefix, managed = false
        where s.id = adopted;
    end if;
    perform rag.move_to_embedding_server(adopted, changed_by);
    return adopted;
end
$$;
revoke all on function rag.adopt_embedding_server(jsonb, uuid) from public;
grant execute on function rag.adopt_embedding_server(jsonb, uuid) to rag_worker;

-- from sql/68_move_to_embedding_server.sql sha256:cb751cf8ba8af1d595851060ad11b22f7369c66942b3cf7f2137d9f4df863391
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
    update rag.embedding_servers s set replaced_at = clock_timestamp(), paused_at = null
    where s.id <> move_to_embedding_server.server_id and (
        s.active
        or exists (
            select from rag.documents d
            where d.embedding_server_id = s.id and d.generation is not null and d.superseded_by is null
                and d.duplicate_of is null)
        or exists (select from rag.notes n where n.embedding_server_id = s.id and n.generation is not null));
    update rag.embedding_servers s set is_default = true, active = true, replaced_at = null, paused_at = null
    where s.id = move_to_embedding_server.server_id;
    insert into rag.settings_audit (key, old_value, new_value, changed_by)
    select 'embedding_server', to_jsonb(before), to_jsonb(s.name), move_to_embedding_server.changed_by
    from rag.embedding_servers s where s.id = move_to_embedding_server.server_id;
end
$$;
revoke all on function rag.move_to_embedding_server(uuid, uuid) from public;
grant execute on function rag.move_to_embedding_server(uuid, uuid) to rag_worker;

-- from sql/69_follow_environment.sql sha256:88f30e864fc69bdbf6ee12e5c07d7a30e2fb35ad9c9218a7b2a61a1ae252127e
-- Makes the server that the environment describes the default, if the present one has indexed nothing yet and was not set up by
-- an administrator. The present one is switched off: no vector needs it. Returns whether the default changed.
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
    return true;
end
$$;
revoke all on function rag.follow_environment(jsonb) from public;
grant execute on function rag.follow_environment(jsonb) to rag_worker;
