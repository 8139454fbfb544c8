-- The row of rag.generation_terms that counts a term of a large batch, 1 … 16: its four leading bits. In a small batch, row 0
-- counts all terms.
create or replace function rag.term_bucket(term int) returns smallint
language sql immutable parallel safe
as $$
    select (1 + (term - 1 >> 24))::smallint
$$;
revoke all on function rag.term_bucket(int) from public;
grant execute on function rag.term_bucket(int) to authenticated, rag_worker;
