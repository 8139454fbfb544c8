-- Settings that differ from the defaults in the code, and one audit row for every change (rag.audit_setting).
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
