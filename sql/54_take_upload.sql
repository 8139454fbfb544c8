-- Counts an announced upload by the caller. Raises IB002, as rag.take_quota does, when the caller's library is full; a limit of
-- 0 means none. Announced bytes count like stored ones; duplicates and expired uploads do not count. Announcements of one user
-- take turns until their transactions end, so two at once cannot both take the last place.
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
    select count(*) as documents, coalesce(sum(d.size_bytes), 0) as bytes into held
    from rag.documents d
    where d.owner_id = auth.uid() and d.duplicate_of is null and d.error_code is distinct from 'upload_expired';
    if max_documents > 0 and held.documents >= max_documents then
        raise exception using errcode = 'IB002', message = 'the library holds as many documents as allowed',
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
