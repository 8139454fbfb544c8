-- Notes are indexed through the queue of documents; pages say how they were read; documents know their duplicates.
alter table rag.embedding_servers
    add column token_level boolean not null default false,
    -- The evidence that a passage of this model needs, where it was measured; otherwise the setting similarity_threshold.
    add column guard_threshold real check (guard_threshold between 0.05 and 0.95);

alter table rag.notes
    add column status text not null default 'empty' check (status in ('empty', 'queued', 'indexed', 'failed')),
    add column error_code text,
    add column error text,
    add column indexed_at timestamptz;

-- A duplicate found only after its upload: its address answers with the document that has the same bytes.
alter table rag.documents
    add column duplicate_of uuid references rag.documents on delete cascade,
    add column announced_bytes bigint, -- null until bytes arrive: size_bytes is what was announced, and then what arrived
    -- What the worker has found the bytes to be; `sha256` may be no more than what an upload announced.
    add column content_sha256 text check (content_sha256 ~ '^[0-9a-f]{64}$');
create index documents_duplicate_of on rag.documents (duplicate_of) where duplicate_of is not null;
create index documents_owner_content on rag.documents (owner_id, content_sha256) where content_sha256 is not null;
create index documents_owner_file_name on rag.documents (owner_id, file_name);
update rag.documents set content_sha256 = sha256 where generation is not null;

-- `words` are the boxes of words read by OCR, [[start, end, left, top, right, bottom], …]: boxes in 1/10000 of the page.
alter table rag.pages
    add column ocr_confidence real,
    add column words jsonb,
    add column table_count int not null default 0,
    add column hidden_characters int not null default 0;

-- Of an answer: what was searched in place of a question that leans on the ones before it, and the position of the question,
-- because of two questions asked at once the second may be answered first.
alter table rag.messages
    add column search_query text,
    add column question_position bigint;

-- What a model reads in place of `text` where that does not say it all: rows of a table under their header.
alter table rag.chunks add column markdown text;
alter type rag.search_hit add attribute markdown text, add attribute blend_rank int;

alter table rag.ingest_jobs
    alter column document_id drop not null,
    add column note_id uuid references rag.notes on delete cascade,
    -- The process that holds the lease, "host:pid", where a supervisor can tell that it has died.
    add column holder text,
    drop constraint ingest_jobs_kind_check,
    add check (kind in ('ingest', 'reindex', 'note')),
    add check (num_nonnulls(document_id, note_id) = 1 and (kind = 'note') = (note_id is not null));
create unique index ingest_jobs_one_open_note on rag.ingest_jobs (note_id) where status in ('queued', 'running');
create index ingest_jobs_note on rag.ingest_jobs (note_id) where note_id is not null;

-- Only what a person changes counts as a change of a note.
drop trigger touch_updated_at on rag.notes;
create trigger touch_updated_at before update of title, content, notebook_id, trashed_at on rag.notes
    for each row execute function rag.touch_updated_at();

-- Queues a saved note, in the transaction that saves it. What was queued for an older text is superseded; a note without any
-- text has nothing to index and leaves search at once.
create function rag.on_note_saved() returns trigger
language plpgsql
security definer -- users may not write the queue
set search_path = ''
as $$
begin
    update rag.ingest_jobs j set status = 'superseded', finished_at = clock_timestamp(), lease_token = null
    where j.note_id = new.id and j.status in ('queued', 'running');
    if new.content ~ '[^[:space:]\u00ad\u200b\u2060\ufeff]' then
        insert into rag.ingest_jobs (owner_id, note_id, kind, object_version)
        values (new.owner_id, new.id, 'note', clock_timestamp()::text);
        update rag.notes n set status = 'queued', error_code = null, error = null where n.id = new.id;
    else
        update rag.notes n
        set status = 'empty', generation = null, chunk_count = 0, lang = null, error_code = null, error = null
        where n.id = new.id;
        delete from rag.generations g where g.note_id = new.id;
    end if;
    return null;
end
$$;
revoke all on function rag.on_note_saved() from public;
create trigger note_inserted after insert on rag.notes for each row execute function rag.on_note_saved();
create trigger note_changed after update of title, content on rag.notes for each row
    when (old.title is distinct from new.title or old.content is distinct from new.content)
    execute function rag.on_note_saved();

do $$
begin
    if exists (select from pg_publication where pubname = 'supabase_realtime') then
        alter publication supabase_realtime add table rag.notes;
    end if;
end
$$;

-- As before, but an event that comes after a newer upload is not taken for one.
create or replace function rag.enqueue_stored_object(object_path text, object_version text, object_size bigint) returns bigint
language plpgsql
security definer -- the storage service and users reach the queue only through this door
set search_path = ''
as $$
declare
    document rag.documents;
    job_id bigint;
