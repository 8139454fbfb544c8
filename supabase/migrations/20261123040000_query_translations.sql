-- The translations of a user's questions into the other language of the library, kept for a day. The question itself is not
-- stored here, only its hash; the translation is.
create table rag.query_translations (
    owner_id uuid not null,
    text_hash text not null check (text_hash ~ '^[0-9a-f]{64}$'),
    lang text not null check (lang in ('en', 'fr')),
    translation text not null check (length(translation) between 1 and 1000),
    created_at timestamptz not null default clock_timestamp(),
    primary key (owner_id, text_hash, lang)
);
create index query_translations_created_at on rag.query_translations (created_at);
alter table rag.query_translations enable row level security;
alter table rag.query_translations force row level security;
create policy "Workers do everything" on rag.query_translations to rag_worker using (true) with check (true);
create policy "Owners do everything with their own rows" on rag.query_translations to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.query_translations to rag_worker;
grant select, insert, update, delete on rag.query_translations to authenticated;

-- In an answer, the translation of the question that was searched as well.
alter table rag.messages add column translated_query text;

-- Whether a library holds a language is asked with every question.
create index documents_owner_lang on rag.documents (owner_id, lang) where generation is not null;
create index notes_owner_lang on rag.notes (owner_id, lang) where generation is not null;
