-- Posting lists of the words of large libraries, so that a search need not read every passage (rag.posting_matches). They are
-- written for a segment at a time: some ten thousand passages of one owner (rag.renew_segments).
create table rag.segments (
    id bigint generated always as identity primary key,
    owner_id uuid not null
);
create index segments_owner on rag.segments (owner_id);

-- The generations of a segment. A deleted generation stays here until the segment is written again, so that a search knows which
-- passages of its lists are gone.
create table rag.segment_generations (
    generation bigint primary key,
    segment_id bigint not null references rag.segments on delete cascade,
    owner_id uuid not null,
    chunk_count int not null,
    chunk_ids bigint[] not null
);
create index segment_generations_segment on rag.segment_generations (segment_id);
create index segment_generations_owner on rag.segment_generations (owner_id);

create table rag.posting_lists (
    segment_id bigint not null references rag.segments on delete cascade,
    term int not null,
    lang smallint not null check (lang between 1 and 3), -- English, French, and any other language, as in rag.lexical_distance
    owner_id uuid not null,
    chunk_frequency int not null,
    max_weight real not null,
    postings bigint[] not null, -- chunk_id << 15 | the weight of the term in the chunk, in 1/10000
    primary key (segment_id, term, lang)
);

alter table rag.segments enable row level security;
alter table rag.segments force row level security;
create policy "Workers do everything" on rag.segments to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.segments for select to authenticated using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.segments to rag_worker;
grant select on rag.segments to authenticated;

alter table rag.segment_generations enable row level security;
alter table rag.segment_generations force row level security;
create policy "Workers do everything" on rag.segment_generations to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.segment_generations for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.segment_generations to rag_worker;
grant select on rag.segment_generations to authenticated;

alter table rag.posting_lists enable row level security;
alter table rag.posting_lists force row level security;
create policy "Workers do everything" on rag.posting_lists to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.posting_lists for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.posting_lists to rag_worker;
grant select on rag.posting_lists to authenticated;
