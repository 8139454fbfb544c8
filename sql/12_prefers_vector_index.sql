-- Whether an approximate index is likely to find the nearest chunks of a scope sooner than comparing all of them, which takes
-- about 1 µs a chunk and misses none. The index takes some 10 ms, and helps only where a large part of what it holds is in
-- scope.
create or replace function rag.prefers_vector_index(scope_count bigint, total_count bigint) returns boolean
language sql immutable parallel safe
as $$
    select scope_count > 50000 and scope_count > total_count / 4
$$;
revoke all on function rag.prefers_vector_index(bigint, bigint) from public;
grant execute on function rag.prefers_vector_index(bigint, bigint) to authenticated, rag_worker;
