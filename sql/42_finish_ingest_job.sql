-- Flips a document to the generation its job has written and removes the generations before it, all at once: a search sees
-- the old rows or the new ones, never both and never none. False means that the lease is lost.
-- `facts` are columns of the document: page_count, title, lang, sha256, embedding_server_id, embedding_model, embedding_dim,
-- chunking_strategy, ingestion_log, health.
create or replace function rag.finish_ingest_job(job_id bigint, token uuid, facts jsonb) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    written int;
begin
    perform from rag.documents d where d.id = (select j.document_id from rag.ingest_jobs j where j.id = job_id) for update;
    update rag.ingest_jobs j set status = 'done', finished_at = clock_timestamp(), lease_token = null, error_code = null, error = null
    where j.id = job_id and j.lease_token = token and j.status = 'running'
    returning j.* into job;
    if not found then
        return false;
    end if;
    select count(*) into written from rag.chunks c where c.generation = job.generation;
    update rag.documents d
    set status = 'indexed', stage = null, error_code = null, error = null, generation = job.generation,
        chunk_count = written, pages_done = (facts ->> 'page_count')::int, indexed_at = clock_timestamp(),
        page_count = (facts ->> 'page_count')::int, title = facts ->> 'title', lang = facts ->> 'lang',
        sha256 = facts ->> 'sha256', embedding_server_id = (facts ->> 'embedding_server_id')::uuid,
        embedding_model = facts ->> 'embedding_model', embedding_dim = (facts ->> 'embedding_dim')::int,
        chunking_strategy = facts ->> 'chunking_strategy', ingestion_log = facts -> 'ingestion_log', health = facts -> 'health'
    where d.id = job.document_id;
    delete from rag.generations g where g.document_id = job.document_id and g.id <> job.generation;
    return true;
end
$$;
revoke all on function rag.finish_ingest_job(bigint, uuid, jsonb) from public;
grant execute on function rag.finish_ingest_job(bigint, uuid, jsonb) to rag_worker;
