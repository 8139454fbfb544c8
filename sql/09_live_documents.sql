-- The documents that a library shows: the newest version of each, no duplicates, and nothing that is in the trash.
create or replace view rag.live_documents with (security_invoker = true) as
select d.*
from rag.untrashed_documents d
where d.superseded_by is null and d.duplicate_of is null;
grant select on rag.live_documents to authenticated, rag_worker;
