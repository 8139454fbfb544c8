-- The token of an OAuth client acts for its user as a key does, and has the claim `client_id`.
alter policy "Keys do not manage keys" on rag.api_keys
    using (coalesce((select auth.jwt()) ->> 'api_key_id', (select auth.jwt()) ->> 'client_id', '') = '')
    with check (coalesce((select auth.jwt()) ->> 'api_key_id', (select auth.jwt()) ->> 'client_id', '') = '');
