-- Makes a registered server the default, and marks every other one that is active or holds documents or notes as replaced, so
-- that rag.continue_reindexing moves the whole library to it. Moves that failed or were paused begin again. The audit of the
-- settings records who did it.
create or replace function rag.move_to_embedding_server(server_id uuid, changed_by uuid) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    before text;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.adopt_embedding_server', 0)); -- two administrators take turns
    select s.name into before from rag.embedding_servers s where s.is_default;
    update rag.embedding_servers s set is_default = false where s.is_default and s.id <> move_to_embedding_server.server_id;
    update rag.embedding_servers s set paused_at = null where s.paused_at is not null;
    update rag.embedding_servers s set replaced_at = clock_timestamp()
    where s.id <> move_to_embedding_server.server_id and (
        s.active
        or exists (
            select from rag.documents d
            where d.embedding_server_id = s.id and d.generation is not null and d.superseded_by is null
                and d.duplicate_of is null)
        or exists (select from rag.notes n where n.embedding_server_id = s.id and n.generation is not null));
    update rag.embedding_servers s set is_default = true, active = true, replaced_at = null
    where s.id = move_to_embedding_server.server_id;
    insert into rag.settings_audit (key, old_value, new_value, changed_by)
    select 'embedding_server', to_jsonb(before), to_jsonb(s.name), move_to_embedding_server.changed_by
    from rag.embedding_servers s where s.id = move_to_embedding_server.server_id;
end
$$;
revoke all on function rag.move_to_embedding_server(uuid, uuid) from public;
grant execute on function rag.move_to_embedding_server(uuid, uuid) to rag_worker;
