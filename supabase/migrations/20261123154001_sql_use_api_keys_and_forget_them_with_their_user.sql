-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/55_forget_user.sql sha256:c9d61f926413f50432608f904cc170f818d0b44cd382c85c8d5b11570a76bc74
-- Deletes everything of one user: at most `batch_size` documents, notes and conversations in a call, and with the last of them
-- every other row that has the user's id. Returns the number of deleted rows of each kind, the paths of the stored objects,
-- which the caller then removes, and `is_done`; call it until that is true. Repeating it is safe and deletes what was added
-- meanwhile.
create or replace function rag.forget_user(user_id uuid, batch_size int) returns jsonb
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    doomed uuid[];
    paths jsonb;
    receipt jsonb := '{}';
    removed bigint;
    is_done boolean;
begin
    -- Notes are locked before documents, and each kind by id, as in rag.delete_sources.
    select array_agg(n.id) into doomed
    from (select id from rag.notes where owner_id = user_id order by id limit batch_size for update) n;
    delete from rag.notes n where n.id = any (doomed);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('notes', removed);

    -- Duplicates are deleted with the document that answers for them.
    select array_agg(d.id) into doomed
    from (
        select d.id from rag.documents d
        where d.owner_id = user_id and coalesce(d.duplicate_of, d.id) in (
            select first.id from rag.documents first
            where first.owner_id = user_id and first.duplicate_of is null order by first.id limit batch_size)
        order by d.id for update
    ) d;
    select coalesce(jsonb_agg(d.object_path), '[]') into paths from rag.documents d where d.id = any (doomed);
    delete from rag.documents d where d.id = any (doomed);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('documents', removed);

    delete from rag.conversations c
    where c.id in (select id from rag.conversations where owner_id = user_id order by id limit batch_size);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('conversations', removed);

    is_done := not exists (select from rag.notes where owner_id = user_id)
        and not exists (select from rag.documents where owner_id = user_id)
        and not exists (select from rag.conversations where owner_id = user_id);
    if is_done then
        delete from rag.notebooks where owner_id = user_id;
        get diagnostics removed = row_count;
        receipt := receipt || jsonb_build_object('notebooks', removed);
        delete from rag.generations where owner_id = user_id;
        delete from rag.ingest_jobs where owner_id = user_id;
        delete from rag.usage_counters where owner_id = user_id;
        delete from rag.query_translations where owner_id = user_id;
        delete from rag.api_keys where owner_id = user_id;
        update rag.settings set updated_by = null where updated_by = user_id;
        update rag.settings_audit set changed_by = null where changed_by = user_id;
        -- Objects that were uploaded to the path of a deleted document.
        select paths || coalesce(jsonb_agg(o.name), '[]') into paths
        from storage.objects o
        where o.bucket_id = 'documents' and starts_with(o.name, user_id::text || '/') and not paths ? o.name;
    end if;
    return receipt || jsonb_build_object('object_paths', paths, 'is_done', is_done);
end
$$;
revoke all on function rag.forget_user(uuid, int) from public;
grant execute on function rag.forget_user(uuid, int) to rag_worker;

-- from sql/68_use_api_key.sql sha256:c08ebc00e97bd0a9a2791a338d9ed1f2c188739954e70959f54ee6b656a1a543
-- Finds the API key with this hash, for whoever authenticates a request, and counts the request. Returns its `id`, `owner_id` and
-- `scopes`; only `expired_at` for an expired one; null for one that never existed or was revoked, and for one whose owner's account
-- was deleted or suspended, when `checks_account` says that Supabase Auth keeps the accounts. Raises IB002, as rag.take_quota does,
-- when the key has been used `key_requests_per_minute` times within this minute; `default_quota` stands in for that setting.
create or replace function rag.use_api_key(key_hash text, default_quota int, checks_account boolean) returns jsonb
language plpgsql volatile
security definer -- auth.users is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    quota constant int := coalesce(
        (select s.value::int from rag.settings s where s.key = 'key_requests_per_minute'), default_quota);
    began constant timestamptz := date_trunc('minute', clock_timestamp());
    has_account boolean := true;
    api_key record;
begin
    update rag.api_keys k
    set used = case when k.last_used_at >= began then k.used + 1 else 1 end, last_used_at = clock_timestamp()
    where k.key_hash = use_api_key.key_hash and k.expires_at > clock_timestamp()
        and (quota = 0 or k.last_used_at is null or k.last_used_at < began or k.used < quota)
    returning k.id, k.owner_id, k.scopes into api_key;
    if found then
        if checks_account then
            has_account := exists (
                select from auth.users u
                where u.id = api_key.owner_id and u.deleted_at is null
                    and coalesce(u.banned_until < clock_timestamp(), true));
        end if;
        return case when has_account then to_jsonb(api_key) end;
    end if;
    select k.expires_at into api_key from rag.api_keys k where k.key_hash = use_api_key.key_hash;
    if not found then
        return null;
    elsif api_key.expires_at <= clock_timestamp() then
        return jsonb_build_object('expired_at', api_key.expires_at);
    end if;
    raise exception using errcode = 'IB002', message = format('the key has sent %s requests', quota),
        detail = jsonb_build_object('kind', 'key', 'quota', quota,
            'retry_after', greatest(1, ceil(extract(epoch from began + interval '1 minute' - clock_timestamp()))::int));
end
$$;
revoke all on function rag.use_api_key(text, int, boolean) from public;
grant execute on function rag.use_api_key(text, int, boolean) to rag_worker;
