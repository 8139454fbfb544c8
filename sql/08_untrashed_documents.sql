-- The documents outside the trash, of every version: a document is in the trash by itself, or while the note that it is attached
-- to is.
create or replace view rag.untrashed_documents with (security_invoker = true) as
select d.*
from rag.documents d
where d.trashed_at is null
    and not exists (select from rag.notes n where n.id = d.note_id and n.trashed_at is not null);
grant select on rag.untrashed_documents to authenticated, rag_worker;
