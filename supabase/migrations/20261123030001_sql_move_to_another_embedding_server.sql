-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/31_restart_ingest_job.sql sha256:cba679f19b287b7426ed05740974e7f91b79f28e707fcc8d15e6868f90722b08
-- Lets a claimed job start over, in a new generation, when another embedding server embedded what it had saved: all vectors of a
-- source come from one server. Returns the new generation, or null when there is nothing to start over. Returns null for a lost
-- lease, too: the next save reports it.
create or replace function rag.restart_ingest_job(job_id bigint, token uuid, server_id uuid) returns bigint
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    fresh bigint;
begin
    perform rag.lock_job_source(job_id);
    select * into job from rag.ingest_jobs j
    where j.id = job_id and j.lease_token = token and j.status = 'running' for update;
    if not exists (
        select from rag.chunk_vectors v
        where v.generation = job.generation and v.server_id <> restart_ingest_job.server_id
    ) then
        return null;
    end if;
    insert into rag.generations (owner_id, document_id, note_id) values (job.owner_id, job.document_id, job.note_id)
    returning id into fresh;
    update rag.ingest_jobs j set generation = fresh, checkpoint = '{}' where j.id = job.id;
    update rag.documents d set pages_done = 0 where d.id = job.document_id;
    delete from rag.generations g where g.id = job.generation;
    return fresh;
end
$$;
revoke all on function rag.restart_ingest_job(bigint, uuid, uuid) from public;
grant execute on function rag.restart_ingest_job(bigint, uuid, uuid) to rag_worker;

-- from sql/34_due_jobs.sql sha256:93bcaa7b577ca9c320430bff94f8a8e5521f838702c3883686e5836641b8e161
-- The jobs that a worker may claim now: those that are queued for no later time, and those whose worker let the lease expire.
-- Jobs that are marked `background` come last (rag.claim_ingest_job).
create or replace view rag.due_jobs with (security_invoker = true) as
select j.*
from rag.ingest_jobs j
where j.run_after <= clock_timestamp()
    and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()));
grant select, update on rag.due_jobs to rag_worker; -- update, because `select … for update` needs it

-- from sql/40_claim_ingest_job.sql sha256:2b022d2f72df05ab9be10ddf96f60660170465510cecf9774d8cabc418697f5f
-- Gives the caller the lease of one due job: the given one, or the one that has waited longest. Background jobs come after all
-- others, also after those that become due while a message names a background job. No row means that no job is due. The first
-- claim creates the generation that the job writes.
create or replace function rag.claim_ingest_job(job_id bigint, lease_seconds int, holder text default null)
returns setof rag.ingest_jobs
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    due record;
    job rag.ingest_jobs;
begin
    -- The source is locked before its job, as in rag.lock_job_source, but a locked source is left to the next claim.
    for due in
        select j.id, j.document_id, j.note_id from rag.due_jobs j
        where claim_ingest_job.job_id is null or j.id = claim_ingest_job.job_id or not j.background and exists (
            select from rag.ingest_jobs named where named.id = claim_ingest_job.job_id and named.background)
        order by j.background, j.run_after, j.id
        limit 100
    loop
        perform from rag.documents d where d.id = due.document_id for update skip locked;
        if not found then
            perform from rag.notes n where n.id = due.note_id for update skip locked;
            continue when not found;
        end if;
        select * into job from rag.due_jobs j where j.id = due.id for update skip locked;
        exit when found;
    end loop;
    if job.id is null then
        return;
    end if;
    if job.generation is null then
        insert into rag.generations (owner_id, document_id, note_id) values (job.owner_id, job.document_id, job.note_id)
        returning id into job.generation;
    end if;
    update rag.documents d
    set status = case when d.generation is null then 'processing' else 'reindexing' end,
        stage = 'reading', pages_done = coalesce((job.checkpoint ->> 'pages_done')::int, 0)
    where d.id = job.document_id;
    return query
    update rag.ingest_jobs j
    set status = 'running', attempts = j.attempts + 1, generation = job.generation, lease_token = gen_random_uuid(),
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds), holder = claim_ingest_job.holder
    where j.id = job.id
    returning j.*;
end
$$;
revoke all on function rag.claim_ingest_job(bigint, int, text) from public;
grant execute on function rag.claim_ingest_job(bigint, int, text) to rag_worker;

