-- Makes the generation that a job has written the one that search finds, and removes the earlier ones, all at once: a search
-- sees the old rows or the new ones, never both and never none. In the same moment, a new upload replaces an older document of
-- the same name and place. Returns false when the lease is lost.
-- `facts` are columns of the source: lang, embedding_server_id, and for a document page_count, title, embedding_model,
-- embedding_dim, chunking_strategy, ingestion_log, health. `translated_langs` are the languages of passages that shall be translated
-- from now on; a note that is being written waits a minute.
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
    insert into rag.translation_jobs (generation, owner_id, langs, run_after)
    select job.generation, job.owner_id, l.langs, clock_timestamp() + make_interval(mins => (job.note_id is not null)::int)
    from (select array(select jsonb_array_elements_text(facts -> 'translated_langs')) as langs) l
    where l.langs <> '{}';
    delete from rag.generations g
    where (g.document_id = job.document_id or g.note_id = job.note_id) and g.id <> job.generation;
    return true;
end
$$;
revoke all on function rag.finish_ingest_job(bigint, uuid, jsonb) from public;
grant execute on function rag.finish_ingest_job(bigint, uuid, jsonb) to rag_worker;
