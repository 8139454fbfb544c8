-- Asks pg_net to call POST /api/hooks/storage once this transaction has committed, so that a worker starts at once. Vault keeps
-- the address and the secret as `ibid_webhook_url` and `ibid_webhook_secret`; without them, or without either extension,
-- nothing is sent. The body has the form of a database webhook and contains ids only. A crash may lose the call; the sweeper
-- finds the job.
create or replace function rag.send_storage_event(change text, object_name text, object_version text, object_size bigint) returns void
language plpgsql
set search_path = ''
as $$
declare
    secrets jsonb;
begin
    if to_regprocedure('net.http_post(text, jsonb, jsonb, jsonb, integer)') is null
        or to_regclass('vault.decrypted_secrets') is null then
        return;
    end if;
    select jsonb_object_agg(s.name, s.decrypted_secret) into secrets
    from vault.decrypted_secrets s
    where s.name in ('ibid_webhook_url', 'ibid_webhook_secret') and s.decrypted_secret <> '';
    if not coalesce(secrets ?& array['ibid_webhook_url', 'ibid_webhook_secret'], false) then
        return;
    end if;
    perform net.http_post(
        url := secrets ->> 'ibid_webhook_url',
        body := jsonb_build_object(
            'type', change, 'schema', 'storage', 'table', 'objects', 'old_record', null,
            'record', jsonb_build_object(
                'bucket_id', 'documents', 'name', object_name, 'version', object_version,
                'metadata', jsonb_build_object('size', object_size)
            )
        ),
        headers := jsonb_build_object(
            'content-type', 'application/json', 'x-webhook-secret', secrets ->> 'ibid_webhook_secret'
        ),
        timeout_milliseconds := 5000 -- a cold start takes longer than the 2 s that pg_net allows by default
    );
exception when others then
    -- The job that was just written must stay.
    raise warning 'no storage event was sent for %: %', object_name, sqlerrm;
end
$$;
revoke all on function rag.send_storage_event(text, text, text, bigint) from public;
