-- Personal API keys: only their hashes are stored. `used` counts the requests within the minute of `last_used_at`; rag.use_api_key
-- alone counts.
create table rag.api_keys (
    id uuid primary key default gen_random_uuid(),
    owner_id uuid not null,
    name text not null check (length(name) between 1 and 100),
    hint text not null check (length(hint) <= 16), -- how the key begins, by which its owner recognizes it
    key_hash text not null unique check (key_hash ~ '^[0-9a-f]{64}$'),
    scopes text[] not null check (cardinality(scopes) > 0 and scopes <@ array['read', 'ask', 'write']),
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    last_used_at timestamptz,
    used int not null default 0
) with (fillfactor = 50); -- rows are updated often, but never in an indexed column
create index api_keys_owner_id on rag.api_keys (owner_id);

alter table rag.api_keys enable row level security;
alter table rag.api_keys force row level security;
create policy "Workers do everything" on rag.api_keys to rag_worker using (true) with check (true);
create policy "Owners do everything with their own rows" on rag.api_keys to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
-- A statement that runs with a key has this claim: a stolen key must not list, make or revoke keys.
create policy "Keys do not manage keys" on rag.api_keys as restrictive to authenticated
    using ((select auth.jwt()) ->> 'api_key_id' is null) with check ((select auth.jwt()) ->> 'api_key_id' is null);
grant select, insert, update, delete on rag.api_keys to rag_worker;
grant select (id, owner_id, name, hint, scopes, created_at, expires_at, last_used_at), delete on rag.api_keys to authenticated;
grant insert (owner_id, name, hint, key_hash, scopes, expires_at) on rag.api_keys to authenticated;
