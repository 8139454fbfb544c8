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
-- A translation is found under its own id, that of its chunk with a minus sign; a chunk that is found in both forms counts once,
-- with the better of its ranks and scores. `translation` is that into the question's language.
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
    ), passages as (
        select abs(b.chunk_id) as chunk_id, min(b.fts_rank) as fts_rank, max(b.fts_score) as fts_score,
            min(b.vector_rank) as vector_rank, max(b.weight) as weight, max(b.words_weight) as words_weight,
            max(b.similarity) as similarity, max(b.coverage) as coverage, max(b.blend_score) as blend_score
        from blended b
        group by 1
    ), ranked as (
        select p.*, row_number() over (order by p.blend_score desc, p.chunk_id)::int as blend_rank from passages p
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
        f.coverage, scope.source_count, scope.chunk_count, c.markdown, f.blend_rank, x.text
    from fused f
    join rag.chunks c on c.id = f.chunk_id
    left join rag.chunk_translations x on x.id = - f.chunk_id and x.lang = query_langs[1]
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
