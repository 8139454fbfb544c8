-- The negative BM25 score of a chunk's terms for a question. `queries` are the question's query vectors in the order in which
-- rag.lexical_queries returns them: English, French, and any other language.
-- The shorter vector is on the left, where pgvector is faster.
-- There is no `set` clause, so that the planner can inline the function.
create or replace function rag.lexical_distance(queries extensions.sparsevec[], lang text, terms extensions.sparsevec)
returns float8
language sql immutable parallel safe
as $$
    select queries[case lang when 'en' then 1 when 'fr' then 2 else 3 end] operator(extensions.<#>) terms
$$;
revoke all on function rag.lexical_distance(extensions.sparsevec[], text, extensions.sparsevec) from public;
grant execute on function rag.lexical_distance(extensions.sparsevec[], text, extensions.sparsevec) to authenticated, rag_worker;