begin
    select * into document from rag.documents d where d.object_path = enqueue_stored_object.object_path for update;
    if not found then
        return null;
    end if;
    -- News of bytes that others have replaced since: what is stored now has had its own.
    if exists (
        select from storage.objects o
        where o.bucket_id = 'documents' and o.name = enqueue_stored_object.object_path
            and o.version <> enqueue_stored_object.object_version
    ) then
        return null;
    end if;
    select j.id into job_id from rag.ingest_jobs j
    where j.document_id = document.id and j.kind = 'ingest' and j.object_version = enqueue_stored_object.object_version;
    if found then
        return job_id;
    end if;
    update rag.ingest_jobs j set status = 'superseded', finished_at = clock_timestamp(), lease_token = null
    where j.document_id = document.id and j.status in ('queued', 'running');
    -- Quotas count what was announced. What is larger is not read, and the sweeper removes it.
    if document.generation is null and object_size > coalesce(document.announced_bytes, document.size_bytes) then
        update rag.documents d
        set status = 'failed', stage = null, error_code = 'larger_than_announced',
            error = format('%s bytes arrived where %s were announced. Upload the file again, with its real size.',
                object_size, coalesce(document.announced_bytes, document.size_bytes))
        where d.id = document.id and d.error_code is distinct from 'larger_than_announced';
        return null;
    end if;
    insert into rag.ingest_jobs (owner_id, document_id, kind, object_version)
    values (document.owner_id, document.id, 'ingest', enqueue_stored_object.object_version)
    returning id into job_id;
    -- A duplicate whose address has got other bytes is one no longer.
    update rag.documents d
    set duplicate_of = null, status = case when d.generation is null then 'uploaded' else 'reindexing' end,
        announced_bytes = coalesce(d.announced_bytes, d.size_bytes),
        size_bytes = coalesce(object_size, d.size_bytes), error_code = null, error = null, stage = 'queued', pages_done = 0
    where d.id = document.id;
    return job_id;
end
$$;

-- Replaced by functions of the same name that take more.
drop function if exists rag.claim_ingest_job(bigint, int);

-- The nudge: pg_net tells the function `storage_event` that a job is due ------------------------------------------------------

-- Asks pg_net to call POST /api/hooks/storage once this transaction has committed. The address and the secret are those that
-- Vault keeps as `ibid_webhook_url` and `ibid_webhook_secret`; without them, or without either extension, nothing is sent. The
-- body is that of a database webhook and holds ids alone. pg_net forgets its queue in a crash: what is lost, the sweeper finds.
create function rag.send_storage_event(change text, object_name text, object_version text, object_size bigint) returns void
language plpgsql
set search_path = ''
as $$
declare
    secrets jsonb;
begin
    if to_regprocedure('net.http_post(text, jsonb, jsonb, jsonb, integer)') is null
        or to_regclass('vault.decrypted_secrets') is null then
        return;
    end if;
    select jsonb_object_agg(s.name, s.decrypted_secret) into secrets
    from vault.decrypted_secrets s
    where s.name in ('ibid_webhook_url', 'ibid_webhook_secret') and s.decrypted_secret <> '';
    if not coalesce(secrets ?& array['ibid_webhook_url', 'ibid_webhook_secret'], false) then
        return;
    end if;
    perform net.http_post(
        url := secrets ->> 'ibid_webhook_url',
        body := jsonb_build_object(
            'type', change, 'schema', 'storage', 'table', 'objects', 'old_record', null,
            'record', jsonb_build_object(
                'bucket_id', 'documents', 'name', object_name, 'version', object_version,
                'metadata', jsonb_build_object('size', object_size)
            )
        ),
        headers := jsonb_build_object(
            'content-type', 'application/json', 'x-webhook-secret', secrets ->> 'ibid_webhook_secret'
        ),
        timeout_milliseconds := 5000 -- a cold start takes longer than the 2 s that pg_net gives by itself
    );
exception when others then
    -- In a block of its own: the job that was just written has to stay.
    raise warning 'nobody was told of the upload of %: %', object_name, sqlerrm;
end
$$;
revoke all on function rag.send_storage_event(text, text, text, bigint) from public;

-- As before, and then the nudge: once for each version that has a job.
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
    -- An upload must never fail because of us: the sweeper finds the object without a job.
    raise warning 'ingestion of % was not enqueued: %', new.name, sqlerrm;
    return new;
end
$$;

-- Quotas and rate limits --------------------------------------------------------------------------------------------------------

-- How often somebody has done something in the window that began at `window_start`: one row a user and kind, counted up by
-- rag.take_quota and by nothing else. Users have no right to it at all.
create table rag.usage_counters (
    owner_id uuid not null,
    kind text not null check (kind in ('request', 'question', 'upload')),
    window_start timestamptz not null,
    used int not null,
    primary key (owner_id, kind)
) with (fillfactor = 50); -- updated often, and never in an indexed column
alter table rag.usage_counters enable row level security;
alter table rag.usage_counters force row level security;
create policy "Workers do everything" on rag.usage_counters to rag_worker using (true) with check (true);
grant select, insert, update, delete on rag.usage_counters to rag_worker;

-- What /ready and the sweeper count: jobs that were given up lately.
create index ingest_jobs_given_up on rag.ingest_jobs (finished_at) where status in ('dead', 'failed');

-- As before, but only a changed value is a change: rag.forget_user takes names off settings.
create or replace function rag.audit_setting() returns trigger
language plpgsql
security definer -- the audit is written for everybody and writable by nobody
set search_path = ''
as $$
begin
    if tg_op = 'UPDATE' and new.value is not distinct from old.value then
        return null;
    end if;
    insert into rag.settings_audit (key, old_value, new_value, changed_by)
    values (
        coalesce(new.key, old.key),
        case when tg_op <> 'INSERT' then old.value end,
        case when tg_op <> 'DELETE' then new.value end,
        auth.uid()
    );
    return null;
end
$$;

-- Whoever inserts a document names the object that its download is signed for: never one of another document. ----------------
create policy "A document's file lies in its own folder" on rag.documents as restrictive for insert to authenticated
    with check (object_path = (select auth.uid()) || '/' || id || '/original.' || file_type);
