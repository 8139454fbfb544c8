-- The terms of a text in a language, with their frequencies. Accents are folded before stemming, so that a text and a question
-- have the same stems whether or not either is written with accents. The stemmer recognizes French stop words only with their
-- accents (à, été, était, même …), so the stems of their folded forms are removed here.
-- Years are written in full first (rag.spell_years).
-- There is no `set` clause, so that the planner can inline the function, which saves a quarter of the time for a chunk.
create or replace function rag.lexemes(lang text, content text) returns table (term int, frequency int)
language sql immutable parallel safe
as $$
    select rag.term_id(l.lexeme), sum(coalesce(cardinality(l.positions), 1))::int
    from unnest(to_tsvector(rag.text_config(lang), rag.fold(rag.spell_years(content)))) as l
    where lang is distinct from 'fr'
        or l.lexeme <> all ('{a,ete,etant,etais,etait,etaient,etion,eti,mem,fum,eum}')
    group by 1
$$;
revoke all on function rag.lexemes(text, text) from public;
grant execute on function rag.lexemes(text, text) to authenticated, rag_worker;
