-- The jobs that a worker may claim now: those that are queued for no later time, and those whose worker let the lease expire.
-- Jobs that are marked `background` come last (rag.claim_ingest_job); while the move of the library is paused, none of them is due.
create or replace view rag.due_jobs with (security_invoker = true) as
select j.*
from rag.ingest_jobs j
where j.run_after <= clock_timestamp()
    and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()))
    and not (j.background and exists (
        select from rag.embedding_servers s where s.paused_at is not null and s.replaced_at is not null));
grant select, update on rag.due_jobs to rag_worker; -- update, because `select … for update` needs it
