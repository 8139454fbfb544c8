-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/11_lexical_queries.sql sha256:548024d5dbeafba6cb1138eb32edda611d67ad57faa04f2dbd7c0b1867781c0f
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
    distinct_terms int[];
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
    distinct_terms := array(select distinct unnest(terms_of_langs));
    if rag.prefers_posting_lists(chunk_count) then
        frequencies := rag.posting_frequencies(distinct_terms, generations);
    else
        frequencies := rag.chunk_frequencies(distinct_terms, generations);
    end if;
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

-- from sql/15_nearest_chunks.sql sha256:d15b56a2082cf8adc58923c9a961c912b8c6aff8b5d4b3f8f32c95cc8693e202
-- The chunks of a scope nearest to a question, nearest first: from an index where there is one and its result can be trusted, and
-- otherwise by exact comparison. An index that filters by scope afterwards misses most of the nearest chunks when a question is
-- off the subjects of the scope, because other people's chunks are nearer. So its result counts only if half of it is in scope.
create or replace function rag.nearest_chunks(
    server_id uuid, embedding extensions.halfvec, generations bigint[], chunk_count bigint, match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
as $$
#variable_conflict use_column
declare
    row_count constant int := 1000; -- the most that a search of the index can find; recall grows with it
    total_count bigint;
begin
    if rag.prefers_vector_index(chunk_count, 0) then
        select c.reltuples into total_count
        from pg_class c join pg_index i on i.indexrelid = c.oid
        where c.oid = to_regclass('rag.chunk_vectors_hnsw_' || replace(server_id::text, '-', '')) and i.indisvalid;
        if rag.prefers_vector_index(chunk_count, total_count) then
            return query
            with nearest as materialized (
                select h.chunk_id, h.distance, count(*) over () as found
                from rag.nearest_chunks_hnsw(server_id, embedding, generations, row_count) h
            )
            select n.chunk_id, n.distance from nearest n where n.found >= row_count / 2
            order by 2, 1 limit match_count;
            if found then
                return;
            end if;
        end if;
    end if;
    return query select * from rag.nearest_chunks_exact(server_id, embedding, generations, match_count);
end
$$;
revoke all on function rag.nearest_chunks(uuid, extensions.halfvec, bigint[], bigint, int) from public;
grant execute on function rag.nearest_chunks(uuid, extensions.halfvec, bigint[], bigint, int) to authenticated, rag_worker;

-- from sql/16_find_phrases.sql sha256:0a4c047b1b70c077fd697ff5c980b7e226855cd88cd8c3e9438aca80c277a209
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
    from rag.matching_chunks(queries, generations, chunk_count, 1000) m
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

-- from sql/19_hybrid_search_v2.sql sha256:246729aac41d3c7410410b1bda9176ea4211e3c7a6e65a4d65dd686c44c5e739
-- Searches by words and by meaning in one statement. It fuses three rankings by weighted reciprocal rank fusion (Cormack et al.
-- 2009): BM25 (a sparse dot product), cosine similarity (a ranking for each embedding), and the blend of the two scores,
-- because ranks alone lose how sure each arm was. Ties are broken by chunk id. Chunks that contain the phrases that the
-- question has in quotation marks come before all others.
-- `query_texts` are the question and its translations, each in its language of `query_langs`. `embeddings` are unit vectors of
-- them, each from its server of `server_ids`, weighted by `server_weights`. Cosines from a floor to a ceiling become similarities
-- of 0 to 1, so that those of two servers or languages can be compared; `similarity_floors` and `similarity_ceilings` are three
-- for each embedding, for passages in English, French, and any other language. An empty question leaves the lexical arm out;
-- without embeddings the dense arm is left out.
-- A foreign chunk, in a language that the question was not put in, shares little more than names with it. Its words count only
-- `foreign_fts_weight` of what they count elsewhere, and the similarity takes their place in the blend.
create or replace function rag.hybrid_search_v2(
    query_texts text[],
    query_langs text[],
    server_ids uuid[] default '{}',
    embeddings extensions.halfvec[] default '{}',
    server_weights real[] default '{}',
    similarity_floors real[] default '{}',
    similarity_ceilings real[] default '{}',
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}',
    match_count int default 24,
    arm_count int default 50,
    fts_weight real default 1,
    vector_weight real default 1,
    blend_weight real default 10,
    blend_alpha real default 0.6,
    rrf_k real default 10,
    foreign_fts_weight real default 1
) returns setof rag.search_hit
language plpgsql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- one plan is right for every scope, and planning takes longer than a small search
as $$
declare
    scope record;
    quoting bigint[];
