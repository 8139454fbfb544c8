-- Translations of passages, which are searched beside their originals. The id of a translation is that of its passage with a
-- minus sign, also in rag.chunk_terms and rag.chunk_vectors: so both arms find it like any other passage, and the search needs no
-- further table to know that the two are one passage.
create table rag.chunk_translations (
    id bigint primary key check (id < 0),
    generation bigint not null,
    owner_id uuid not null,
    lang text not null check (lang in ('en', 'fr')), -- of the translation
    text_hash text not null check (text_hash ~ '^[0-9a-f]{64}$'), -- of the original: equal texts are translated once
    text text -- null where the translator gave nothing that could be used
);
create index chunk_translations_generation on rag.chunk_translations (generation);
create index chunk_translations_known on rag.chunk_translations (owner_id, text_hash, lang) where text is not null;
alter table rag.chunk_translations enable row level security;
alter table rag.chunk_translations force row level security;
create policy "Workers do everything" on rag.chunk_translations to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.chunk_translations for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.chunk_translations to rag_worker;
grant select on rag.chunk_translations to authenticated;

-- The translation of one generation, which begins when that generation is searched already. What is left to translate is read
-- from the tables. `langs` are the languages of passages that were asked for. Tokens and cost are those of the translator.
create table rag.translation_jobs (
    generation bigint primary key references rag.generations on delete cascade,
    owner_id uuid not null,
    status text not null default 'queued' check (status in ('queued', 'running', 'done', 'failed')),
    langs text[] not null check (cardinality(langs) > 0 and langs <@ array['en', 'fr']),
    attempts int not null default 0, -- claims since the last saved batch
    run_after timestamptz not null default clock_timestamp(),
    lease_token uuid,
    lease_expires_at timestamptz,
    error_code text,
    error text,
    model text,
    prompt_tokens bigint not null default 0,
    completion_tokens bigint not null default 0,
    cost_usd float8 not null default 0,
    finished_at timestamptz
);
create index translation_jobs_due on rag.translation_jobs (run_after) where status in ('queued', 'running');
create index translation_jobs_ended on rag.translation_jobs (finished_at) where status in ('done', 'failed');
alter table rag.translation_jobs enable row level security;
alter table rag.translation_jobs force row level security;
create policy "Workers do everything" on rag.translation_jobs to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.translation_jobs for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.translation_jobs to rag_worker;
grant select on rag.translation_jobs to authenticated;

-- The translation of a passage into the question's language.
alter type rag.search_hit add attribute translation text;
