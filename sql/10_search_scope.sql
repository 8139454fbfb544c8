-- The live generations a search may look at, under the caller's row level security, and how much they hold.
-- A notebook holds the attachments of its notes. Superseded versions, trashed notes and the attachments of trashed notes are
-- out of scope; who names an older version, or a duplicate, means the document that took its place.
create or replace function rag.search_scope(
    document_ids uuid[],
    notebook_id uuid,
    note_id uuid,
    filters jsonb,
    out generations bigint[],
    out source_count int,
    out chunk_count bigint
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with sources as (
        select d.generation, d.chunk_count
        from rag.documents d
        where d.generation is not null and d.superseded_by is null
            and (search_scope.document_ids is null or d.id = any (search_scope.document_ids) or d.id in (
                select coalesce(o.superseded_by, o.duplicate_of) from rag.documents o where o.id = any (search_scope.document_ids)))
            and (search_scope.notebook_id is null or d.notebook_id = search_scope.notebook_id or exists (
                select from rag.notes n where n.id = d.note_id and n.notebook_id = search_scope.notebook_id))
            and (search_scope.note_id is null or d.note_id = search_scope.note_id)
            and not exists (select from rag.notes n where n.id = d.note_id and n.trashed_at is not null)
            and (filters ->> 'file_type' is null or d.file_type = filters ->> 'file_type')
            and (filters ->> 'lang' is null or d.lang = filters ->> 'lang')
        union all
        select n.generation, n.chunk_count
        from rag.notes n
        where n.generation is not null and n.trashed_at is null and search_scope.document_ids is null
            and (search_scope.notebook_id is null or n.notebook_id = search_scope.notebook_id)
            and (search_scope.note_id is null or n.id = search_scope.note_id)
            and filters ->> 'file_type' is null
            and (filters ->> 'lang' is null or n.lang = filters ->> 'lang')
    )
    select coalesce(array_agg(s.generation), '{}'), count(*)::int, coalesce(sum(s.chunk_count), 0)::bigint from sources s
$$;
revoke all on function rag.search_scope(uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_scope(uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;
