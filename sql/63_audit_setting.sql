-- Trigger of rag.settings: writes a changed value to the audit. An update that keeps the value is no change: rag.forget_user
-- makes such updates when it removes user ids.
create or replace function rag.audit_setting() returns trigger
language plpgsql
security definer -- every change is audited, but nobody may write the audit
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
revoke all on function rag.audit_setting() from public;
