-- Whether a scope is so large that its words are searched in posting lists, where it has some. Reading every passage takes about
-- 1 µs a passage; the lists need some milliseconds, and writing them takes time and room.
create or replace function rag.prefers_posting_lists(scope_count bigint) returns boolean
language sql immutable parallel safe
as $$
    select scope_count > 50000
$$;
revoke all on function rag.prefers_posting_lists(bigint) from public;
grant execute on function rag.prefers_posting_lists(bigint) to authenticated, rag_worker;
