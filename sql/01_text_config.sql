-- The text search configuration of a language. Text in languages other than English and French is not stemmed.
create or replace function rag.text_config(lang text) returns regconfig
language sql immutable parallel safe
as $$
    select case lang
        when 'en' then 'pg_catalog.english'::regconfig
        when 'fr' then 'pg_catalog.french'::regconfig
        else 'pg_catalog.simple'::regconfig
    end
$$;
revoke all on function rag.text_config(text) from public;
grant execute on function rag.text_config(text) to authenticated, rag_worker;
