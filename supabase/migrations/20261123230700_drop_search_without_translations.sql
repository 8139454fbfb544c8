-- The next migration writes it with one column more, which no `create or replace` can add. Clients of Supabase call it by its name, so
-- its successor keeps the name; nothing else calls it.
drop function if exists ibid.search(text, extensions.halfvec, int, text, uuid, uuid[], uuid, uuid, jsonb);
