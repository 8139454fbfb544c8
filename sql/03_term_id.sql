-- The dimension of a lexeme in the sparse vectors, 1 … 2^28. It uses md5, because hashtext() may change between Postgres
-- versions.
create or replace function rag.term_id(lexeme text) returns int
language sql immutable parallel safe
as $$
    select ('x' || left(md5(lexeme), 7))::bit(28)::int + 1
$$;
revoke all on function rag.term_id(text) from public;
grant execute on function rag.term_id(text) to authenticated, rag_worker;
