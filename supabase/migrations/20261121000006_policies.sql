-- Row level security, enabled and forced on every table. Users see their rows; the worker role sees all; anon sees nothing.
do $$
declare
    name text;
begin
    for name in select tablename from pg_tables where schemaname = 'rag' loop
        execute format('alter table rag.%I enable row level security', name);
        execute format('alter table rag.%I force row level security', name);
        execute format('create policy "Workers do everything" on rag.%I to rag_worker using (true) with check (true)', name);
        execute format('grant select, insert, update, delete on rag.%I to rag_worker', name);
    end loop;
    foreach name in array array['notebooks', 'notes', 'documents', 'conversations', 'messages', 'conversation_documents'] loop
        execute format(
            'create policy "Owners do everything with their own rows" on rag.%I to authenticated '
            'using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()))', name);
        execute format('grant select, insert, update, delete on rag.%I to authenticated', name);
    end loop;
    foreach name in array array['generations', 'pages', 'chunks', 'chunk_vectors', 'chunk_terms', 'generation_terms', 'ingest_jobs'] loop
        execute format(
            'create policy "Owners read their own rows" on rag.%I for select to authenticated '
            'using (owner_id = (select auth.uid()))', name);
        execute format('grant select on rag.%I to authenticated', name);
    end loop;
end
$$;

create policy "Everybody signed in reads the settings" on rag.settings for select to authenticated using (true);
create policy "Administrators write the settings" on rag.settings to authenticated
    using ((select auth.jwt()) -> 'app_metadata' ->> 'role' = 'admin')
    with check ((select auth.jwt()) -> 'app_metadata' ->> 'role' = 'admin');
grant select, insert, update, delete on rag.settings to authenticated;
create policy "Administrators read the audit" on rag.settings_audit for select to authenticated
    using ((select auth.jwt()) -> 'app_metadata' ->> 'role' = 'admin');
grant select on rag.settings_audit to authenticated;
create policy "Everybody signed in reads the embedding servers" on rag.embedding_servers for select to authenticated
    using (true);
grant select on rag.embedding_servers to authenticated;
grant usage on all sequences in schema rag to authenticated, rag_worker;

-- A document points at a live generation only if both belong to the same owner: checked here because users update documents.
revoke update on rag.documents from authenticated;
grant update (notebook_id, note_id, title) on rag.documents to authenticated;
revoke insert on rag.documents from authenticated;
grant insert (id, owner_id, notebook_id, note_id, file_name, file_type, mime_type, size_bytes, sha256, object_path)
    on rag.documents to authenticated;
revoke update, insert on rag.notes from authenticated;
grant insert (id, owner_id, notebook_id, title, content), update (notebook_id, title, content, trashed_at)
    on rag.notes to authenticated;

-- COPY does not work under row level security. The worker writes these tables as service_role, which is outside it on every
-- Supabase project, and may do nothing else with them.
grant insert on rag.pages, rag.chunks, rag.chunk_vectors to service_role;

do $$
begin
    if exists (select from pg_publication where pubname = 'supabase_realtime') then
        alter publication supabase_realtime add table rag.documents, rag.messages;
    end if;
end
$$;
