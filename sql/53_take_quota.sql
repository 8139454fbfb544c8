-- Counts one use by the caller: a 'request' or an 'upload' within a minute, or a 'question' within a day (UTC). When `quota`
-- uses have been counted, raises IB002, whose detail names the quota and the seconds until its next window. A quota of 0 means
-- no limit. The row stays locked until the caller's transaction ends, so concurrent uses take turns and none is lost.
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
