-- Deletes up to `batch_size` conversations without a new message or a change for `retention_days`, with their messages.
-- Concurrent purges share the work. Returns the number of deleted conversations; call it until that is 0.
create or replace function rag.purge_conversations(retention_days int, batch_size int default 500) returns int
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    with doomed as (
        select c.id from rag.conversations c
        where c.updated_at < clock_timestamp() - make_interval(days => retention_days)
        order by c.updated_at
        limit batch_size
        for update skip locked
    ), deleted as (
        delete from rag.conversations c using doomed d where c.id = d.id returning 1
    )
    select count(*)::int from deleted
$$;
revoke all on function rag.purge_conversations(int, int) from public;
grant execute on function rag.purge_conversations(int, int) to rag_worker;
