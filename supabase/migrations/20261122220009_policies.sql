-- Who may read and write which rows, table by table: `grep 'on rag.documents'` lists every policy and grant of a table.
-- Row level security is enabled and forced everywhere. Users reach their own rows, workers reach all rows, and `anon` reaches
-- nothing. `(select auth.uid())` is evaluated once in a statement, `auth.uid()` would be evaluated for every row.

-- embedding_servers ------------------------------------------------------------------------------------------------------------

alter table rag.embedding_servers enable row level security;
alter table rag.embedding_servers force row level security;
create policy "Workers do everything" on rag.embedding_servers to rag_worker using (true) with check (true);
create policy "Everybody signed in reads the embedding servers" on rag.embedding_servers for select to authenticated
    using (true);
grant select, insert, update, delete on rag.embedding_servers to rag_worker;
grant select on rag.embedding_servers to authenticated;

-- notebooks --------------------------------------------------------------------------------------------------------------------

alter table rag.notebooks enable row level security;
alter table rag.notebooks force row level security;
create policy "Workers do everything" on rag.notebooks to rag_worker using (true) with check (true);
create policy "Owners do everything with their own rows" on rag.notebooks to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.notebooks to rag_worker;
grant select, insert, update, delete on rag.notebooks to authenticated;

-- notes ------------------------------------------------------------------------------------------------------------------------

alter table rag.notes enable row level security;
alter table rag.notes force row level security;
create policy "Workers do everything" on rag.notes to rag_worker using (true) with check (true);
create policy "Owners do everything with their own rows" on rag.notes to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.notes to rag_worker;
grant select, delete on rag.notes to authenticated;
grant insert (id, owner_id, notebook_id, title, content) on rag.notes to authenticated;
grant update (notebook_id, title, content, trashed_at) on rag.notes to authenticated;

-- documents --------------------------------------------------------------------------------------------------------------------

alter table rag.documents enable row level security;
alter table rag.documents force row level security;
create policy "Workers do everything" on rag.documents to rag_worker using (true) with check (true);
create policy "Owners do everything with their own rows" on rag.documents to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
-- The inserted path is the one that downloads are signed for, so it must not be the path of another document's file.
create policy "A document's file lies in its own folder" on rag.documents as restrictive for insert to authenticated
    with check (object_path = (select auth.uid()) || '/' || id || '/original.' || file_type);
grant select, insert, update, delete on rag.documents to rag_worker;
-- Users may not write the columns that ingestion keeps, `generation` first of all.
grant select, delete on rag.documents to authenticated;
grant insert (id, owner_id, notebook_id, note_id, file_name, file_type, mime_type, size_bytes, sha256, object_path)
    on rag.documents to authenticated;
grant update (notebook_id, note_id, title) on rag.documents to authenticated;

-- generations ------------------------------------------------------------------------------------------------------------------

alter table rag.generations enable row level security;
alter table rag.generations force row level security;
create policy "Workers do everything" on rag.generations to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.generations for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.generations to rag_worker;
grant select on rag.generations to authenticated;

-- pages ------------------------------------------------------------------------------------------------------------------------

alter table rag.pages enable row level security;
alter table rag.pages force row level security;
create policy "Workers do everything" on rag.pages to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.pages for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.pages to rag_worker;
grant select on rag.pages to authenticated;
-- COPY does not work under row level security, which does not apply to service_role. Workers switch to that role to copy rows
-- into this table, rag.chunks and rag.chunk_vectors; it has no other right to them.
grant insert on rag.pages to service_role;

-- chunks -----------------------------------------------------------------------------------------------------------------------

alter table rag.chunks enable row level security;
alter table rag.chunks force row level security;
create policy "Workers do everything" on rag.chunks to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.chunks for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.chunks to rag_worker;
grant select on rag.chunks to authenticated;
grant insert on rag.chunks to service_role; -- for COPY, see rag.pages

-- chunk_vectors ----------------------------------------------------------------------------------------------------------------

