-- Trigger of notebooks, notes and documents: keeps `updated_at` current without every statement having to set it.
create or replace function rag.touch_updated_at() returns trigger
language plpgsql
set search_path = ''
as $$
begin
    new.updated_at := clock_timestamp();
    return new;
end
$$;
revoke all on function rag.touch_updated_at() from public;
