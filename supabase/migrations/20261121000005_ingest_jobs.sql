-- One job per stored object version, written by the same transaction that stored it: it cannot be lost or doubled.
create table rag.ingest_jobs (
    id bigint generated always as identity primary key,
    owner_id uuid not null,
    document_id uuid not null references rag.documents on delete cascade,
    kind text not null check (kind in ('ingest', 'reindex')),
    object_version text not null,
    status text not null default 'queued' check (status in ('queued', 'running', 'done', 'failed', 'dead', 'superseded')),
    -- Claims since the last saved progress: a worker that gets nowhere runs out of them, a long document does not.
    attempts int not null default 0,
    run_after timestamptz not null default clock_timestamp(),
    lease_token uuid,
    lease_expires_at timestamptz,
    generation bigint references rag.generations on delete set null,
    checkpoint jsonb not null default '{}',
    error_code text,
    error text,
    created_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz
);
create unique index ingest_jobs_one_per_version on rag.ingest_jobs (document_id, object_version) where kind = 'ingest';
create unique index ingest_jobs_one_open on rag.ingest_jobs (document_id) where status in ('queued', 'running');
create index ingest_jobs_due on rag.ingest_jobs (run_after) where status in ('queued', 'running');
create index ingest_jobs_generation on rag.ingest_jobs (generation);

-- Enqueues the ingestion of a stored object; repeating it for the same version does nothing.
-- Called by the trigger below, by finalize and by the sweeper. Returns the job, or null when the object has no document.
create function rag.enqueue_stored_object(object_path text, object_version text, object_size bigint) returns bigint
language plpgsql
security definer -- the storage service and users reach the queue only through this door
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
    select j.id into job_id from rag.ingest_jobs j
    where j.document_id = document.id and j.kind = 'ingest' and j.object_version = enqueue_stored_object.object_version;
    if found then
        return job_id;
    end if;
    update rag.ingest_jobs j set status = 'superseded', finished_at = clock_timestamp(), lease_token = null
    where j.document_id = document.id and j.status in ('queued', 'running');
    insert into rag.ingest_jobs (owner_id, document_id, kind, object_version)
    values (document.owner_id, document.id, 'ingest', enqueue_stored_object.object_version)
    returning id into job_id;
    update rag.documents d
    set status = case when d.generation is null then 'uploaded' else 'reindexing' end,
        size_bytes = coalesce(object_size, d.size_bytes), error_code = null, error = null, stage = 'queued', pages_done = 0
    where d.id = document.id;
    return job_id;
end
$$;
revoke all on function rag.enqueue_stored_object(text, text, bigint) from public;
grant execute on function rag.enqueue_stored_object(text, text, bigint) to rag_worker, service_role;

create function rag.on_object_stored() returns trigger
language plpgsql
security definer -- the storage service writes objects under a role that cannot see our tables
set search_path = ''
as $$
begin
    perform rag.enqueue_stored_object(new.name, new.version, (new.metadata ->> 'size')::bigint);
    return new;
exception when others then
    -- An upload must never fail because of us: the sweeper finds the object without a job.
    raise warning 'ingestion of % was not enqueued: %', new.name, sqlerrm;
    return new;
end
$$;
revoke all on function rag.on_object_stored() from public;

insert into storage.buckets (id, name, public) values ('documents', 'documents', false) on conflict (id) do nothing;
create trigger rag_on_object_stored after insert or update of version on storage.objects
    for each row when (new.bucket_id = 'documents') execute function rag.on_object_stored();
