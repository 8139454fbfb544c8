-- What the owner of a notebook prefers for its answers: how they are written, and by which of the models that administrators allow.
alter table rag.notebooks
    add column instructions text not null default '' check (length(instructions) <= 500),
    add column chat_model text check (length(chat_model) between 1 and 200);
