-- The house of Ibid inside Postgres: one schema, one worker role, nothing open by default.
create schema if not exists extensions;
create extension if not exists vector with schema extensions;
create schema rag;

-- Workers act as a role of their own: never as a user, never as the owner of the tables.
do $$
begin
    if not exists (select from pg_roles where rolname = 'rag_worker') then
        create role rag_worker nologin;
    end if;
end
$$;
grant rag_worker to current_user;

grant usage on schema rag to authenticated, service_role, rag_worker;
grant usage on schema extensions to authenticated, service_role, rag_worker;
grant usage on schema auth to rag_worker;

-- Keeps updated_at true without every statement having to say so.
create function rag.touch_updated_at() returns trigger
language plpgsql
set search_path = ''
as $$
begin
    new.updated_at := clock_timestamp();
    return new;
end
$$;
revoke all on function rag.touch_updated_at() from public;
