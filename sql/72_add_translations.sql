-- Saves translations of chunks of one generation beside them, and indexes their words; whoever saves them writes their vectors. A
-- null text records that the translator gave nothing that could be used. Posting lists that were written before lack them, so they
-- are stale. The caller holds a lease.
create or replace function rag.add_translations(chunk_ids bigint[], langs text[], text_hashes text[], texts text[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    insert into rag.chunk_translations (id, generation, owner_id, lang, text_hash, text)
    select - c.id, c.generation, c.owner_id, g.lang, g.text_hash, g.text
    from unnest(chunk_ids, langs, text_hashes, texts) as g (chunk_id, lang, text_hash, text)
    join rag.chunks c on c.id = g.chunk_id;
    update rag.segment_generations s set is_stale = true
    from rag.chunks c
    where c.id = any (chunk_ids) and s.generation = c.generation and not s.is_stale;
    select rag.index_chunks(array(select - t.chunk_id from unnest(chunk_ids) as t (chunk_id)))
$$;
revoke all on function rag.add_translations(bigint[], text[], text[], text[]) from public;
grant execute on function rag.add_translations(bigint[], text[], text[], text[]) to rag_worker;
