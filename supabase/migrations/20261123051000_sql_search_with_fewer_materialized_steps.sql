-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/07_lexical_matches.sql sha256:a04c6b7650ec30af0a8e1fea7af4905b4eb22274a146d157fe28c7525801e3c5
-- The best chunks of a scope for the words of a question, best first: at most `match_count`, each with at least one of the
-- words. `queries` are those of rag.lexical_queries, `distance` is that of rag.lexical_distance.
create or replace function rag.lexical_matches(
    queries extensions.sparsevec[], generations bigint[], match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for thousands of generations would take longer than the search
as $$
#variable_conflict use_column
begin
    return query
    select m.chunk_id, m.distance
    from (
        select t.chunk_id, rag.lexical_distance(queries, t.lang, t.terms) as distance
        from rag.chunk_terms t
        where t.generation = any (generations)
        order by 2, 1
        limit match_count
    ) m
    where m.distance < 0
    order by m.distance, m.chunk_id;
end
$$;
revoke all on function rag.lexical_matches(extensions.sparsevec[], bigint[], int) from public;
grant execute on function rag.lexical_matches(extensions.sparsevec[], bigint[], int) to authenticated, rag_worker;

-- from sql/13_nearest_chunks_exact.sql sha256:94eaf629b28c6f36efc683848dac93cfabc0f287fb0d3c7d07e7622f74fc87f1
-- The chunks of a scope nearest to a question, nearest first. Every chunk is compared, so that none is missed however small the
-- scope is.
create or replace function rag.nearest_chunks_exact(
    server_id uuid, embedding extensions.halfvec, generations bigint[], match_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for thousands of generations would take longer than the search
as $$
#variable_conflict use_column
begin
    return query
    select v.chunk_id, v.embedding <#> nearest_chunks_exact.embedding
    from rag.chunk_vectors v
    where v.generation = any (generations) and v.server_id = nearest_chunks_exact.server_id
    order by 2, 1
    limit match_count;
end
$$;
revoke all on function rag.nearest_chunks_exact(uuid, extensions.halfvec, bigint[], int) from public;
grant execute on function rag.nearest_chunks_exact(uuid, extensions.halfvec, bigint[], int) to authenticated, rag_worker;

-- from sql/15_nearest_chunks.sql sha256:dcfd68f594eefe0428bceaf063fd2e107a7abcd551a1ffe2b8a04a60cdb1b80c
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
    row_count constant int := least(1000, greatest(800, 8 * match_count));
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

-- from sql/19_hybrid_search_v2.sql sha256:7d48a26e50bcd4f7c4867bba0febf1bb974f53e320fb1c187fa4137b8fba8864
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
        from rag.lexical_matches(array(select q.query from questions q), scope.generations, arm_count)
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
        select c.chunk_id, c.fts_rank, c.vector_rank, c.weight, t.lang, t.terms,
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
            )) as similarity
        from candidates c
        join rag.chunk_terms t on t.chunk_id = c.chunk_id
        cross join lateral (select case t.lang when 'en' then 1 when 'fr' then 2 else 3 end as place) l
        offset 0 -- computes each score once
    ), blended as (
        select s.*, (1 - (1 - blend_alpha) * s.words_weight) * coalesce(s.similarity, 0) + (1 - blend_alpha) * s.words_weight
            * coalesce(s.fts_score / nullif(max(s.fts_score) over (), 0), 0) as blend_score
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
        f.score, f.fts_rank, f.fts_score, f.vector_rank, case when f.similarity is not null then least(greatest(f.similarity, 0), 1) end, f.blend_score,
        coalesce(coverage.share, 0), scope.source_count, scope.chunk_count, c.markdown, f.blend_rank
    from fused f
    join rag.chunks c on c.id = f.chunk_id
    left join rag.documents d on d.generation = c.generation
    left join rag.notes n on n.generation = c.generation
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
