-- Deletes one of the caller's documents with everything made of it, in any status, and says how many rows went.
-- Null when there is no such document of the caller's. The stored object is removed by the caller afterwards.
create or replace function rag.delete_document(document_id uuid) returns jsonb
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    receipt jsonb;
begin
    perform from rag.documents d where d.id = delete_document.document_id for update;
    with runs as materialized (select g.id from rag.generations g where g.document_id = delete_document.document_id)
    select jsonb_build_object(
        'pages', (select count(*) from rag.pages p where p.generation in (select id from runs)),
        'chunks', (select count(*) from rag.chunks c where c.generation in (select id from runs)),
        'vectors', (select count(*) from rag.chunk_vectors v where v.generation in (select id from runs)),
        'jobs', (select count(*) from rag.ingest_jobs j where j.document_id = delete_document.document_id)
    ) into receipt;
    delete from rag.documents d where d.id = delete_document.document_id;
    return case when found then receipt end;
end
$$;
revoke all on function rag.delete_document(uuid) from public;
grant execute on function rag.delete_document(uuid) to authenticated;
