-- What is preferred for answers about a scope: by its notebook, or by the notebook of its note; null without a notebook.
create or replace function rag.find_preferences(scope jsonb) returns jsonb
language sql stable security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object('instructions', b.instructions, 'chat_model', b.chat_model)
    from rag.notebooks b
    where b.id = coalesce((scope ->> 'notebook_id')::uuid, (
        select n.notebook_id from rag.notes n where n.id = (scope ->> 'note_id')::uuid))
$$;
revoke all on function rag.find_preferences(jsonb) from public;
grant execute on function rag.find_preferences(jsonb) to authenticated;