begin
    select * into scope from rag.search_scope(document_ids, notebook_id, note_id, filters);
    quoting := array(
        select rag.find_phrases(query_texts[1], query_langs[1], scope.generations, scope.chunk_count, arm_count));
    return query
    -- A subquery that is used once costs less than a materialized one.
    with servers as materialized (
        select * from unnest(server_ids, embeddings, server_weights) with ordinality as s (server_id, embedding, weight, place)
    ), questions as materialized (
        select * from rag.lexical_queries(query_texts, query_langs, scope.generations, scope.chunk_count)
    ), question_terms as materialized (
        select q.lang, ('{' || t.term || ':1}/268435456')::sparsevec as direction, t.idf::float8 as idf
        from questions q cross join lateral unnest(q.terms, q.idf) as t (term, idf)
    ), found as (
        select m.chunk_id, m.rank as fts_rank, - m.distance as fts_score, null::bigint as vector_rank, null::real as weight,
            null::float8 as cosine
        from rag.matching_chunks(array(select q.query from questions q), scope.generations, scope.chunk_count, arm_count)
            with ordinality as m (chunk_id, distance, rank)
        union all
        select n.chunk_id, null, null, n.rank, s.weight, - n.distance
        from servers s
        cross join lateral rag.nearest_chunks(s.server_id, s.embedding, scope.generations, scope.chunk_count, arm_count)
            with ordinality as n (chunk_id, distance, rank)
        union all
        select p.chunk_id, null, null, null, null, null from unnest(quoting) as p (chunk_id)
    ), candidates as (
        select u.chunk_id, min(u.fts_rank)::int as fts_rank, min(u.fts_score) as fts_score,
            min(u.vector_rank)::int as vector_rank, max(u.weight) as weight, max(u.cosine) as cosine
        from found u
        group by u.chunk_id
    ), scored as (
        -- A chunk that only one arm found gets its score in the other arm here. With one vector, the similarity of a chunk that
        -- the dense arm found is known; with several, it is the best of them.
        select c.chunk_id, c.fts_rank, c.vector_rank, c.weight,
            case when t.lang = 'simple' or t.lang = any (query_langs) or 'simple' = any (query_langs) then 1
                else foreign_fts_weight end as words_weight,
            coalesce(c.fts_score, - rag.lexical_distance(array(select q.query from questions q), t.lang, t.terms)) as fts_score,
            coalesce(
                case when cardinality(server_ids) = 1 then (c.cosine - similarity_floors[l.place])
                    / (similarity_ceilings[l.place] - similarity_floors[l.place]) end, (
                select max((- (v.embedding <#> s.embedding) - similarity_floors[p.place])
                    / (similarity_ceilings[p.place] - similarity_floors[p.place]))
                from rag.chunk_vectors v
                join servers s on s.server_id = v.server_id
                cross join lateral (select 3 * (s.place - 1) + l.place as place) p
                where v.chunk_id = c.chunk_id
            )) as similarity,
            -- Coverage: the idf-weighted share of the question's terms that this passage contains.
            coalesce((
                select sum(q.idf) filter (where t.terms <#> q.direction < 0) / nullif(sum(q.idf), 0)
                from question_terms q where q.lang = t.lang
            ), 0) as coverage
        from candidates c
        join rag.chunk_terms t on t.chunk_id = c.chunk_id
        cross join lateral (select case t.lang when 'en' then 1 when 'fr' then 2 else 3 end as place) l
        offset 0 -- computes each score once
    ), blended as (
        -- The best BM25 score says nothing where no passage has many of the question's words, so coverage is half of the score.
        select s.*, (1 - (1 - blend_alpha) * s.words_weight) * coalesce(s.similarity, 0) + (1 - blend_alpha) * s.words_weight
            * 0.5 * (coalesce(s.fts_score / nullif(max(s.fts_score) over (), 0), 0) + s.coverage) as blend_score
        from scored s
    ), ranked as (
        select b.*, row_number() over (order by b.blend_score desc, b.chunk_id)::int as blend_rank from blended b
    ), fused as (
        select r.*, coalesce(fts_weight * r.words_weight / (rrf_k + r.fts_rank), 0)
            + coalesce(vector_weight * r.weight / (rrf_k + r.vector_rank), 0)
            + blend_weight / (rrf_k + r.blend_rank) as score, r.chunk_id = any (quoting) as is_quoting
        from ranked r
        order by is_quoting desc, score desc, r.chunk_id
        limit match_count
    )
    select f.chunk_id, case when d.id is null then 'note' else 'document' end, coalesce(d.id, n.id),
        c.chunk_index, coalesce(d.file_name, nullif(n.title, ''), substring(n.content from '[^\s#][^\r\n]{0,79}')),
        coalesce(d.title, nullif(n.title, '')), coalesce(d.file_type, 'md'),
        c.page_start, c.page_end, c.start_offset, c.end_offset, c.section_title, c.text, c.lang,
        f.score, f.fts_rank, f.fts_score, f.vector_rank,
        case when f.similarity is not null then least(greatest(f.similarity, 0), 1) end, f.blend_score,
        f.coverage, scope.source_count, scope.chunk_count, c.markdown, f.blend_rank
    from fused f
    join rag.chunks c on c.id = f.chunk_id
    left join rag.documents d on d.generation = c.generation
    left join rag.notes n on n.generation = c.generation
    order by f.is_quoting desc, f.score desc, f.chunk_id;
end
$$;
revoke all on function rag.hybrid_search_v2(
    text[], text[], uuid[], extensions.halfvec[], real[], real[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real,
    real, real, real) from public;
grant execute on function rag.hybrid_search_v2(
    text[], text[], uuid[], extensions.halfvec[], real[], real[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real,
    real, real, real) to authenticated, rag_worker;

-- from sql/25_prefers_posting_lists.sql sha256:7b9ba09e459b327e687329dc326364d0a89334bc2a4450550187e3667e3958d4
-- Whether a scope is so large that its words are searched in posting lists, where it has some. Reading every passage takes about
-- 1 µs a passage; the lists need some milliseconds, and writing them takes time and room.
create or replace function rag.prefers_posting_lists(scope_count bigint) returns boolean
language sql immutable parallel safe
as $$
    select scope_count > 50000
$$;
revoke all on function rag.prefers_posting_lists(bigint) from public;
grant execute on function rag.prefers_posting_lists(bigint) to authenticated, rag_worker;

-- from sql/26_segment_scope.sql sha256:b4bca5d076ca337447fc15b016565773d0b599a997f9e810208a61cd175e7e04
-- How a scope is searched by words: in the posting lists of these segments, without the chunks that are left out because they
-- are not in scope, and in the remaining generations chunk by chunk. A segment of which less than a quarter is in scope is not
-- worth it.
create or replace function rag.segment_scope(
    generations bigint[],
    out segment_ids bigint[],
    out left_out bigint[],
    out unlisted bigint[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan -- planning for thousands of generations would take longer
as $$
begin
    with joined as materialized (
        -- A full join has one plan, which reads each side once.
        select g.segment_id, g.chunk_count, g.generation as listed, w.generation as wanted
        from rag.segment_generations g full join unnest(generations) as w (generation) on w.generation = g.generation
    ), chosen as materialized (
        select j.segment_id from joined j
        group by 1 having sum(j.chunk_count) filter (where j.wanted is not null) >= sum(j.chunk_count) / 4
    )
    select array(select c.segment_id from chosen c), array(
        select c.chunk_id
        from joined j
        join chosen using (segment_id)
        join rag.segment_generations g on g.generation = j.listed
        cross join unnest(g.chunk_ids) as c (chunk_id)
        where j.wanted is null
    ), array(
        select j.wanted from joined j
        where j.wanted is not null and (j.segment_id is null or not j.segment_id in (select c.segment_id from chosen c))
    ) into segment_ids, left_out, unlisted;
end
$$;
revoke all on function rag.segment_scope(bigint[]) from public;
grant execute on function rag.segment_scope(bigint[]) to authenticated, rag_worker;

-- from sql/27_posting_frequencies.sql sha256:b82dac01f4345c5a73126bbc12fa391ec29ba7cfd308cf3e04a9f4726d503552
-- What rag.chunk_frequencies returns, for a large scope: how many of its chunks contain each of these different terms. Posting
-- lists know their lengths; chunks outside the scope are looked for in them.
create or replace function rag.posting_frequencies(terms int[], generations bigint[]) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    scope record;
    unlisted jsonb;
begin
    select * into scope from rag.segment_scope(generations);
    if scope.segment_ids = '{}' then
        return rag.chunk_frequencies(terms, generations);
    end if;
    unlisted := rag.chunk_frequencies(terms, scope.unlisted);
    return (
        with listed as (
            select p.term, sum(case scope.left_out when '{}' then p.chunk_frequency else (
                select count(*) from unnest(p.postings) as l (posting)
                where not l.posting >> 15 in (select unnest(scope.left_out))) end) as df
            from unnest(terms) as t (term)
            cross join lateral (
                select p.* from rag.posting_lists p
                where p.segment_id = any (scope.segment_ids) and p.term = t.term
                offset 0 -- leaves one plan: look each term up in each segment
            ) p
            group by p.term
        )
        select jsonb_object_agg(t.term, c.df)
        from unnest(terms) as t (term)
        left join listed l on l.term = t.term
        cross join lateral (select coalesce(l.df, 0) + coalesce((unlisted ->> t.term::text)::bigint, 0) as df) c
        where c.df > 0);
end
$$;
revoke all on function rag.posting_frequencies(int[], bigint[]) from public;
grant execute on function rag.posting_frequencies(int[], bigint[]) to authenticated, rag_worker;

-- from sql/28_posting_matches.sql sha256:01723c766e7a3af841c36fb83baeeb8e3943d1f3a8a8c59ec48f9187f54d489b
-- What rag.lexical_matches returns, for a large scope, from posting lists: exactly the best chunks, without reading the others.
-- The terms of the question are read rarest first. A chunk that is not among the best `candidate_count` for the terms read so far
-- has at most the score of the last of them, plus `rest`, the most that the other terms can add (Turtle and Flood 1995,
-- "MaxScore"). When that is less than the score of the last match, no other chunk can be a match. Where it cannot be shown,
-- because hundreds of chunks have the same score, every chunk is read.
create or replace function rag.posting_matches(
    queries extensions.sparsevec[], generations bigint[], match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan
set work_mem = '64MB' -- for the sums of half a million chunks
as $$
#variable_conflict use_column
declare
    candidate_count constant int := 500 + 4 * match_count;
    scope record;
    asked record;
    term_count int := 0; -- how many terms are read
    rest float8;
    best record;
    least_score float8; -- of the last match, at least
begin
    select * into scope from rag.segment_scope(generations);
    if scope.segment_ids = '{}' then
        return query select * from rag.lexical_matches(queries, generations, match_count);
        return;
    end if;
    -- `rests` are the most that a term and all after it can add to a chunk, which has one language.
    select coalesce(array_agg(r.lang order by r.place), '{}') as langs, coalesce(array_agg(r.term order by r.place), '{}') as terms,
        array_agg(r.idf order by r.place) as idfs, array_agg(r.read order by r.place) as reads,
        array_agg(r.rest order by r.place) as rests
    into asked
    from (
        select l.*, row_number() over rarest_first as place, sum(l.frequency) over rarest_first as read,
            greatest(
                sum(l.bound) filter (where l.lang = 1) over commonest_first,
                sum(l.bound) filter (where l.lang = 2) over commonest_first,
                sum(l.bound) filter (where l.lang = 3) over commonest_first) as rest
        from (
            select q.lang, q.term, q.idf, sum(p.chunk_frequency) as frequency, q.idf * max(p.max_weight) as bound
            from (
                select v.lang::smallint, split_part(e.element, ':', 1)::int as term, split_part(e.element, ':', 2)::float8 as idf
                from unnest(queries) with ordinality as v (query, lang)
                cross join string_to_table(split_part(ltrim(v.query::text, '{'), '}', 1), ',') as e (element)
                where e.element <> ''
            ) q
            cross join lateral (
                select p.chunk_frequency, p.max_weight from rag.posting_lists p
                where p.segment_id = any (scope.segment_ids) and p.term = q.term and p.lang = q.lang
                offset 0 -- leaves one plan: look each term up in each segment
            ) p
            group by q.lang, q.term, q.idf
        ) l
        window rarest_first as (order by l.frequency, l.term, l.lang),
            commonest_first as (order by l.frequency desc, l.term desc, l.lang desc)
    ) r;
    if asked.terms = '{}' then
        return query select * from rag.lexical_matches(queries, scope.unlisted, match_count);
        return;
    end if;
    while term_count < cardinality(asked.terms) loop
        -- First the terms that few chunks have, to learn what score the last match has at least. Then all but the commonest
        -- terms, which together weigh little beside that score; then all.
        term_count := case
            when least_score is null then (
                select min(p.place) from unnest(asked.reads) with ordinality as p (read, place)
                where p.read >= candidate_count or p.place = cardinality(asked.terms))
            else coalesce((
                select min(p.place) - 1 from unnest(asked.rests) with ordinality as p (rest, place)
                where p.rest < least_score / 4 and p.place > term_count + 1), cardinality(asked.terms)) end;
        rest := coalesce(asked.rests[term_count + 1], 0);
        with summed as (
            select l.posting >> 15 as chunk_id, sum((l.posting & 32767) * l.unit) as score
            from (
                select unnest(p.postings) as posting, q.idf / 10000 as unit
                from unnest(asked.langs[:term_count], asked.terms[:term_count], asked.idfs[:term_count]) as q (lang, term, idf)
                cross join lateral (
                    select p.postings from rag.posting_lists p
                    where p.segment_id = any (scope.segment_ids) and p.term = q.term and p.lang = q.lang
                    offset 0
                ) p
            ) l
            where not l.posting >> 15 in (select unnest(scope.left_out))
            group by 1
            order by 2 desc
            limit candidate_count
        ), candidates as (
            select s.chunk_id, s.score as partial_score, - rag.lexical_distance(queries, t.lang, t.terms) as score
            from summed s join rag.chunk_terms t on t.chunk_id = s.chunk_id
            offset 0
        ), ranked as (
            select c.* from candidates c order by c.score desc, c.chunk_id limit match_count
        )
        select array_agg(b.chunk_id) as chunk_ids, array_agg(b.score) as scores,
            case when count(*) = match_count then min(b.score) else 0 end as score,
            (select case when count(*) = candidate_count then min(c.partial_score) else 0 end from candidates c) as others
        into best
        from ranked b;
        least_score := best.score;
        if best.others + rest = 0 or best.others + rest + 0.001 < least_score then
            return query
            select m.chunk_id, m.distance
            from (
                select f.chunk_id, - f.score as distance from unnest(best.chunk_ids, best.scores) as f (chunk_id, score)
                union all
                select u.chunk_id, u.distance from rag.lexical_matches(queries, scope.unlisted, match_count) u
            ) m
            order by 2, 1
            limit match_count;
            return;
        end if;
    end loop;
    return query select * from rag.lexical_matches(queries, generations, match_count);
end
$$;
revoke all on function rag.posting_matches(extensions.sparsevec[], bigint[], int) from public;
grant execute on function rag.posting_matches(extensions.sparsevec[], bigint[], int) to authenticated, rag_worker;

-- from sql/29_matching_chunks.sql sha256:14b123c86871695d7d26d151794598ef6ed8ab159a104ac2d850361fe94a4c46
-- The best chunks of a scope for the words of a question, best first: from posting lists where the scope is large, and otherwise by
-- reading every chunk. Both find the same.
create or replace function rag.matching_chunks(
    queries extensions.sparsevec[], generations bigint[], chunk_count bigint, match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
as $$
#variable_conflict use_column
begin
    if rag.prefers_posting_lists(chunk_count) then
        return query select * from rag.posting_matches(queries, generations, match_count);
    else
        return query select * from rag.lexical_matches(queries, generations, match_count);
    end if;
end
$$;
revoke all on function rag.matching_chunks(extensions.sparsevec[], bigint[], bigint, int) from public;
grant execute on function rag.matching_chunks(extensions.sparsevec[], bigint[], bigint, int) to authenticated, rag_worker;

-- from sql/55_forget_user.sql sha256:929bb7845cf708086dddccc9ec1e497cb0890eae691b8f1f75f3bda9f7452450
-- Deletes everything of one user: at most `batch_size` documents, notes and conversations in a call, and with the last of them
-- every other row that has the user's id. Returns the number of deleted rows of each kind, the paths of the stored objects,
-- which the caller then removes, and `is_done`; call it until that is true. Repeating it is safe and deletes what was added
-- meanwhile.
create or replace function rag.forget_user(user_id uuid, batch_size int) returns jsonb
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    doomed uuid[];
    paths jsonb;
    receipt jsonb := '{}';
    removed bigint;
    is_done boolean;
begin
    -- Notes are locked before documents, and each kind by id, as in rag.delete_sources.
    select array_agg(n.id) into doomed
    from (select id from rag.notes where owner_id = user_id order by id limit batch_size for update) n;
    delete from rag.notes n where n.id = any (doomed);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('notes', removed);

    -- Duplicates are deleted with the document that answers for them.
    select array_agg(d.id) into doomed
    from (
        select d.id from rag.documents d
        where d.owner_id = user_id and coalesce(d.duplicate_of, d.id) in (
            select first.id from rag.documents first
            where first.owner_id = user_id and first.duplicate_of is null order by first.id limit batch_size)
        order by d.id for update
    ) d;
    select coalesce(jsonb_agg(d.object_path), '[]') into paths from rag.documents d where d.id = any (doomed);
    delete from rag.documents d where d.id = any (doomed);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('documents', removed);

    delete from rag.conversations c
    where c.id in (select id from rag.conversations where owner_id = user_id order by id limit batch_size);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('conversations', removed);

    is_done := not exists (select from rag.notes where owner_id = user_id)
        and not exists (select from rag.documents where owner_id = user_id)
        and not exists (select from rag.conversations where owner_id = user_id);
    if is_done then
        delete from rag.notebooks where owner_id = user_id;
        get diagnostics removed = row_count;
        receipt := receipt || jsonb_build_object('notebooks', removed);
        delete from rag.generations where owner_id = user_id;
        delete from rag.segments where owner_id = user_id;
        delete from rag.ingest_jobs where owner_id = user_id;
        delete from rag.usage_counters where owner_id = user_id;
        delete from rag.query_translations where owner_id = user_id;
        delete from rag.api_keys where owner_id = user_id;
        update rag.settings set updated_by = null where updated_by = user_id;
        update rag.settings_audit set changed_by = null where changed_by = user_id;
        -- Objects that were uploaded to the path of a deleted document.
        select paths || coalesce(jsonb_agg(o.name), '[]') into paths
        from storage.objects o
        where o.bucket_id = 'documents' and starts_with(o.name, user_id::text || '/') and not paths ? o.name;
    end if;
    return receipt || jsonb_build_object('object_paths', paths, 'is_done', is_done);
end
$$;
revoke all on function rag.forget_user(uuid, int) from public;
grant execute on function rag.forget_user(uuid, int) to rag_worker;

-- from sql/72_renew_segments.sql sha256:0b4eda08199987723b0bdb60fd246f7127889b74f13080ef4c2a3124e3cd9533
-- Writes the posting lists of one segment more, and returns how many chunks it has, or null when nothing is left to do. First a
-- segment with deleted generations is dissolved, so that nothing stays of their words. Then the library with most chunks outside
-- segments gets one, of up to `max_chunks` of them, if it is large (rag.prefers_posting_lists) and they are at least `min_chunks`.
create or replace function rag.renew_segments(min_chunks int default 20000, max_chunks int default 50000) returns int
language plpgsql volatile security invoker
set search_path = pg_catalog, extensions, pg_temp
set work_mem = '64MB' -- sorts some million postings
as $$
declare
    owner uuid;
    new_id bigint;
    written int;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.renew_segments', 0)); -- one at a time
    delete from rag.segments s
    where s.id in (
        select g.segment_id from rag.segment_generations g
        where not exists (select from rag.generations r where r.id = g.generation));
    select l.owner_id into owner
    from (
        select d.owner_id, d.generation, d.chunk_count from rag.documents d where d.generation is not null
        union all
        select n.owner_id, n.generation, n.chunk_count from rag.notes n where n.generation is not null
    ) l
    left join rag.segment_generations g on g.generation = l.generation
    group by 1
    having rag.prefers_posting_lists(sum(l.chunk_count)::bigint)
        and sum(l.chunk_count) filter (where g.generation is null) >= min_chunks
    order by sum(l.chunk_count) filter (where g.generation is null) desc
    limit 1;
    if owner is null then
        return null;
    end if;
    insert into rag.segments (owner_id) values (owner) returning id into new_id;
    insert into rag.segment_generations (generation, segment_id, owner_id, chunk_count, chunk_ids)
    select l.generation, new_id, owner, l.chunk_count, array(
        select t.chunk_id from rag.chunk_terms t where t.generation = l.generation order by 1)
    from (
        select o.*, sum(o.chunk_count) over (order by o.generation) as total
        from (
            select d.generation, d.chunk_count from rag.documents d where d.owner_id = owner and d.generation is not null
            union all
            select n.generation, n.chunk_count from rag.notes n where n.owner_id = owner and n.generation is not null
        ) o
        where o.chunk_count > 0 and not exists (select from rag.segment_generations g where g.generation = o.generation)
    ) l
    where l.total - l.chunk_count < max_chunks;
    insert into rag.posting_lists (segment_id, term, lang, owner_id, chunk_frequency, max_weight, postings)
    select new_id, p.term, p.lang, owner, count(*), max(p.weight) / 10000.0,
        array_agg(p.chunk_id << 15 | p.weight order by p.chunk_id)
    from (
        select t.chunk_id, case t.lang when 'en' then 1 when 'fr' then 2 else 3 end as lang,
            split_part(e.element, ':', 1)::int as term, round(10000 * split_part(e.element, ':', 2)::float8)::int as weight
        from rag.segment_generations g
        cross join unnest(g.chunk_ids) as c (id)
        join rag.chunk_terms t on t.chunk_id = c.id
        cross join string_to_table(split_part(ltrim(t.terms::text, '{'), '}', 1), ',') as e (element)
        where g.segment_id = new_id and e.element <> ''
    ) p
    group by p.term, p.lang;
    select sum(g.chunk_count) into written from rag.segment_generations g where g.segment_id = new_id;
    return written;
end
$$;
revoke all on function rag.renew_segments(int, int) from public;
grant execute on function rag.renew_segments(int, int) to rag_worker;
