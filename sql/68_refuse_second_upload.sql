-- Trigger of storage.objects, before an object or another version of it is written: refuses a second file through one upload
-- link. The link stays valid for two hours; the resumable route of Supabase Storage checks nothing else and overwrites, and
-- every route accepts it again once its object was removed. The setting storage.operation names the route; where a storage sets
-- none, the age of the document decides. The storage reports a unique_violation as 409 "The resource already exists" and keeps
-- the first file. Whoever has the secret key may replace a file, and a file that got no job may be sent again.
create or replace function rag.refuse_second_upload() returns trigger
language plpgsql
security definer -- the storage service writes objects under a role that cannot see our tables
set search_path = ''
as $$
declare
    operation constant text := coalesce(current_setting('storage.operation', true), '');
begin
    if new.version is distinct from old.version and (operation = '' or operation like '%\_signed') and exists (
        select from rag.documents d
        join rag.ingest_jobs j on j.document_id = d.id and j.kind = 'ingest' and j.object_version <> new.version
        where d.object_path = new.name and (operation <> '' or d.created_at > clock_timestamp() - interval '2 hours 10 minutes')
    ) then
        raise exception using errcode = 'unique_violation', message = 'a file has already arrived through this upload link';
    end if;
    return new;
end
$$;
revoke all on function rag.refuse_second_upload() from public;
