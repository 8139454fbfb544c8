-- What it takes for administrators to run embedding servers themselves.

-- An administrator has set this server up or changed it, so the environment no longer describes it.
alter table rag.embedding_servers add column managed boolean not null default false;

-- When an administrator paused the move of the library away from this server.
alter table rag.embedding_servers add column paused_at timestamptz;

-- US dollars for a million tokens, for the estimate before a move; 0 means unknown.
alter table rag.embedding_servers add column price_per_million_tokens real not null default 0
    check (price_per_million_tokens between 0 and 10000);
