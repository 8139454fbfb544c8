-- What users put into their library: notebooks, notes and documents. And the embedding servers that index them.
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
    token_level boolean not null default false,
    -- The evidence threshold measured for this model; null means that the setting similarity_threshold applies.
    guard_threshold real check (guard_threshold between 0.05 and 0.95),
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
    status text not null default 'empty' check (status in ('empty', 'queued', 'indexed', 'failed')),
    error_code text,
    error text,
    generation bigint, -- the generation that search finds; null while nothing is indexed
    chunk_count int not null default 0,
    lang text,
    trashed_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    indexed_at timestamptz
);
create index notes_owner on rag.notes (owner_id, updated_at desc);
create index notes_notebook on rag.notes (notebook_id) where notebook_id is not null;
create index notes_generation on rag.notes (generation);

create table rag.documents (
    id uuid primary key default gen_random_uuid(),
    owner_id uuid not null,
    notebook_id uuid references rag.notebooks on delete set null,
    note_id uuid references rag.notes on delete set null,
    file_name text not null check (length(file_name) between 1 and 255),
    file_type text not null check (file_type in ('pdf', 'docx', 'txt', 'md')),
    mime_type text,
    size_bytes bigint not null check (size_bytes >= 0), -- the announced size until the file arrives, then its real size
    announced_bytes bigint, -- the announced size; null until the file arrives
    sha256 text check (sha256 ~ '^[0-9a-f]{64}$'), -- as announced with the upload, until the worker has read the file
    content_sha256 text check (content_sha256 ~ '^[0-9a-f]{64}$'), -- as computed by the worker
    object_path text not null unique,
    status text not null default 'awaiting_upload'
        check (status in ('awaiting_upload', 'uploaded', 'processing', 'indexed', 'failed', 'reindexing')),
    stage text,
    pages_done int not null default 0,
    page_count int,
    chunk_count int not null default 0,
    title text,
    lang text,
    -- The generation that search finds: replacing it is one update. Null while nothing is indexed.
    generation bigint,
    version int not null default 1,
    superseded_by uuid references rag.documents on delete set null,
    -- The document with the same bytes that answers for this one, when the worker finds that only after the upload.
    duplicate_of uuid references rag.documents on delete cascade,
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
create index documents_owner_file_name on rag.documents (owner_id, file_name);
create index documents_owner_sha256 on rag.documents (owner_id, sha256);
create index documents_owner_content on rag.documents (owner_id, content_sha256) where content_sha256 is not null;
create index documents_notebook on rag.documents (notebook_id) where notebook_id is not null;
create index documents_note on rag.documents (note_id) where note_id is not null;
create index documents_superseded_by on rag.documents (superseded_by) where superseded_by is not null;
create index documents_duplicate_of on rag.documents (duplicate_of) where duplicate_of is not null;
create index documents_generation on rag.documents (generation);
