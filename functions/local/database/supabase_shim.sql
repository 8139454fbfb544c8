-- Adds to a bare Postgres what Ibid uses of a Supabase project: the roles, and the schemas `auth`, `storage` and `extensions`. The
-- migrator applies it only where there is no schema `auth`, or where this file created it. Every statement may run again.

do $$
declare
    wanted record;
begin
    for wanted in
        select *
        from (
            values
                ('anon', 'nologin noinherit'),
                ('authenticated', 'nologin noinherit'),
                ('service_role', 'nologin noinherit bypassrls'),
                ('supabase_storage_admin', 'nologin noinherit')
        ) as roles (name, options)
    loop
        -- Roles belong to the whole server: the migration of another database may be creating them right now.
        begin
            if not exists (select from pg_roles where rolname = wanted.name) then
                execute format('create role %I %s', wanted.name, wanted.options);
            end if;
        exception
            when duplicate_object or unique_violation then null;
        end;
        if not pg_has_role(current_user, wanted.name, 'member') then
            execute format('grant %I to current_user', wanted.name);
        end if;
    end loop;
end
$$;

create schema if not exists extensions;
grant usage on schema extensions to anon, authenticated, service_role;
create extension if not exists vector with schema extensions;

grant usage on schema public to anon, authenticated, service_role;

-- auth ----------------------------------------------------------------------------------------------------------------------

create schema if not exists auth;
comment on schema auth is 'ibid: stand-in for Supabase Auth';
grant usage on schema auth to anon, authenticated, service_role;

-- Supabase's own three functions. They read both settings, because older PostgREST versions set one for each claim; a setting is ''
-- after the transaction that set it.
create or replace function auth.uid() returns uuid
language sql stable
as $$
    select coalesce(
        nullif(current_setting('request.jwt.claim.sub', true), ''),
        (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')
    )::uuid
$$;

create or replace function auth.role() returns text
language sql stable
as $$
    select coalesce(
        nullif(current_setting('request.jwt.claim.role', true), ''),
        (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role')
    )::text
$$;

create or replace function auth.jwt() returns jsonb
language sql stable
as $$
    select coalesce(
        nullif(current_setting('request.jwt.claim', true), ''),
        nullif(current_setting('request.jwt.claims', true), '')
    )::jsonb
$$;

create table if not exists auth.users (
    id uuid primary key,
    aud varchar(255) default 'authenticated',
    role varchar(255) default 'authenticated',
    email varchar(255) unique,
    raw_app_meta_data jsonb default '{}',
    raw_user_meta_data jsonb default '{}',
    is_anonymous boolean not null default false,
    created_at timestamptz default now(),
    updated_at timestamptz default now(),
    deleted_at timestamptz
);
alter table auth.users add column if not exists banned_until timestamptz;
alter table auth.users enable row level security;
grant select, insert, update, delete on auth.users to service_role;

-- storage -------------------------------------------------------------------------------------------------------------------

create schema if not exists storage;
comment on schema storage is 'ibid: stand-in for Supabase Storage';
grant usage on schema storage to anon, authenticated, service_role, supabase_storage_admin;

create table if not exists storage.buckets (
    id text primary key,
    name text not null unique,
    owner uuid,
    owner_id text,
    public boolean default false,
    avif_autodetection boolean default false,
    file_size_limit bigint,
    allowed_mime_types text[],
    created_at timestamptz default now(),
    updated_at timestamptz default now()
);

create table if not exists storage.objects (
    id uuid primary key default gen_random_uuid(),
    bucket_id text references storage.buckets (id),
    name text,
    owner uuid,
    owner_id text,
    created_at timestamptz default now(),
    updated_at timestamptz default now(),
    last_accessed_at timestamptz default now(),
    metadata jsonb,
    path_tokens text[] generated always as (string_to_array(name, '/')) stored,
    version text,
    user_metadata jsonb,
    constraint bucketid_objname unique (bucket_id, name)
);

create or replace function storage.foldername(name text) returns text[]
language sql immutable
as $$
    select parts[1:array_length(parts, 1) - 1] from string_to_array(name, '/') as parts
$$;

create or replace function storage.filename(name text) returns text
language sql immutable
as $$
    select parts[array_length(parts, 1)] from string_to_array(name, '/') as parts
$$;

alter table storage.buckets enable row level security;
alter table storage.objects enable row level security;
-- As on Supabase, all roles have the privileges, but row level security without a policy admits only service_role.
grant all on storage.buckets, storage.objects to anon, authenticated, service_role, supabase_storage_admin;

-- realtime ------------------------------------------------------------------------------------------------------------------

do $$
begin
    if not exists (select from pg_publication where pubname = 'supabase_realtime') then
        set local client_min_messages = error; -- hides the warning that the server's wal_level does not allow replication
        create publication supabase_realtime;
    end if;
end
$$;
