-- The only schema of Ibid that is meant to be exposed to Supabase's own clients. It has functions, no tables.
create schema ibid;
comment on schema ibid is 'Functions for Supabase clients: add this schema to the exposed ones.';
grant usage on schema ibid to authenticated;
