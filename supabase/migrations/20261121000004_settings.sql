-- Settings hold only what differs from the defaults in the code; every change leaves a line in the audit.
create table rag.settings (
    key text primary key,
    value jsonb not null,
    updated_by uuid,
    updated_at timestamptz not null default clock_timestamp()
);
create table rag.settings_audit (
    id bigint generated always as identity primary key,
    key text not null,
    old_value jsonb,
    new_value jsonb,
    changed_by uuid,
    changed_at timestamptz not null default clock_timestamp()
);
create function rag.audit_setting() returns trigger
language plpgsql
security definer -- the audit is written for everybody and writable by nobody
set search_path = ''
as $$
begin
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
revoke all on function rag.audit_setting() from public;
create trigger audit_setting after insert or update or delete on rag.settings
    for each row execute function rag.audit_setting();