-- from sql/42_finish_ingest_job.sql sha256:5a68ca96baa8f86beb5749bc9f03e2bc5c6d7af4572abcb0cc31b22f20fca65b
-- Makes the generation that a job has written the one that search finds, and removes the earlier ones, all at once: a search
-- sees the old rows or the new ones, never both and never none. In the same moment, a new upload replaces an older document of
-- the same name and place. Returns false when the lease is lost.
-- `facts` are columns of the source: lang, embedding_server_id, and for a document page_count, title, embedding_model,
-- embedding_dim, chunking_strategy, ingestion_log, health.
create or replace function rag.finish_ingest_job(job_id bigint, token uuid, facts jsonb) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    written int;
begin
    -- Two uploads of one name that finish at once take turns, because each reads the other.
    perform pg_advisory_xact_lock(hashtextextended(d.owner_id || d.file_name, 0))
    from rag.ingest_jobs j join rag.documents d on d.id = j.document_id where j.id = job_id;
    perform rag.lock_job_source(job_id);
    update rag.ingest_jobs j set status = 'done', finished_at = clock_timestamp(), lease_token = null, error_code = null, error = null
    where j.id = job_id and j.lease_token = token and j.status = 'running'
    returning j.* into job;
    if not found then
        return false;
    end if;
    select count(*) into written from rag.chunks c where c.generation = job.generation;
    update rag.notes n
    set status = 'indexed', error_code = null, error = null, generation = job.generation, chunk_count = written,
        lang = facts ->> 'lang', embedding_server_id = (facts ->> 'embedding_server_id')::uuid, indexed_at = clock_timestamp()
    where n.id = job.note_id;
    update rag.documents d
    set status = 'indexed', stage = null, error_code = null, error = null, generation = job.generation,
        chunk_count = written, pages_done = (facts ->> 'page_count')::int, indexed_at = clock_timestamp(),
        page_count = (facts ->> 'page_count')::int, title = facts ->> 'title', lang = facts ->> 'lang',
        embedding_server_id = (facts ->> 'embedding_server_id')::uuid,
        embedding_model = facts ->> 'embedding_model', embedding_dim = (facts ->> 'embedding_dim')::int,
        chunking_strategy = facts ->> 'chunking_strategy', ingestion_log = facts -> 'ingestion_log', health = facts -> 'health'
    where d.id = job.document_id;
    -- A worker that took the job before its server was retired: questions need that server until the source is moved.
    update rag.embedding_servers s set active = true
    where s.id = (facts ->> 'embedding_server_id')::uuid and not s.active;
    if job.kind = 'ingest' then
        perform rag.supersede_versions(job.document_id);
    end if;
    delete from rag.generations g
    where (g.document_id = job.document_id or g.note_id = job.note_id) and g.id <> job.generation;
    return true;
end
$$;
revoke all on function rag.finish_ingest_job(bigint, uuid, jsonb) from public;
grant execute on function rag.finish_ingest_job(bigint, uuid, jsonb) to rag_worker;

-- from sql/45_sweep_ingest_jobs.sql sha256:a6f9be2a897850935d380825a8d49c4a11c24fbb9b58bde7cf5de39e3b56acf6
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

-- from sql/46_request_ingest_job.sql sha256:7084075c39dc667c4219f166c1c95eb4a21ce9f8d48482303349b994ac7b21da
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

-- from sql/52_request_note_job.sql sha256:666e5ade75f9f6c4c83caabde1ea782f07d85b0b74995365bc5144c9f47324d8
-- Queues one of the caller's notes again, for example after a failure; search finds the old passages until the new ones replace
-- them. An open job stays as it is and, if it was waiting, becomes due now, ahead of background jobs. Returns the
-- id of the job, or null when the note is not the caller's or has no text.
create or replace function rag.request_note_job(note_id uuid) returns bigint
language plpgsql volatile
security definer -- users may not write the queue; the owner is checked here
set search_path = pg_catalog, pg_temp
as $$
declare
    note rag.notes;
    job_id bigint;
begin
    select * into note from rag.notes n where n.id = request_note_job.note_id and n.owner_id = auth.uid() for update;
    if not found or note.status = 'empty' then
        return null;
    end if;
    update rag.ingest_jobs j set run_after = least(j.run_after, clock_timestamp()), background = false
    where j.note_id = note.id and j.status in ('queued', 'running')
    returning j.id into job_id;
    if job_id is null then
        insert into rag.ingest_jobs (owner_id, note_id, kind, object_version)
        values (note.owner_id, note.id, 'note', clock_timestamp()::text)
        returning id into job_id;
    end if;
    update rag.notes n set status = 'queued', error_code = null, error = null where n.id = note.id;
    return job_id;
end
$$;
revoke all on function rag.request_note_job(uuid) from public;
grant execute on function rag.request_note_job(uuid) to authenticated;

-- from sql/56_leaving_sources.sql sha256:4da706580d8c7ad819c3830674b603f2b2f19b7acc51aff1e26fd65d7f7c112d
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
where s.active and s.replaced_at is not null
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
where s.active and s.replaced_at is not null and n.generation is not null;

