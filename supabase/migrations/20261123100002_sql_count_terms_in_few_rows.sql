-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/06_lexical_distance.sql sha256:46dff3a883aa46891cceac39a9d7c69ed6be0ff8ef719a59cfa94f91c9b5f353
-- The negative BM25 score of a chunk's terms for a question. `queries` are the question's query vectors in the order in which
-- rag.lexical_queries returns them: English, French, and any other language.
-- The shorter vector is on the left, where pgvector is faster.
-- There is no `set` clause, so that the planner can inline the function.
create or replace function rag.lexical_distance(queries extensions.sparsevec[], lang text, terms extensions.sparsevec)
returns float8
language sql immutable parallel safe
as $$
    select queries[case lang when 'en' then 1 when 'fr' then 2 else 3 end] operator(extensions.<#>) terms
$$;
revoke all on function rag.lexical_distance(extensions.sparsevec[], text, extensions.sparsevec) from public;
grant execute on function rag.lexical_distance(extensions.sparsevec[], text, extensions.sparsevec) to authenticated, rag_worker;

-- from sql/11_lexical_queries.sql sha256:6a55f3701c99549ecc658f6c05254a5981ebb5319286e43ae08a7f620194fa9c
-- The question as BM25 query vectors: one row for each language of chunks, always in the order 'en', 'fr', 'simple'. The idf of
-- a term is ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene, computed over the scope; only the 64 rarest terms are searched.
-- A translated question has several texts: chunks are searched with the text in their language, or else with all of them.
-- `terms` and `idf` are all terms of the question, whether or not they occur, for coverage: that idf is computed as for a
-- scope of at least a hundred chunks.
create or replace function rag.lexical_queries(
    query_texts text[], query_langs text[], generations bigint[], chunk_count bigint
) returns table (lang text, query extensions.sparsevec, terms int[], idf real[])
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for every question would take longer than counting
as $$
#variable_conflict use_column
declare
    langs text[];
    terms_of_langs int[];
    frequencies jsonb;
begin
    select array_agg(l.lang), array_agg(t.term) into langs, terms_of_langs
    from (
        select l.lang, coalesce(string_agg(q.words, ' ') filter (where q.lang = l.lang), string_agg(q.words, ' ')) as words
        from (select rag.content_words(p.content, p.lang) as words, p.lang from unnest(query_texts, query_langs) as p (content, lang)
            offset 0) q
        cross join unnest(array['en', 'fr', 'simple']) as l (lang)
        group by l.lang
    ) l
    cross join lateral rag.lexemes(l.lang, l.words) t;
    frequencies := rag.chunk_frequencies(array(select distinct unnest(terms_of_langs)), generations);
    return query
    with weighted as (
        select t.lang, t.term, coalesce(f.df, 0) as df,
            ln(1 + (chunk_count - coalesce(f.df, 0) + 0.5::float8) / (coalesce(f.df, 0) + 0.5::float8))::real as idf,
            row_number() over (partition by t.lang order by coalesce(f.df, 0) = 0, f.df, t.term) as rarity
        from unnest(langs, terms_of_langs) as t (lang, term)
        cross join lateral (select (frequencies ->> t.term::text)::float8 as df) f
    ), found as (
        select w.lang,
            '{' || string_agg(w.term || ':' || w.idf, ',') filter (where w.df > 0 and w.rarity <= 64) || '}' as elements,
            array_agg(w.term) as terms,
            -- In a small scope idf says little: in a scope of one passage, a word that it lacks would outweigh four that it has.
            array_agg(ln(1 + (greatest(chunk_count, 100) - w.df + 0.5::float8) / (w.df + 0.5::float8))::real) as idf
        from weighted w
        group by w.lang
    )
    select l.lang, (coalesce(f.elements, '{}') || '/268435456')::sparsevec, coalesce(f.terms, '{}'), coalesce(f.idf, '{}')
    from unnest(array['en', 'fr', 'simple']) with ordinality as l (lang, place)
    left join found f on f.lang = l.lang
    order by l.place;
end
$$;
revoke all on function rag.lexical_queries(text[], text[], bigint[], bigint) from public;
grant execute on function rag.lexical_queries(text[], text[], bigint[], bigint) to authenticated, rag_worker;

-- from sql/16_find_phrases.sql sha256:b069d211b83a028d50e67d348f78f2ae3dc7173510284c5c700f27737de8c3d1
-- The chunks of a scope that contain, word for word, every phrase that a question has in quotation marks; none without such
-- phrases. Case, accents, punctuation and line breaks do not matter. Only the first ten phrases count, and only the thousand
-- best chunks for their words are read.
create or replace function rag.find_phrases(
    query_text text, query_lang text, generations bigint[], chunk_count bigint, match_count int
) returns setof bigint
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    phrases text[];
    queries sparsevec[];
begin
    if query_text !~ '["“”„«]' then
        return;
    end if;
    phrases := array(
        select ' ' || btrim(regexp_replace(lower(rag.fold(m[1])), '[^[:alnum:]]+', ' ', 'g')) || ' '
        from regexp_matches(left(query_text, 2000), '["“”„«]\s*([^"“”„«»]*[[:alnum:]][^"“”„«»]*)["“”»]', 'g') as m
        limit 10);
    if phrases = '{}' then
        return;
    end if;
    queries := array(
        select q.query from rag.lexical_queries(array[array_to_string(phrases, '')], array[query_lang], generations, chunk_count) q);
    return query
    select m.chunk_id
    from rag.lexical_matches(queries, generations, 1000) m
    join rag.chunks c on c.id = m.chunk_id
    cross join lateral (
        select ' ' || regexp_replace(
            lower(rag.fold(coalesce(c.search_text, c.search_prefix || c.text))), '[^[:alnum:]]+', ' ', 'g') || ' ' as words
        offset 0) said
    where not exists (select from unnest(phrases) as p where strpos(said.words, p) = 0)
    order by m.distance, m.chunk_id
    limit match_count;
end
$$;
revoke all on function rag.find_phrases(text, text, bigint[], bigint, int) from public;
grant execute on function rag.find_phrases(text, text, bigint[], bigint, int) to authenticated, rag_worker;

-- from sql/18_term_bucket.sql sha256:d34408bbf4ed3a61d1c16702021e1779c50ad3b6caeef1984701a75ce2e44bff
-- The row of rag.generation_terms that counts a term of a large batch, 1 … 16: its four leading bits. In a small batch, row 0
-- counts all terms.
create or replace function rag.term_bucket(term int) returns smallint
language sql immutable parallel safe
as $$
    select (1 + (term - 1 >> 24))::smallint
$$;
revoke all on function rag.term_bucket(int) from public;
grant execute on function rag.term_bucket(int) to authenticated, rag_worker;

-- from sql/23_chunk_frequencies.sql sha256:cefe888c85b90b745112eaa02ef21bf836de4ba276a2afc7e1ed31f2693c7667
-- How many chunks of a scope contain each of these different terms: {"term": number}, null if no chunk has any of them. Counts
-- are dot products of the rows of rag.generation_terms with unit vectors, or with several at once: in rows of bucket 0 no count
-- exceeds 7, so eight terms can have the weights 1, 8, 64, …, and their sum, which has at most 24 bits, is exact in `real`.
create or replace function rag.chunk_frequencies(terms int[], generations bigint[]) returns jsonb
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for every question would take longer than counting
as $$
declare
    buckets constant smallint[] := array(select 0 union all select rag.term_bucket(t) from unnest(terms) as t);
begin
    -- Two statements, because each has one right plan: look up the rows of each generation or, with many generations, the
    -- owner's buckets. `is true` prevents the first plan in the second statement.
    if cardinality(generations) <= 20 then
        return (
            with asked as materialized (
                select t.term, rag.term_bucket(t.term) as bucket, ('{' || t.term || ':1}/268435456')::sparsevec as direction
                from unnest(terms) as t (term)
            ), counted as (
                select a.term, - sum(a.direction <#> g.terms) as df
                from rag.generation_terms g join asked a on g.bucket in (0, a.bucket)
                where g.generation = any (generations) and g.bucket = any (buckets)
                group by a.term
            )
            select jsonb_object_agg(c.term, c.df) from counted c where c.df > 0);
    end if;
    return (
        with packs as materialized (
            select 0 as bucket, (t.place - 1) / 8 as pack, array_agg(t.term order by t.place) as terms,
                ('{' || string_agg(t.term || ':' || (1 << 3 * ((t.place - 1) % 8)::int), ',') || '}/268435456')::sparsevec as query
            from unnest(terms) with ordinality as t (term, place) group by 2
            union all
            select rag.term_bucket(t.term), t.place, array[t.term], ('{' || t.term || ':1}/268435456')::sparsevec
            from unnest(terms) with ordinality as t (term, place)
        ), sums as (
            select p.bucket, p.pack, - (p.query <#> g.terms) as counts, count(*) as times
            from rag.generation_terms g join packs p on p.bucket = g.bucket
            where g.bucket = any (buckets) and (g.generation in (select unnest(generations))) is true
            group by 1, 2, 3
        ), counted as (
            select t.term, sum(s.times * case s.bucket when 0 then s.counts::bigint >> 3 * (t.place - 1)::int & 7
                else s.counts::bigint end) as df
            from sums s join packs p on p.bucket = s.bucket and p.pack = s.pack
            cross join unnest(p.terms) with ordinality as t (term, place)
            where s.counts > 0
            group by t.term
        )
        select jsonb_object_agg(c.term, c.df) from counted c where c.df > 0);
end
$$;
revoke all on function rag.chunk_frequencies(int[], bigint[]) from public;
grant execute on function rag.chunk_frequencies(int[], bigint[]) to authenticated, rag_worker;

-- from sql/30_index_chunks.sql sha256:beec2bb5877e22c2b0f1180acca9a770cd78d9b7d5b5dc18fe623155f06c8da0
-- Writes the lexical index of freshly saved chunks, a batch of each generation: BM25 term weights for each chunk, chunk
-- frequencies for the batch. The worker calls it in the transaction that saves the chunks.
-- The weight of a term is tf (k1 + 1) / (tf + k1 (1 - b + b dl / 100)), with k1 0.9 and b 0.6. The length dl is compared with a
-- fixed 100 terms, about one default chunk, so that the vector of a chunk depends on that chunk alone.
create or replace function rag.index_chunks(chunk_ids bigint[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    with lexemes as materialized (
        select c.id, c.generation, c.owner_id, c.lang, l.terms, l.frequencies, l.length
        from rag.chunks c
        cross join lateral (
            select array_agg(x.term) as terms, array_agg(x.frequency) as frequencies, sum(x.frequency) as length
            from rag.lexemes(c.lang, coalesce(c.search_text, c.search_prefix || c.text)) x
        ) l
        where c.id = any (chunk_ids)
    ), batches as (
        select l.generation, l.owner_id, min(l.id) as first_chunk_id, count(*) as chunk_count from lexemes l group by 1, 2
    ), counted as (
        select l.generation, t.term, count(*) as frequency, count(*) over (partition by l.generation) as term_count
        from lexemes l cross join unnest(l.terms) as t (term) group by 1, 2
    ), counts as (
        insert into rag.generation_terms (generation, bucket, first_chunk_id, owner_id, terms)
        select b.generation, k.bucket, b.first_chunk_id, b.owner_id,
            ('{' || string_agg(c.term || ':' || c.frequency, ',') || '}/268435456')::sparsevec
        from batches b
        join counted c on c.generation = b.generation
        -- A row of bucket 0 counts at most 7 chunks (see rag.chunk_frequencies), and fits into a page of the table.
        cross join lateral (
            select case when b.chunk_count <= 7 and c.term_count <= 900 then 0 else rag.term_bucket(c.term) end as bucket) k
        group by 1, 2, 3, 4
    ), indexed as (
        insert into rag.chunk_terms (chunk_id, generation, owner_id, lang, terms)
        select l.id, l.generation, l.owner_id, l.lang, (coalesce(weights.list, '{}') || '/268435456')::sparsevec
        from lexemes l
        cross join lateral (
            -- Four decimals are enough for a ranking. Arithmetic in `numeric` would take three times as long.
            select '{' || string_agg(t.term || ':' || round(
                1.9e4::float8 * t.frequency / (t.frequency + 0.9::float8 * (0.4::float8 + 0.006::float8 * l.length))) / 1e4::float8,
                ',') || '}' as list
            from unnest(l.terms, l.frequencies) as t (term, frequency)
        ) weights
        order by l.id
        returning 1
    )
    select count(*)::int from indexed
$$;
revoke all on function rag.index_chunks(bigint[]) from public;
grant execute on function rag.index_chunks(bigint[]) to rag_worker;
