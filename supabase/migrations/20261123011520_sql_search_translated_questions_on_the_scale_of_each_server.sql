-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/11_lexical_queries.sql sha256:d14434c8da155be1234b4ead2fb70818be292a449e0d2fe9bb970e9aaaf0545e
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
    -- Two statements, because each has one right plan: one index lookup for each generation and term, or, with many generations,
    -- the owner's index by term. `+ 0` prevents the first plan in the second statement.
    if cardinality(generations) <= 20 then
        select jsonb_object_agg(f.term, f.df) into frequencies from (
            select g.term, sum(g.chunk_frequency) as df from rag.generation_terms g
            where g.generation = any (generations) and g.term = any (terms_of_langs) group by 1) f;
    else
        select jsonb_object_agg(f.term, f.df) into frequencies from (
            select g.term, sum(g.chunk_frequency) as df from rag.generation_terms g
            where g.term = any (terms_of_langs) and g.generation + 0 in (select unnest(generations)) group by 1) f;
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

-- from sql/16_find_phrases.sql sha256:2d9ec1d14d114ef391ae20b8d7453839fb0464d27990ac2f56ae5c11456ce9ec
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
        select ' ' || regexp_replace(lower(rag.fold(c.search_text)), '[^[:alnum:]]+', ' ', 'g') || ' ' as words offset 0) said
    where not exists (select from unnest(phrases) as p where strpos(said.words, p) = 0)
    order by m.distance, m.chunk_id
    limit match_count;
end
$$;
revoke all on function rag.find_phrases(text, text, bigint[], bigint, int) from public;
grant execute on function rag.find_phrases(text, text, bigint[], bigint, int) to authenticated, rag_worker;

-- from sql/19_hybrid_search_v2.sql sha256:aa03a3c81f6e8ad6b78626240c94867adff03b994d9dcaa18d8b3e721861a88f
-- Searches by words and by meaning in one statement. It fuses three rankings by weighted reciprocal rank fusion (Cormack et al.
-- 2009): BM25 (a sparse dot product), cosine similarity (a ranking for each embedding), and the blend of the two scores,
-- because ranks alone lose how sure each arm was. Ties are broken by chunk id. Chunks that contain the phrases that the
-- question has in quotation marks come before all others.
-- `query_texts` are the question and its translations, each in its language of `query_langs`. `embeddings` are unit vectors of
-- them, each from its server of `server_ids`, weighted by `server_weights`. Cosines from the server's floor to its ceiling become
-- similarities of 0 to 1, so that the similarities of two servers can be compared. An empty question leaves the lexical arm out;
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
    question record;
    queries sparsevec[] := '{}';
    term_langs text[] := '{}';
    terms int[] := '{}';
    idfs real[] := '{}';
    quoting bigint[];
