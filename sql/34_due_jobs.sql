-- The jobs that a worker may claim now: those that are queued for no later time, and those whose worker let the lease expire.
-- Jobs that are marked `background` come last (rag.claim_ingest_job).
create or replace view rag.due_jobs with (security_invoker = true) as
select j.*
from rag.ingest_jobs j
where j.run_after <= clock_timestamp()
    and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()));
grant select, update on rag.due_jobs to rag_worker; -- update, because `select … for update` needs it
