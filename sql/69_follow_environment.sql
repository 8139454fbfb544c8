-- Makes the server that the environment describes the default, if the present one has indexed nothing yet and was not set up by
-- an administrator. The present one is switched off: no vector needs it, and what it refused is tried again. Returns whether the default changed.
create or replace function rag.follow_environment(server jsonb) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    unused uuid;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0));
    select s.id into unused from rag.embedding_servers s
    where s.is_default and not s.managed
        and not exists (select from rag.documents d where d.embedding_server_id = s.id)
        and not exists (select from rag.notes n where n.embedding_server_id = s.id);
    if unused is null then
        return false;
    end if;
    -- A worker that is indexing with it at this moment switches it on again, and what it has indexed moves.
    update rag.embedding_servers s set active = false where s.id = unused;
    perform rag.adopt_embedding_server(server, null);
    update rag.embedding_servers s set replaced_at = clock_timestamp() where s.id = unused and not s.is_default;
    perform rag.retry_rejected_sources();
    return true;
end
$$;
revoke all on function rag.follow_environment(jsonb) from public;
grant execute on function rag.follow_environment(jsonb) to rag_worker;
