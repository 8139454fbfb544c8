-- Whether an approximate index could find the nearest chunks of a scope sooner than a comparison with each of them, which
-- takes about 1 µs a chunk and misses none. The index answers in some 10 ms, if much of what it holds is in scope.
create or replace function rag.prefers_vector_index(scope_count bigint, total_count bigint) returns boolean
language sql immutable parallel safe
as $$
    select scope_count > 50000 and scope_count > total_count / 4
$$;
revoke all on function rag.prefers_vector_index(bigint, bigint) from public;
grant execute on function rag.prefers_vector_index(bigint, bigint) to authenticated, rag_worker;
