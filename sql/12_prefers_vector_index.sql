-- Whether an approximate index would find the nearest chunks of a scope sooner than a comparison with each of them.
-- The exact search takes 0.6 µs a chunk in scope. The index has to look at about 50 · total / scope of its rows, at 10 µs
-- each, to find 50 in scope: so the scope must be large by itself and as a share of all that the index holds.
create or replace function rag.prefers_vector_index(scope_count bigint, total_count bigint) returns boolean
language sql immutable parallel safe
as $$
    select scope_count > 10000 and scope_count::float8 * scope_count > 800.0::float8 * total_count
$$;
revoke all on function rag.prefers_vector_index(bigint, bigint) from public;
grant execute on function rag.prefers_vector_index(bigint, bigint) to authenticated, rag_worker;
