-- The schema of Ibid, the role of its workers, and the right to use both. Nothing is open by default.
create schema if not exists extensions;
create extension if not exists vector with schema extensions;
create schema rag;

-- Workers have a role of their own: they never act as a user or as the owner of the tables.
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