begin
    select * into scope from rag.search_scope(document_ids, notebook_id, note_id, filters);
    for question in select * from rag.lexical_queries(query_texts, query_langs, scope.generations, scope.chunk_count) loop
        queries := queries || question.query;
        term_langs := term_langs || array_fill(question.lang, array[cardinality(question.terms)]);
        terms := terms || question.terms;
        idfs := idfs || question.idf;
    end loop;
    quoting := array(
        select rag.find_phrases(query_texts[1], query_langs[1], scope.generations, scope.chunk_count, arm_count));
    return query
    with servers as materialized (
        select * from unnest(server_ids, embeddings, server_weights, similarity_floors, similarity_ceilings) with ordinality
            as s (server_id, embedding, weight, floor, ceiling, place)
    ), question_terms as materialized (
        select q.lang, ('{' || q.term || ':1}/268435456')::sparsevec as direction, q.idf::float8 as idf
        from unnest(term_langs, terms, idfs) as q (lang, term, idf)
    ), dense as materialized (
        select n.chunk_id, s.weight, (- n.distance - s.floor) / (s.ceiling - s.floor) as similarity,
            row_number() over (partition by s.place order by n.distance, n.chunk_id)::int as rank
        from servers s
        cross join lateral rag.nearest_chunks(s.server_id, s.embedding, scope.generations, scope.chunk_count, arm_count) n
    ), lexical as materialized (
        select m.chunk_id, - m.distance as score, row_number() over (order by m.distance, m.chunk_id)::int as rank
        from rag.lexical_matches(queries, scope.generations, arm_count) m
    ), candidates as materialized (
        select u.chunk_id, min(u.fts_rank) as fts_rank, min(u.fts_score) as fts_score,
            min(u.vector_rank) as vector_rank, max(u.weight) as weight
        from (
            select l.chunk_id, l.rank as fts_rank, l.score as fts_score, null::int as vector_rank, null::real as weight
            from lexical l
            union all
            select d.chunk_id, null, null, d.rank, d.weight from dense d
            union all
            select p.chunk_id, null, null, null, null from unnest(quoting) as p (chunk_id)
        ) u
        group by u.chunk_id
    ), scored as materialized (
        -- A chunk that only one arm found gets its score in the other arm here.
        select c.chunk_id, c.fts_rank, c.vector_rank, c.weight, t.lang, t.terms,
            case when t.lang = 'simple' or t.lang = any (query_langs) or 'simple' = any (query_langs) then 1
                else foreign_fts_weight end as words_weight,
            coalesce(c.fts_score, - rag.lexical_distance(queries, t.lang, t.terms)) as fts_score,
            (
                select max((- (v.embedding <#> s.embedding) - s.floor) / (s.ceiling - s.floor))
                from rag.chunk_vectors v join servers s on s.server_id = v.server_id
                where v.chunk_id = c.chunk_id
            ) as similarity
        from candidates c
        join rag.chunk_terms t on t.chunk_id = c.chunk_id
    ), blended as materialized (
        select s.*, (1 - (1 - blend_alpha) * s.words_weight) * coalesce(s.similarity, 0) + (1 - blend_alpha) * s.words_weight
            * coalesce(s.fts_score / nullif(max(s.fts_score) over (), 0), 0) as blend_score
        from scored s
    ), ranked as materialized (
        select b.*, row_number() over (order by b.blend_score desc, b.chunk_id)::int as blend_rank from blended b
    ), fused as materialized (
        select r.*, coalesce(fts_weight * r.words_weight / (rrf_k + r.fts_rank), 0)
            + coalesce(vector_weight * r.weight / (rrf_k + r.vector_rank), 0)
            + blend_weight / (rrf_k + r.blend_rank) as score, r.chunk_id = any (quoting) as is_quoting
        from ranked r
        order by is_quoting desc, score desc, r.chunk_id
        limit match_count
    )
    select f.chunk_id, case when g.note_id is null then 'document' else 'note' end, coalesce(g.document_id, g.note_id),
        c.chunk_index, coalesce(d.file_name, nullif(n.title, ''), substring(n.content from '[^\s#][^\r\n]{0,79}')),
        coalesce(d.title, nullif(n.title, '')), coalesce(d.file_type, 'md'),
        c.page_start, c.page_end, c.start_offset, c.end_offset, c.section_title, c.text, c.lang,
        f.score, f.fts_rank, f.fts_score, f.vector_rank, case when f.similarity is not null then least(greatest(f.similarity, 0), 1) end, f.blend_score,
        coalesce(coverage.share, 0), scope.source_count, scope.chunk_count, c.markdown, f.blend_rank
    from fused f
    join rag.chunks c on c.id = f.chunk_id
    join rag.generations g on g.id = c.generation
    left join rag.documents d on d.id = g.document_id
    left join rag.notes n on n.id = g.note_id
    -- Coverage: the idf-weighted share of the question's terms that this passage contains.
    left join lateral (
        select sum(q.idf) filter (where f.terms <#> q.direction < 0) / nullif(sum(q.idf), 0) as share
        from question_terms q where q.lang = c.lang
    ) coverage on true
    order by f.is_quoting desc, f.score desc, f.chunk_id;
end
$$;
revoke all on function rag.hybrid_search_v2(
    text[], text[], uuid[], extensions.halfvec[], real[], real[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real,
    real, real, real) from public;
grant execute on function rag.hybrid_search_v2(
    text[], text[], uuid[], extensions.halfvec[], real[], real[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real,
    real, real, real) to authenticated, rag_worker;

-- from sql/20_hybrid_search.sql sha256:73b319fab652f8d5c7f6de9fc321cdd0881fd8f4e5ed3ed37b83ef9381ae1a09
-- The search of the previous release, which knew neither translations nor scales; its handlers may still run while a release is
-- deployed. The next release drops it.
create or replace function rag.hybrid_search(
    query_text text,
    query_lang text default 'simple',
    server_ids uuid[] default '{}',
    embeddings extensions.halfvec[] default '{}',
    server_weights real[] default '{}',
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
    rrf_k real default 10
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select * from rag.hybrid_search_v2(
        array[query_text], array[query_lang], server_ids, embeddings, server_weights,
        array_fill(0::real, array[cardinality(server_ids)]), array_fill(1::real, array[cardinality(server_ids)]),
        document_ids, notebook_id, note_id, filters, match_count, arm_count, fts_weight, vector_weight, blend_weight,
        blend_alpha, rrf_k)
$$;
revoke all on function rag.hybrid_search(
    text, text, uuid[], extensions.halfvec[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real, real, real)
    from public;
grant execute on function rag.hybrid_search(
    text, text, uuid[], extensions.halfvec[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real, real, real)
    to authenticated, rag_worker;

-- from sql/21_search_chunks_fts.sql sha256:c173fc46d0c49305a601383f18133bf7fa60f4842925f8a6107a8be452999a55
-- Full text search alone: the lexical arm of rag.hybrid_search_v2. A chunk needs one term of the question, and BM25 ranks them.
-- There is no operator syntax, so no question can be a syntax error. Without `match_count` the setting of that name counts, or 20.
create or replace function rag.search_chunks_fts(
    query_text text,
    query_lang text default 'simple',
    match_count int default null,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select h.*
    from (
        select coalesce(match_count, (select s.value::int from rag.settings s where s.key = 'match_count'), 20) as count
    ) wanted, lateral rag.hybrid_search_v2(
        array[query_text], array[query_lang], document_ids => document_ids, notebook_id => notebook_id, note_id => note_id,
        filters => filters, match_count => wanted.count, arm_count => wanted.count, blend_weight => 0) h
$$;
revoke all on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;

-- from sql/22_match_chunks.sql sha256:73f641a17ef5fe5fc87bc749786d8e2588f1cb36d5d163d379731043b47ff962
-- Vector search alone: the dense arm of rag.hybrid_search_v2, for passages at least `match_threshold` similar to the question
-- on the scale of the server.
-- Without `match_count` or `match_threshold` the settings of those names count, or 20 and 0.3.
create or replace function rag.match_chunks(
    query_embedding extensions.halfvec,
    server_id uuid,
    match_count int default null,
    match_threshold real default null,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select h.*
    from (
        select coalesce(match_count, (select s.value::int from rag.settings s where s.key = 'match_count'), 20) as count,
            coalesce(match_threshold, (select s.value::real from rag.settings s where s.key = 'match_threshold'), 0.3)
                as threshold
    ) wanted, rag.embedding_servers e, lateral rag.hybrid_search_v2(
        array[''], array['simple'], array[e.id], array[query_embedding], array[1], array[e.similarity_floor],
        array[e.similarity_ceiling], document_ids => document_ids, notebook_id => notebook_id, note_id => note_id, filters => filters,
        match_count => wanted.count, arm_count => wanted.count, blend_weight => 0) h
    where e.id = server_id and h.similarity >= wanted.threshold
$$;
revoke all on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb)
    to authenticated, rag_worker;
