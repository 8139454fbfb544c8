-- Ends a run of a translation: done without a `code`, and otherwise failed, or queued again for after `wait_seconds` where these
-- are given. The document is ready whatever happens here. Returns the new status, or null when the lease is lost.
create or replace function rag.end_translation(
    generation bigint, token uuid, code text default null, message text default null, wait_seconds float8 default null
) returns text
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    update rag.translation_jobs j
    set status = case when wait_seconds is not null then 'queued' when code is null then 'done' else 'failed' end,
        error_code = code, error = message, lease_token = null, lease_expires_at = null,
        run_after = clock_timestamp() + make_interval(secs => coalesce(wait_seconds, 0)),
        finished_at = case when wait_seconds is null then clock_timestamp() end
    where j.generation = end_translation.generation and j.lease_token = token and j.status = 'running'
    returning j.status
$$;
revoke all on function rag.end_translation(bigint, uuid, text, text, float8) from public;
grant execute on function rag.end_translation(bigint, uuid, text, text, float8) to rag_worker;
