-- Adds an answer of the caller to today's usage (UTC). What a model server did not report is null.
create or replace function rag.count_usage(prompt_tokens bigint, completion_tokens bigint, cost_usd numeric) returns void
language sql volatile
security definer -- users may not write the counters; it counts for the caller alone
set search_path = pg_catalog, pg_temp
as $$
    insert into rag.daily_usage as u (owner_id, day, questions, prompt_tokens, completion_tokens, cost_usd)
    values (auth.uid(), (clock_timestamp() at time zone 'UTC')::date, 1, greatest(0, coalesce($1, 0)),
        greatest(0, coalesce($2, 0)), greatest(0, coalesce($3, 0)))
    on conflict on constraint daily_usage_pkey do update
    set questions = u.questions + 1, prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = u.completion_tokens + excluded.completion_tokens, cost_usd = u.cost_usd + excluded.cost_usd
$$;
revoke all on function rag.count_usage(bigint, bigint, numeric) from public;
grant execute on function rag.count_usage(bigint, bigint, numeric) to authenticated;
