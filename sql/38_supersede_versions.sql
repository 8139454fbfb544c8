-- Of all indexed documents with the name and the place of this one, makes the newest upload live and the others its older
-- versions: search no longer finds those, but what cited them stays readable. Called when a document gets its new generation.
-- Versions are numbered in the order of upload, whichever was indexed first; the number of a document never decreases. What is in
-- the trash is left as it is, so that restoring it brings back what was there.
create or replace function rag.supersede_versions(document_id uuid) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    one record;
    number int := 0;
    newest uuid;
begin
    for one in
        select d.id, d.version, last_value(d.id) over (
            order by d.created_at, d.id rows between unbounded preceding and unbounded following) as newest
        from rag.documents flipped
        join rag.documents d on d.owner_id = flipped.owner_id and d.file_name = flipped.file_name
            and d.notebook_id is not distinct from flipped.notebook_id and d.note_id is not distinct from flipped.note_id
        where flipped.id = supersede_versions.document_id and d.generation is not null and d.duplicate_of is null
            and d.trashed_at is null
        order by d.created_at, d.id
    loop
        number := greatest(one.version, number + 1);
        newest := nullif(one.newest, one.id);
        update rag.documents d set version = number, superseded_by = newest
        where d.id = one.id and (d.version <> number or d.superseded_by is distinct from newest);
    end loop;
end
$$;
revoke all on function rag.supersede_versions(uuid) from public;
grant execute on function rag.supersede_versions(uuid) to rag_worker;
