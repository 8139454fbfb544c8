-- The ingestion queue. The transaction that stores a file or saves a note also writes its job, so no job is lost or written twice.
create table rag.ingest_jobs (
    id bigint generated always as identity primary key,
    owner_id uuid not null,
    document_id uuid references rag.documents on delete cascade,
    note_id uuid references rag.notes on delete cascade,
    kind text not null check (kind in ('ingest', 'reindex', 'note')),
    object_version text not null,
    status text not null default 'queued' check (status in ('queued', 'running', 'done', 'failed', 'dead', 'superseded')),
    -- Claims since the last saved progress: only a job that makes no progress uses them up, a long document does not.
    attempts int not null default 0,
    run_after timestamptz not null default clock_timestamp(),
    lease_token uuid,
    lease_expires_at timestamptz,
    holder text, -- the process that holds the lease, "host:pid", so that the next worker on that host can tell whether it died
    generation bigint references rag.generations on delete set null,
    checkpoint jsonb not null default '{}',
    error_code text,
    error text,
    created_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    check (num_nonnulls(document_id, note_id) = 1 and (kind = 'note') = (note_id is not null))
);
create unique index ingest_jobs_one_per_version on rag.ingest_jobs (document_id, object_version) where kind = 'ingest';
create unique index ingest_jobs_one_open on rag.ingest_jobs (document_id) where status in ('queued', 'running');
create unique index ingest_jobs_one_open_note on rag.ingest_jobs (note_id) where status in ('queued', 'running');
create index ingest_jobs_due on rag.ingest_jobs (run_after) where status in ('queued', 'running');
create index ingest_jobs_given_up on rag.ingest_jobs (finished_at) where status in ('dead', 'failed');
create index ingest_jobs_note on rag.ingest_jobs (note_id) where note_id is not null;
create index ingest_jobs_generation on rag.ingest_jobs (generation);
