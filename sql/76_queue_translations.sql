-- Queues the translation of sources that were indexed before it was switched on, or for more languages than then, and of those
-- that failed more than an hour ago: at most `row_count` in a call. Returns those that are due.
create or replace function rag.queue_translations(langs text[], row_count int) returns setof bigint
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into rag.translation_jobs (generation, owner_id, langs)
    select s.generation, s.owner_id, queue_translations.langs
    from (
        select d.generation, d.owner_id from rag.documents d where d.generation is not null and d.superseded_by is null
        union all
        select n.generation, n.owner_id from rag.notes n where n.generation is not null and n.trashed_at is null
    ) s
    where not exists (select from rag.translation_jobs j where j.generation = s.generation)
    limit row_count
    on conflict do nothing;
    update rag.translation_jobs j
    set status = 'queued', attempts = 0, run_after = clock_timestamp(), finished_at = null
    where j.status = 'done' and not queue_translations.langs <@ j.langs
        or j.status = 'failed' and j.finished_at < clock_timestamp() - interval '1 hour';
    return query
    select j.generation from rag.translation_jobs j
    where j.status in ('queued', 'running') and j.run_after <= clock_timestamp()
        and (j.status = 'queued' or j.lease_expires_at < clock_timestamp())
    order by j.run_after
    limit 10;
end
$$;
revoke all on function rag.queue_translations(text[], int) from public;
grant execute on function rag.queue_translations(text[], int) to rag_worker;
