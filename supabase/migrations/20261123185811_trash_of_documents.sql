-- A document can be in the trash by itself, as a note can: hidden from lists and searches until it is restored or deleted.
alter table rag.documents add column trashed_at timestamptz;
grant update (trashed_at) on rag.documents to authenticated;
