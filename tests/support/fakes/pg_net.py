"""The functions of pg_net and Vault that our trigger and the Supabase CLI call, with the real signatures.

Requests stay in `net.http_request_queue` and are never sent.
"""

from __future__ import annotations

NET = """
create schema net;
create table net.http_request_queue (
    id bigint generated always as identity, url text, body jsonb, headers jsonb, timeout_milliseconds int
);
create function net.http_post(
    url text, body jsonb default '{}', params jsonb default '{}',
    headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds int default 5000
) returns bigint language sql security definer set search_path = net as $$
    insert into net.http_request_queue (url, body, headers, timeout_milliseconds)
    values (url, body, headers, timeout_milliseconds) returning id
$$;
"""
VAULT = """
create schema vault;
create table vault.secrets (
    id uuid primary key default gen_random_uuid(), name text unique, description text, secret text
);
create view vault.decrypted_secrets as select *, secret as decrypted_secret from vault.secrets;
create function vault.create_secret(
    new_secret text, new_name text default null, new_description text default '', new_key_id uuid default null
) returns uuid language sql as $$
    insert into vault.secrets (name, secret, description) values (new_name, new_secret, new_description) returning id
$$;
"""
RAISING = """
create or replace function net.http_post(
    url text, body jsonb default '{}', params jsonb default '{}',
    headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds int default 5000
) returns bigint language plpgsql as $$ begin raise exception 'the worker of pg_net is not running'; end $$;
"""
