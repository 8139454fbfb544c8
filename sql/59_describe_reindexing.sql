-- How far the move to the default embedding server has come: how many documents and notes of all users it has indexed (`done`),
-- how many a replaced server still has (`remaining`), how many of these cannot be moved (`failed`), and whether an administrator
-- has paused the move. Null when none is left.
create or replace function rag.describe_reindexing() returns jsonb
language sql stable
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'done', (
            select count(*) from rag.documents d join rag.embedding_servers s on s.id = d.embedding_server_id and s.is_default
            where d.generation is not null and d.superseded_by is null and d.duplicate_of is null
        ) + (
            select count(*) from rag.notes n join rag.embedding_servers s on s.id = n.embedding_server_id and s.is_default
            where n.generation is not null
        ),
        'remaining', count(*), 'failed', count(*) filter (where l.state = 'failed'),
        'paused', exists (
            select from rag.embedding_servers s where s.paused_at is not null and s.replaced_at is not null))
    from rag.leaving_sources l
    having count(*) > 0
$$;
revoke all on function rag.describe_reindexing() from public;
grant execute on function rag.describe_reindexing() to rag_worker;
