-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/77_request_translation.sql sha256:1cbe7fc6475b9332a580079114e068239f05887c094126b763bd119939f889d7
-- Queues the translation of one of the caller's documents again, with the passages that the translator gave nothing for. A
-- translation that waits becomes due. Returns the generation, or null when there is nothing to translate.
create or replace function rag.request_translation(document_id uuid) returns bigint
language plpgsql volatile
security definer -- users may not write the queue; the owner is checked here
set search_path = pg_catalog, pg_temp
as $$
declare
    found_generation bigint;
begin
    update rag.translation_jobs j
    set status = case j.status when 'running' then 'running' else 'queued' end, attempts = 0, run_after = clock_timestamp(),
        finished_at = null, error_code = null, error = null
    from rag.documents d
    where d.id = request_translation.document_id and d.owner_id = auth.uid() and j.generation = d.generation
    returning j.generation into found_generation;
    delete from rag.chunk_translations t where t.generation = found_generation and t.text is null;
    return found_generation;
end
$$;
revoke all on function rag.request_translation(uuid) from public;
grant execute on function rag.request_translation(uuid) to authenticated;
