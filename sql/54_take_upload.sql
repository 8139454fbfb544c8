-- Counts what the caller adds to their library: an announced upload, a saved note, a notebook. Raises IB002, as rag.take_quota
-- does, when the library is full; a limit of 0 means none. Announced bytes count like stored ones, and the text of notes, in the
-- trash too, like files; duplicates and expired uploads do not count. Additions of one user take turns until their transactions
-- end, so two at once cannot both take the last place. Call it before any lock on a note, which an attachment waits for.
create or replace function rag.take_upload(size_bytes bigint, per_minute int, max_documents int, max_bytes bigint) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    held record;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.take_upload ' || auth.uid(), 0));
    perform rag.take_quota('upload', per_minute);
    if max_documents = 0 and max_bytes = 0 then
        return;
    end if;
    select count(*) as items, coalesce(sum(i.bytes), 0) as bytes into held
    from (
        select d.size_bytes from rag.documents d
        where d.owner_id = auth.uid() and d.duplicate_of is null and d.error_code is distinct from 'upload_expired'
        union all
        select octet_length(n.content) from rag.notes n where n.owner_id = auth.uid()
        union all
        select 0 from rag.notebooks b where b.owner_id = auth.uid()
    ) i (bytes);
    if max_documents > 0 and held.items >= max_documents then
        raise exception using errcode = 'IB002', message = 'the library holds as many documents, notes and notebooks as allowed',
            detail = jsonb_build_object('kind', 'documents', 'quota', max_documents);
    end if;
    if max_bytes > 0 and held.bytes + take_upload.size_bytes > max_bytes then
        raise exception using errcode = 'IB002', message = 'the library holds as many bytes as allowed',
            detail = jsonb_build_object('kind', 'bytes', 'quota', max_bytes);
    end if;
end
$$;
revoke all on function rag.take_upload(bigint, int, int, bigint) from public;
grant execute on function rag.take_upload(bigint, int, int, bigint) to authenticated;
