-- Gives the caller the lease of one due translation: of the given generation, or the one that has waited longest. Only those of
-- generations that a search can find are due; `langs` are the languages of passages that are to be translated now.
create or replace function rag.claim_translation(generation bigint, langs text[], lease_seconds int)
returns setof rag.translation_jobs
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    due bigint;
begin
    select j.generation into due
    from rag.translation_jobs j
    where j.run_after <= clock_timestamp() and j.status in ('queued', 'running')
        and (j.status = 'queued' or j.lease_expires_at < clock_timestamp())
        and j.generation = coalesce(claim_translation.generation, j.generation)
        and (exists (select from rag.documents d where d.generation = j.generation and d.superseded_by is null)
            or exists (select from rag.notes n where n.generation = j.generation and n.trashed_at is null))
    order by j.run_after, j.generation
    limit 1
    for update skip locked;
    return query
    update rag.translation_jobs j
    set status = 'running', langs = claim_translation.langs, attempts = j.attempts + 1, lease_token = gen_random_uuid(),
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
    where j.generation = due
    returning j.*;
end
$$;
revoke all on function rag.claim_translation(bigint, text[], int) from public;
grant execute on function rag.claim_translation(bigint, text[], int) to rag_worker;
