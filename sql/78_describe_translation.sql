-- How far the translation of a generation is, for the health report; null where none was asked for.
create or replace function rag.describe_translation(generation bigint) returns jsonb
language sql stable security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'status', j.status, 'error_code', j.error_code, 'error', j.error, 'model', j.model,
        'passages', c.passages, 'translated', t.translated, 'refused', t.refused,
        'prompt_tokens', j.prompt_tokens, 'completion_tokens', j.completion_tokens, 'cost_usd', nullif(round(j.cost_usd::numeric, 9), 0)::float8)
    from rag.translation_jobs j
    cross join lateral (
        select count(*) as passages from rag.chunks k where k.generation = j.generation and k.lang = any (j.langs)) c
    cross join lateral (
        select count(k.text) as translated, count(*) - count(k.text) as refused
        from rag.chunk_translations k where k.generation = j.generation) t
    where j.generation = describe_translation.generation
$$;
revoke all on function rag.describe_translation(bigint) from public;
grant execute on function rag.describe_translation(bigint) to authenticated, rag_worker;
