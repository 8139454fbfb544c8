-- What the lexical index holds: passages and their translations. A translation keeps what stands above its passage, title and
-- section, which are mostly names.
create or replace view rag.search_texts with (security_invoker = true) as
select c.id, c.generation, c.owner_id, c.lang, coalesce(c.search_text, c.search_prefix || c.text) as content
from rag.chunks c
union all
select t.id, t.generation, t.owner_id, t.lang, coalesce(c.search_prefix, '') || t.text
from rag.chunk_translations t
join rag.chunks c on c.id = - t.id
where t.text is not null;
grant select on rag.search_texts to rag_worker;
