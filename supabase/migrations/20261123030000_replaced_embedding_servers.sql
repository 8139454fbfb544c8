-- What it takes to move a library to another embedding model while it is searched.

-- When another server became the default in place of this one. What this one has indexed is indexed again with the default; it
-- is active until nothing is left. Workers index with it a little longer, until every process has read of the new default.
alter table rag.embedding_servers add column replaced_at timestamptz;

-- The server whose vectors search finds, as documents have it.
alter table rag.notes add column embedding_server_id uuid references rag.embedding_servers;
update rag.notes n
set embedding_server_id = (
    select v.server_id from rag.chunk_vectors v join rag.embedding_servers s on s.id = v.server_id
    where v.generation = n.generation limit 1)
where n.generation is not null;

create index documents_embedding_server on rag.documents (embedding_server_id)
    where generation is not null and superseded_by is null and duplicate_of is null;
create index notes_embedding_server on rag.notes (embedding_server_id) where generation is not null;

-- Work that nobody waits for: a worker takes it when nothing else is due.
alter table rag.ingest_jobs add column background boolean not null default false;
drop index rag.ingest_jobs_due;
create index ingest_jobs_due on rag.ingest_jobs (background, run_after) where status in ('queued', 'running');
create index ingest_jobs_failed_moves on rag.ingest_jobs (document_id) where background and status in ('failed', 'dead');
