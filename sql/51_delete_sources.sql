-- Deletes the caller's notes and documents with everything made of them, whatever their status. Returns a receipt with the
-- number of deleted rows; ids that do not exist, or are not the caller's, are ignored. The caller then removes the stored
-- objects, whose paths are in the receipt.
create or replace function rag.delete_sources(note_ids uuid[], document_ids uuid[]) returns jsonb
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    doomed uuid;
    receipts jsonb[];
begin
    -- Notes are locked before documents, and each kind by id: one order of locks, so no deadlock.
    perform from rag.notes n where n.id = any (note_ids) order by n.id for update;
    perform from rag.documents d
    where d.id = any (document_ids) or d.superseded_by = any (document_ids) or d.duplicate_of = any (document_ids)
    order by d.id for update;
    with runs as materialized (select g.id from rag.generations g where g.note_id = any (note_ids))
    select array[jsonb_build_object(
        'notes', (select count(*) from rag.notes n where n.id = any (note_ids)),
        'documents', 0,
        'pages', (select count(*) from rag.pages p where p.generation in (select id from runs)),
        'chunks', (select count(*) from rag.chunks c where c.generation in (select id from runs)),
        'vectors', (select count(*) from rag.chunk_vectors v where v.generation in (select id from runs)),
        'jobs', (select count(*) from rag.ingest_jobs j where j.note_id = any (note_ids)))] into receipts;
    foreach doomed in array document_ids loop
        receipts := array_append(receipts, rag.delete_document(doomed)); -- null when it was deleted as a version of another
    end loop;
    delete from rag.notes n where n.id = any (note_ids);
    return (
        select jsonb_object_agg(s.key, s.total)
        from (
            select e.key, sum(e.value::text::bigint) as total
            from unnest(receipts) as r (receipt) cross join jsonb_each(r.receipt) e
            where jsonb_typeof(e.value) = 'number'
            group by e.key
        ) s
    ) || jsonb_build_object('object_paths', (
        select coalesce(jsonb_agg(p.path), '[]')
        from unnest(receipts) as r (receipt) cross join jsonb_array_elements_text(r.receipt -> 'object_paths') as p (path)
    ));
end
$$;
revoke all on function rag.delete_sources(uuid[], uuid[]) from public;
grant execute on function rag.delete_sources(uuid[], uuid[]) to authenticated;
