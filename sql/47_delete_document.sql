-- Deletes one of the caller's documents, whatever its status, with its older versions, its duplicates and everything made of
-- them. Returns a receipt with the number of deleted rows, or null when the caller has no such document. The caller then
-- removes the stored objects, whose paths are in the receipt.
create or replace function rag.delete_document(document_id uuid) returns jsonb
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    doomed uuid[];
    receipt jsonb;
begin
    select array_agg(l.id) into doomed
    from (
        select d.id from rag.documents d
        where delete_document.document_id in (d.id, d.superseded_by, d.duplicate_of) order by d.id for update
    ) l;
    if not delete_document.document_id = any (coalesce(doomed, '{}')) then
        return null;
    end if;
    with runs as materialized (select g.id from rag.generations g where g.document_id = any (doomed))
    select jsonb_build_object(
        'documents', cardinality(doomed),
        'pages', (select count(*) from rag.pages p where p.generation in (select id from runs)),
        'chunks', (select count(*) from rag.chunks c where c.generation in (select id from runs)),
        'vectors', (select count(*) from rag.chunk_vectors v where v.generation in (select id from runs)),
        'jobs', (select count(*) from rag.ingest_jobs j where j.document_id = any (doomed)),
        'object_paths', (select jsonb_agg(d.object_path) from rag.documents d where d.id = any (doomed))
    ) into receipt;
    delete from rag.documents d where d.id = any (doomed);
    return receipt;
end
$$;
revoke all on function rag.delete_document(uuid) from public;
grant execute on function rag.delete_document(uuid) to authenticated;