alter table rag.chunk_vectors enable row level security;
alter table rag.chunk_vectors force row level security;
create policy "Workers do everything" on rag.chunk_vectors to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.chunk_vectors for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.chunk_vectors to rag_worker;
grant select on rag.chunk_vectors to authenticated;
grant insert on rag.chunk_vectors to service_role; -- for COPY, see rag.pages

-- chunk_terms ------------------------------------------------------------------------------------------------------------------

alter table rag.chunk_terms enable row level security;
alter table rag.chunk_terms force row level security;
create policy "Workers do everything" on rag.chunk_terms to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.chunk_terms for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.chunk_terms to rag_worker;
grant select on rag.chunk_terms to authenticated;

-- generation_terms -------------------------------------------------------------------------------------------------------------

alter table rag.generation_terms enable row level security;
alter table rag.generation_terms force row level security;
create policy "Workers do everything" on rag.generation_terms to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.generation_terms for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.generation_terms to rag_worker;
grant select on rag.generation_terms to authenticated;

-- conversations ----------------------------------------------------------------------------------------------------------------

alter table rag.conversations enable row level security;
alter table rag.conversations force row level security;
create policy "Workers do everything" on rag.conversations to rag_worker using (true) with check (true);
create policy "Owners do everything with their own rows" on rag.conversations to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.conversations to rag_worker;
grant select, insert, update, delete on rag.conversations to authenticated;

-- messages ---------------------------------------------------------------------------------------------------------------------

alter table rag.messages enable row level security;
alter table rag.messages force row level security;
create policy "Workers do everything" on rag.messages to rag_worker using (true) with check (true);
create policy "Owners do everything with their own rows" on rag.messages to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.messages to rag_worker;
grant select, insert, update, delete on rag.messages to authenticated;

-- conversation_documents -------------------------------------------------------------------------------------------------------

alter table rag.conversation_documents enable row level security;
alter table rag.conversation_documents force row level security;
create policy "Workers do everything" on rag.conversation_documents to rag_worker using (true) with check (true);
create policy "Owners do everything with their own rows" on rag.conversation_documents to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.conversation_documents to rag_worker;
grant select, insert, update, delete on rag.conversation_documents to authenticated;

-- settings ---------------------------------------------------------------------------------------------------------------------

alter table rag.settings enable row level security;
alter table rag.settings force row level security;
create policy "Workers do everything" on rag.settings to rag_worker using (true) with check (true);
create policy "Everybody signed in reads the settings" on rag.settings for select to authenticated using (true);
create policy "Administrators write the settings" on rag.settings to authenticated
    using ((select auth.jwt()) -> 'app_metadata' ->> 'role' = 'admin')
    with check ((select auth.jwt()) -> 'app_metadata' ->> 'role' = 'admin');
grant select, insert, update, delete on rag.settings to rag_worker;
grant select, insert, update, delete on rag.settings to authenticated;

-- settings_audit ---------------------------------------------------------------------------------------------------------------

alter table rag.settings_audit enable row level security;
alter table rag.settings_audit force row level security;
create policy "Workers do everything" on rag.settings_audit to rag_worker using (true) with check (true);
create policy "Administrators read the audit" on rag.settings_audit for select to authenticated
    using ((select auth.jwt()) -> 'app_metadata' ->> 'role' = 'admin');
grant select, insert, update, delete on rag.settings_audit to rag_worker;
grant select on rag.settings_audit to authenticated;

-- ingest_jobs ------------------------------------------------------------------------------------------------------------------

alter table rag.ingest_jobs enable row level security;
alter table rag.ingest_jobs force row level security;
create policy "Workers do everything" on rag.ingest_jobs to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.ingest_jobs for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.ingest_jobs to rag_worker;
grant select on rag.ingest_jobs to authenticated;

-- usage_counters ---------------------------------------------------------------------------------------------------------------

alter table rag.usage_counters enable row level security;
alter table rag.usage_counters force row level security;
create policy "Workers do everything" on rag.usage_counters to rag_worker using (true) with check (true);
grant select, insert, update, delete on rag.usage_counters to rag_worker;

-- sequences --------------------------------------------------------------------------------------------------------------------

grant usage on all sequences in schema rag to authenticated, rag_worker;
