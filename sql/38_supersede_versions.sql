-- Of all indexed documents with the name and the place of this one, the newest upload is live and the others are its older
-- versions: out of search, but kept, so that what was cited stays readable. Called when a document is flipped.
create or replace function rag.supersede_versions(document_id uuid) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    with versions as materialized (
        select d.id, d.version, d.created_at, d.id = supersede_versions.document_id as is_new
        from rag.documents one
        join rag.documents d on d.owner_id = one.owner_id and d.file_name = one.file_name
            and d.notebook_id is not distinct from one.notebook_id and d.note_id is not distinct from one.note_id
        where one.id = supersede_versions.document_id and d.generation is not null and d.duplicate_of is null
    ), numbered as (
        -- Versions are counted in the order of upload, whichever was indexed first; a number once given only grows.
        select v.id, max(v.version) over earlier as version_before, last_value(v.id) over everything as newest,
            n.created_at > v.created_at as is_older, v.is_new
        from versions v cross join (select created_at from versions where is_new) n
        window earlier as (order by v.created_at, v.id rows between unbounded preceding and 1 preceding),
            everything as (order by v.created_at, v.id rows between unbounded preceding and unbounded following)
    )
    update rag.documents d
    set superseded_by = nullif(n.newest, d.id),
        version = case when n.is_older then d.version else greatest(d.version, coalesce(n.version_before, 0) + 1) end
    from numbered n
    where d.id = n.id;
end
$$;
revoke all on function rag.supersede_versions(uuid) from public;
grant execute on function rag.supersede_versions(uuid) to rag_worker;
