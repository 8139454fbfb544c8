-- Text without accents and ligatures (é → e, œ → oe). It uses the Unicode decomposition, so that no extension is needed. Text
-- with as many bytes as characters is ASCII and is returned as it is.
create or replace function rag.fold(content text) returns text
language sql immutable parallel safe
as $$
    select case when octet_length(content) = char_length(content) then content else replace(replace(replace(replace(
        regexp_replace(normalize(content, NFKD), '[\u0300-\u036f]', '', 'g'),
        'œ', 'oe'), 'æ', 'ae'), 'Œ', 'Oe'), 'Æ', 'Ae') end
$$;
revoke all on function rag.fold(text) from public;
grant execute on function rag.fold(text) to authenticated, rag_worker;
