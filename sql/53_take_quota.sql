-- Counts one use of a kind by the caller: a 'request' or an 'upload' within a minute, a 'question' within a day (UTC). When
-- `quota` of them are used up, nothing is counted and the transaction fails with IB002, whose detail says which quota it was
-- and in how many seconds it begins anew. 0 is no quota. The row stays locked until the caller's transaction ends, so uses at
-- the same time take turns and none is lost.
create or replace function rag.take_quota(kind text, quota int) returns void
language plpgsql volatile
security definer -- users may not write the counters; it counts for the caller alone, in windows that the caller cannot choose
set search_path = pg_catalog, pg_temp
as $$
declare
    span constant interval := case take_quota.kind when 'question' then interval '1 day' else interval '1 minute' end;
    began constant timestamptz := date_bin(span, clock_timestamp(), timestamptz '2000-01-01 00:00:00+00');
    ends timestamptz;
begin
    if quota = 0 then
        return;
    end if;
    insert into rag.usage_counters as c (owner_id, kind, window_start, used)
    values (auth.uid(), take_quota.kind, began, 1)
    on conflict on constraint usage_counters_pkey do update
    set used = case when c.window_start < excluded.window_start then 1 else c.used + 1 end,
        window_start = greatest(c.window_start, excluded.window_start)
    where c.window_start < excluded.window_start or c.used < quota;
    if found then
        return;
    end if;
    select c.window_start + span into ends
    from rag.usage_counters c where c.owner_id = auth.uid() and c.kind = take_quota.kind;
    raise exception using errcode = 'IB002', message = format('the quota of %s %ss is used up', quota, kind),
        detail = jsonb_build_object('kind', kind, 'quota', quota,
            'retry_after', greatest(1, ceil(extract(epoch from ends - clock_timestamp()))::int));
end
$$;
revoke all on function rag.take_quota(text, int) from public;
grant execute on function rag.take_quota(text, int) to authenticated;
