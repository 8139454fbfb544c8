-- A generation that got translations after its posting lists were written is searched chunk by chunk until they are written again.
alter table rag.segment_generations add column is_stale boolean not null default false;
