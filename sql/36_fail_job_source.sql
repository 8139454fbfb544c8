-- Records on a document or a note why its job failed, and removes what the job had written. A source that was indexed before
-- stays searchable as it was. A note of punctuation alone is not a failure: it is empty, and its older text leaves search. The
-- caller has locked the source.
create or replace function rag.fail_job_source(job_id bigint, code text, message text) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
begin
    select * into job from rag.ingest_jobs j where j.id = job_id;
    update rag.documents d
    set status = case when d.generation is null then 'failed' else 'indexed' end, stage = null, error_code = code, error = message,
        ingestion_log = case when d.generation is null
            then jsonb_build_object('error', message, 'ingested_at', clock_timestamp()) else d.ingestion_log end
    where d.id = job.document_id;
    if code in ('empty', 'no_text') then
        update rag.notes n
        set status = 'empty', generation = null, chunk_count = 0, lang = null, error_code = null, error = null
        where n.id = job.note_id;
        delete from rag.generations g where g.note_id = job.note_id;
    else
        update rag.notes n set status = 'failed', error_code = code, error = message where n.id = job.note_id;
    end if;
    delete from rag.generations g
    where g.id = job.generation
        and not exists (select from rag.documents d where d.generation = g.id)
        and not exists (select from rag.notes n where n.generation = g.id);
end
$$;
revoke all on function rag.fail_job_source(bigint, text, text) from public;
grant execute on function rag.fail_job_source(bigint, text, text) to rag_worker;
