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
