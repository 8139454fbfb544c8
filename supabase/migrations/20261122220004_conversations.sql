-- A message keeps its own copy of every source it cites, so that old answers stay readable when documents change.
create table rag.conversations (
    id uuid primary key default gen_random_uuid(),
    owner_id uuid not null,
    title text not null default '' check (length(title) <= 255),
    notebook_id uuid references rag.notebooks on delete set null,
    note_id uuid references rag.notes on delete set null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);
create index conversations_owner on rag.conversations (owner_id, updated_at desc, id desc);
create index conversations_notebook on rag.conversations (notebook_id) where notebook_id is not null;
create index conversations_note on rag.conversations (note_id) where note_id is not null;
create index conversations_updated_at on rag.conversations (updated_at);

create table rag.messages (
    id uuid primary key default gen_random_uuid(),
    conversation_id uuid not null references rag.conversations on delete cascade,
    owner_id uuid not null,
    position bigint generated always as identity,
    -- In an answer, the position of its question: of two questions asked at once, the second may be answered first.
    question_position bigint,
    role text not null check (role in ('user', 'assistant')),
    content text not null,
    status text not null default 'complete' check (status in ('complete', 'interrupted', 'failed', 'guarded')),
    mode text check (mode in ('model', 'extractive', 'guard')),
    search_query text, -- in an answer, what was searched instead of a follow-up question
    sections jsonb not null default '[]',
    sources jsonb not null default '[]',
    scope jsonb,
    usage jsonb,
    created_at timestamptz not null default clock_timestamp()
);
create index messages_conversation on rag.messages (conversation_id, position);

-- The documents that the questions of a conversation are about.
create table rag.conversation_documents (
    conversation_id uuid not null references rag.conversations on delete cascade,
    document_id uuid not null references rag.documents on delete cascade,
    owner_id uuid not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (conversation_id, document_id)
);
create index conversation_documents_document on rag.conversation_documents (document_id);
