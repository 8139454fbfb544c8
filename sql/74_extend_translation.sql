-- Renews the lease of a translation, in the transaction that saves a batch, and adds what the batch cost. A saved batch sets the
-- attempts back to 0. Returns false when the lease is lost (to another worker, or with the generation): then nothing may be saved.
create or replace function rag.extend_translation(
    generation bigint, token uuid, lease_seconds int, model text, prompt_tokens bigint, completion_tokens bigint, cost_usd float8
) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Whoever deletes the generation waits until this transaction ends, and then deletes its rows too.
    perform from rag.generations g where g.id = extend_translation.generation for key share;
    update rag.translation_jobs j
    set attempts = 0, lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds),
        model = coalesce(extend_translation.model, j.model), prompt_tokens = j.prompt_tokens + extend_translation.prompt_tokens,
        completion_tokens = j.completion_tokens + extend_translation.completion_tokens,
        cost_usd = j.cost_usd + extend_translation.cost_usd
    where j.generation = extend_translation.generation and j.lease_token = token and j.status = 'running';
    return found;
end
$$;
revoke all on function rag.extend_translation(bigint, uuid, int, text, bigint, bigint, float8) from public;
grant execute on function rag.extend_translation(bigint, uuid, int, text, bigint, bigint, float8) to rag_worker;
