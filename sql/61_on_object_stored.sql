-- Trigger of storage.objects: queues the ingestion of a stored file and, once for each version, sends a storage event.
create or replace function rag.on_object_stored() returns trigger
language plpgsql
security definer -- the storage service writes objects under a role that cannot see our tables
set search_path = ''
as $$
declare
    job_id bigint;
    object_size bigint;
begin
    object_size := (new.metadata ->> 'size')::bigint;
    job_id := rag.enqueue_stored_object(new.name, new.version, object_size);
    if job_id is not null and (tg_op = 'INSERT' or new.version is distinct from old.version) then
        perform rag.send_storage_event(tg_op, new.name, new.version, object_size);
    end if;
    return new;
exception when others then
    -- An upload must never fail because of the queue: the sweeper finds objects without a job.
    raise warning 'the ingestion of % was not queued: %', new.name, sqlerrm;
    return new;
end
$$;
revoke all on function rag.on_object_stored() from public;
