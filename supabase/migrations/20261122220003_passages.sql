-- What an indexing run writes. A generation is one indexing run of one source: its rows can be searched while the source points
-- at it, and are deleted with it (rag.remove_generation_rows).
create table rag.generations (
    id bigint generated always as identity primary key,
    owner_id uuid not null,
    document_id uuid references rag.documents on delete cascade,
    note_id uuid references rag.notes on delete cascade,
    created_at timestamptz not null default clock_timestamp(),
    check (num_nonnulls(document_id, note_id) = 1)
);
create index generations_document on rag.generations (document_id);
create index generations_note on rag.generations (note_id);

create table rag.pages (
    generation bigint not null,
    page_number int not null check (page_number >= 1),
    owner_id uuid not null,
    text text not null,
    warnings text[] not null default '{}',
    ocr_confidence real, -- null for pages that were not read by OCR
    -- The words that OCR read, [[start, end, left, top, right, bottom], …]: character offsets, then 1/10000 of the page size.
    words jsonb,
    table_count int not null default 0,
    hidden_characters int not null default 0,
    primary key (generation, page_number)
);

create sequence rag.chunk_ids;
create table rag.chunks (
    id bigint primary key default nextval('rag.chunk_ids'),
    generation bigint not null,
    owner_id uuid not null,
    chunk_index int not null,
    page_start int not null,
    page_end int not null,
    start_offset int not null,
    end_offset int not null,
    section_title text,
    text text not null,
    search_text text not null,
    -- What a model reads in place of `text` where `text` is not enough: rows of a table under their header.
    markdown text,
    lang text not null,
    token_count int not null,
    unique (generation, chunk_index)
);

-- Search scans the next two narrow tables only. `storage plain` keeps vectors in the row, because scanning TOASTed vectors takes
-- ten times as long. There are no foreign keys: checking each row would halve the load rate, and deleting a generation cleans up.
create table rag.chunk_vectors (
    chunk_id bigint primary key,
    generation bigint not null,
    owner_id uuid not null,
    server_id uuid not null,
    embedding extensions.halfvec not null
);
alter table rag.chunk_vectors alter column embedding set storage plain;
create index chunk_vectors_generation on rag.chunk_vectors (generation);

create table rag.chunk_terms (
    chunk_id bigint primary key,
    generation bigint not null,
    owner_id uuid not null,
    lang text not null,
    terms extensions.sparsevec not null
);
create index chunk_terms_generation on rag.chunk_terms (generation);

-- How many chunks of a generation contain a term: the idf of a search is computed from the rows in its scope.
create table rag.generation_terms (
    generation bigint not null,
    owner_id uuid not null,
    term int not null,
    chunk_frequency int not null,
    primary key (generation, term)
);
create index generation_terms_owner on rag.generation_terms (owner_id, term) include (generation, chunk_frequency);
