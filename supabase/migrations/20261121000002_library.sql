-- Notebooks, notes, documents, and what indexing makes of them.
create table rag.embedding_servers (
    id uuid primary key default gen_random_uuid(),
    name text not null unique check (length(name) between 1 and 200),
    kind text not null check (kind in ('local', 'openai')),
    base_url text,
    model text not null,
    dimensions int not null check (dimensions between 1 and 4000),
    max_input_tokens int not null check (max_input_tokens between 16 and 1000000),
    languages text[] not null default '{}',
    batch_size int not null default 20 check (batch_size between 1 and 2048),
    api_key_env text,
    is_default boolean not null default false,
    active boolean not null default true,
    created_at timestamptz not null default clock_timestamp()
);
create unique index embedding_servers_one_default on rag.embedding_servers (is_default) where is_default;

create table rag.notebooks (
    id uuid primary key default gen_random_uuid(),
    owner_id uuid not null,
    title text not null check (length(title) between 1 and 255),
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);
create index notebooks_owner on rag.notebooks (owner_id, updated_at desc);

create table rag.notes (
    id uuid primary key default gen_random_uuid(),
    owner_id uuid not null,
    notebook_id uuid references rag.notebooks on delete set null,
    title text not null default '' check (length(title) <= 255),
    content text not null default '',
    trashed_at timestamptz,
    generation bigint,
    chunk_count int not null default 0,
    lang text,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);
create index notes_owner on rag.notes (owner_id, updated_at desc);

create table rag.documents (
    id uuid primary key default gen_random_uuid(),
    owner_id uuid not null,
    notebook_id uuid references rag.notebooks on delete set null,
    note_id uuid references rag.notes on delete set null,
    file_name text not null check (length(file_name) between 1 and 255),
    file_type text not null check (file_type in ('pdf', 'docx', 'txt', 'md')),
    mime_type text,
    size_bytes bigint not null check (size_bytes >= 0),
    sha256 text check (sha256 ~ '^[0-9a-f]{64}$'),
    object_path text not null unique,
    status text not null default 'awaiting_upload'
        check (status in ('awaiting_upload', 'uploaded', 'processing', 'indexed', 'failed', 'reindexing')),
    stage text,
    pages_done int not null default 0,
    page_count int,
    chunk_count int not null default 0,
    title text,
    lang text,
    -- The live indexing run: search sees exactly the rows of this generation, so that flipping it is one update.
    generation bigint,
    version int not null default 1,
    superseded_by uuid references rag.documents on delete set null,
    embedding_server_id uuid references rag.embedding_servers,
    embedding_model text,
    embedding_dim int,
    chunking_strategy text,
    ingestion_log jsonb not null default '{}',
    health jsonb,
    error_code text,
    error text,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    indexed_at timestamptz,
    check (status <> 'indexed' or (generation is not null and chunk_count > 0))
);
create index documents_owner on rag.documents (owner_id, created_at desc, id desc);
create index documents_owner_sha256 on rag.documents (owner_id, sha256);
create index documents_notebook on rag.documents (notebook_id) where notebook_id is not null;
create index documents_note on rag.documents (note_id) where note_id is not null;
create index documents_superseded_by on rag.documents (superseded_by) where superseded_by is not null;
create index notes_notebook on rag.notes (notebook_id) where notebook_id is not null;
create index documents_generation on rag.documents (generation);
create index notes_generation on rag.notes (generation);

-- A generation is one indexing of one source. Its rows appear in search when the source points at it, and vanish with it.
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
    lang text not null,
    token_count int not null,
    unique (generation, chunk_index)
);

-- Two narrow tables are all that search scans; `storage plain` keeps vectors in the row (a TOASTed scan is ten times slower).
-- There are no foreign keys here: a check per row would halve the load rate, and `generations` cleans up.
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

-- How many chunks of a generation hold a term: idf is summed over whatever is in scope.
create table rag.generation_terms (
    generation bigint not null,
    owner_id uuid not null,
    term int not null,
    chunk_frequency int not null,
    primary key (generation, term)
);
create index generation_terms_owner on rag.generation_terms (owner_id, term) include (generation, chunk_frequency);

create function rag.remove_generation_rows() returns trigger
language plpgsql
security definer -- rows of a generation go with it, whoever was allowed to delete its source
set search_path = ''
as $$
begin
    delete from rag.pages using removed where pages.generation = removed.id;
    delete from rag.chunk_vectors using removed where chunk_vectors.generation = removed.id;
    delete from rag.chunk_terms using removed where chunk_terms.generation = removed.id;
    delete from rag.generation_terms using removed where generation_terms.generation = removed.id;
    delete from rag.chunks using removed where chunks.generation = removed.id;
    return null;
end
$$;
revoke all on function rag.remove_generation_rows() from public;
create trigger remove_generation_rows after delete on rag.generations
    referencing old table as removed for each statement execute function rag.remove_generation_rows();

create trigger touch_updated_at before update on rag.notebooks for each row execute function rag.touch_updated_at();
create trigger touch_updated_at before update on rag.notes for each row execute function rag.touch_updated_at();
create trigger touch_updated_at before update on rag.documents for each row execute function rag.touch_updated_at();
