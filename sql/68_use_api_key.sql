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
