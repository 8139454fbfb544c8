-- Trigger of rag.generations: deletes everything that belongs to deleted generations.
create or replace function rag.remove_generation_rows() returns trigger
language plpgsql
security definer -- whoever may delete a source may not delete these rows directly
set search_path = ''
as $$
begin
    delete from rag.pages using removed where pages.generation = removed.id;
    delete from rag.chunk_vectors using removed where chunk_vectors.generation = removed.id;
    delete from rag.chunk_terms using removed where chunk_terms.generation = removed.id;
    delete from rag.generation_terms using removed where generation_terms.generation = removed.id;
    delete from rag.chunk_translations using removed where chunk_translations.generation = removed.id;
    delete from rag.chunks using removed where chunks.generation = removed.id;
    return null;
end
$$;
revoke all on function rag.remove_generation_rows() from public;
