-- Makes an embedding server the default, and marks the others as replaced; rag.continue_reindexing moves the library.
-- `server` has columns of rag.embedding_servers. A row that gives the same vectors is brought up to date, otherwise there is a
-- new row. When that server already is the default, the moves that failed are tried again. The audit of the settings records
-- who did it. Returns the id of the server.
create or replace function rag.adopt_embedding_server(server jsonb, changed_by uuid) returns uuid
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    wanted rag.embedding_servers := jsonb_populate_record(null::rag.embedding_servers, server);
    adopted uuid;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0)); -- two administrators take turns
    select s.id into adopted from rag.embedding_servers s
    where s.kind = wanted.kind and s.model = wanted.model and s.dimensions = wanted.dimensions
        and s.passage_prefix = wanted.passage_prefix
    order by s.is_default desc, s.active desc, s.created_at desc limit 1;
    if adopted is null then
        insert into rag.embedding_servers (name, kind, base_url, model, dimensions, max_input_tokens, languages, batch_size,
            api_key_env, token_level, query_prefix, passage_prefix, similarity_floor, similarity_ceiling, similarity_scales,
            calibrated_passages)
        select case when exists (select from rag.embedding_servers s where s.name = wanted.name)
                then format('%s (%s)', wanted.name, (select count(*) + 1 from rag.embedding_servers)) else wanted.name end,
            wanted.kind, wanted.base_url, wanted.model, wanted.dimensions, wanted.max_input_tokens, wanted.languages,
            wanted.batch_size, wanted.api_key_env, wanted.token_level, wanted.query_prefix, wanted.passage_prefix,
            wanted.similarity_floor, wanted.similarity_ceiling, wanted.similarity_scales, wanted.calibrated_passages
        returning id into adopted;
    else
        update rag.embedding_servers s
        set base_url = wanted.base_url, max_input_tokens = wanted.max_input_tokens, languages = wanted.languages,
            batch_size = wanted.batch_size, api_key_env = wanted.api_key_env, token_level = wanted.token_level,
            query_prefix = wanted.query_prefix, managed = false
        where s.id = adopted;
    end if;
    perform rag.move_to_embedding_server(adopted, changed_by);
    return adopted;
end
$$;
revoke all on function rag.adopt_embedding_server(jsonb, uuid) from public;
grant execute on function rag.adopt_embedding_server(jsonb, uuid) to rag_worker;
