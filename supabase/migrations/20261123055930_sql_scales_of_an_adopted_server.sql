-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/57_adopt_embedding_server.sql sha256:c61c2441c8dbd4092e2e33acb4dedfad4f6f6f5a21b5c4163805e47076bace43
-- Makes an embedding server the default, and marks the one before as replaced; rag.continue_reindexing moves the library.
-- `server` has columns of rag.embedding_servers. A row that gives the same vectors is brought up to date, otherwise there is a
-- new row. When that server already is the default, the moves that failed are tried again. The audit of the settings records
-- who did it. Returns the id of the server.
create or replace function rag.adopt_embedding_server(server jsonb, changed_by uuid) returns uuid
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    wanted rag.embedding_servers := jsonb_populate_record(null::rag.embedding_servers, server);
    before record;
    adopted uuid;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0)); -- two administrators take turns
    select s.id, s.name into before from rag.embedding_servers s where s.is_default;
    select s.id into adopted from rag.embedding_servers s
    where s.kind = wanted.kind and s.model = wanted.model and s.dimensions = wanted.dimensions
        and s.passage_prefix = wanted.passage_prefix
    order by s.is_default desc, s.active desc, s.created_at desc limit 1;

    update rag.embedding_servers s set is_default = false where s.is_default and s.id is distinct from adopted;
    update rag.embedding_servers s set replaced_at = clock_timestamp()
    where s.active and s.id is distinct from adopted and (s.replaced_at is not null or s.id = before.id);
    if adopted is null then
        insert into rag.embedding_servers (name, kind, base_url, model, dimensions, max_input_tokens, languages, batch_size,
            api_key_env, token_level, query_prefix, passage_prefix, similarity_floor, similarity_ceiling, similarity_scales,
            calibrated_passages, is_default)
        select case when exists (select from rag.embedding_servers s where s.name = wanted.name)
                then format('%s (%s)', wanted.name, (select count(*) + 1 from rag.embedding_servers)) else wanted.name end,
            wanted.kind, wanted.base_url, wanted.model, wanted.dimensions, wanted.max_input_tokens, wanted.languages,
            wanted.batch_size, wanted.api_key_env, wanted.token_level, wanted.query_prefix, wanted.passage_prefix,
            wanted.similarity_floor, wanted.similarity_ceiling, wanted.similarity_scales, wanted.calibrated_passages, true
        returning id into adopted;
    else
        update rag.embedding_servers s
        set base_url = wanted.base_url, max_input_tokens = wanted.max_input_tokens, languages = wanted.languages,
            batch_size = wanted.batch_size, api_key_env = wanted.api_key_env, token_level = wanted.token_level,
            query_prefix = wanted.query_prefix, is_default = true, active = true, replaced_at = null
        where s.id = adopted;
    end if;
    insert into rag.settings_audit (key, old_value, new_value, changed_by)
    select 'embedding_server', to_jsonb(before.name), to_jsonb(s.name), adopt_embedding_server.changed_by
    from rag.embedding_servers s where s.id = adopted;
    return adopted;
end
$$;
revoke all on function rag.adopt_embedding_server(jsonb, uuid) from public;
grant execute on function rag.adopt_embedding_server(jsonb, uuid) to rag_worker;