-- from sql/57_adopt_embedding_server.sql sha256:6ca06e95b3bb8b9a502992148126a03a01cddc1bfa091df2d17ed9cd5ce3d98a
-- Makes an embedding server the default, and marks the one before as replaced; rag.continue_reindexing moves the library.
-- `server` has columns of rag.embedding_servers. A row that gives the same vectors is brought up to date, otherwise there is a
-- new row. When that server already is the default, the moves that failed are tried again. The audit of the settings records
-- who did it. Returns the id of the server.
create or replace function rag.adopt_embedding_server(server jsonb, changed_by uuid) returns uuid
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    wanted rag.embedding_servers := jsonb_populate_record(null::rag.embedding_servers, server);
    before record;
    adopted uuid;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0)); -- two administrators take turns
    select s.id, s.name into before from rag.embedding_servers s where s.is_default;
    select s.id into adopted from rag.embedding_servers s
    where s.kind = wanted.kind and s.model = wanted.model and s.dimensions = wanted.dimensions
        and s.passage_prefix = wanted.passage_prefix
    order by s.is_default desc, s.active desc, s.created_at desc limit 1;

    update rag.embedding_servers s set is_default = false where s.is_default and s.id is distinct from adopted;
    update rag.embedding_servers s set replaced_at = clock_timestamp()
    where s.active and s.id is distinct from adopted and (s.replaced_at is not null or s.id = before.id);
    if adopted is null then
        insert into rag.embedding_servers (name, kind, base_url, model, dimensions, max_input_tokens, languages, batch_size,
            api_key_env, token_level, query_prefix, passage_prefix, similarity_floor, similarity_ceiling, is_default)
        select case when exists (select from rag.embedding_servers s where s.name = wanted.name)
                then format('%s (%s)', wanted.name, (select count(*) + 1 from rag.embedding_servers)) else wanted.name end,
            wanted.kind, wanted.base_url, wanted.model, wanted.dimensions, wanted.max_input_tokens, wanted.languages,
            wanted.batch_size, wanted.api_key_env, wanted.token_level, wanted.query_prefix, wanted.passage_prefix,
            wanted.similarity_floor, wanted.similarity_ceiling, true
        returning id into adopted;
    else
        update rag.embedding_servers s
        set base_url = wanted.base_url, max_input_tokens = wanted.max_input_tokens, languages = wanted.languages,
            batch_size = wanted.batch_size, api_key_env = wanted.api_key_env, token_level = wanted.token_level,
            query_prefix = wanted.query_prefix, is_default = true, active = true, replaced_at = null
        where s.id = adopted;
    end if;
    insert into rag.settings_audit (key, old_value, new_value, changed_by)
    select 'embedding_server', to_jsonb(before.name), to_jsonb(s.name), adopt_embedding_server.changed_by
    from rag.embedding_servers s where s.id = adopted;
    return adopted;
end
$$;
revoke all on function rag.adopt_embedding_server(jsonb, uuid) from public;
grant execute on function rag.adopt_embedding_server(jsonb, uuid) to rag_worker;

-- from sql/58_continue_reindexing.sql sha256:06471423ffd465260f935209b0a942fb4c702c5eb038a4669425f9cd5095b2e3
-- Moves the library from replaced embedding servers to the default one: queues up to `batch_size` of their documents and notes
-- for indexing, behind all other work, and retires a server on which nothing is left. A source that is locked or that changes
-- meanwhile is left to the next call; every call after a crash goes on where the last one stopped. Nothing moves in the first
-- `pause_seconds`, after which every process has read of the new default. Returns how many it queued.
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
        select l.* from rag.leaving_sources l where l.state = 'waiting'
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
    update rag.embedding_servers s set active = false
    where s.active and s.replaced_at < clock_timestamp() - make_interval(secs => pause_seconds)
        and not exists (select from rag.leaving_sources l where l.server_id = s.id);
    return queued;
end
$$;
revoke all on function rag.continue_reindexing(int, float8) from public;
grant execute on function rag.continue_reindexing(int, float8) to rag_worker;

-- from sql/59_describe_reindexing.sql sha256:e6dd086e943ddbf5a27e01276adf3c6633cc9eed65db4072e4e2e1e3eada78a0
-- How far the move to the default embedding server has come: how many documents and notes of all users it has indexed (`done`),
-- how many a replaced server still has (`remaining`), and how many of these cannot be moved (`failed`). Null when none is left.
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
        'remaining', count(*), 'failed', count(*) filter (where l.state = 'failed'))
    from rag.leaving_sources l
    having count(*) > 0
$$;
revoke all on function rag.describe_reindexing() from public;
grant execute on function rag.describe_reindexing() to rag_worker;
