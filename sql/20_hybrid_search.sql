-- Searches by words and by meaning in one statement. It fuses three rankings by weighted reciprocal rank fusion (Cormack et al.
-- 2009): BM25 (a sparse dot product), cosine similarity (a ranking for each embedding server), and the blend of the two scores,
-- because ranks alone lose how sure each arm was. Ties are broken by chunk id. Chunks that contain the phrases that the
-- question has in quotation marks come before all others.
-- `embeddings` are unit vectors of the question, one for each of `server_ids`, weighted by `server_weights`. An empty question
-- leaves the lexical arm out; without embeddings the dense arm is left out.
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
    for question in select * from rag.lexical_queries(query_text, query_lang, scope.generations, scope.chunk_count) loop
        queries := queries || question.query;
        term_langs := term_langs || array_fill(question.lang, array[cardinality(question.terms)]);
        terms := terms || question.terms;
        idfs := idfs || question.idf;
    end loop;
    quoting := array(select rag.find_phrases(query_text, query_lang, scope.generations, scope.chunk_count, arm_count));
    return query
    with servers as materialized (
        select s.server_id, s.embedding, s.weight from unnest(server_ids, embeddings, server_weights)
            as s (server_id, embedding, weight)
    ), question_terms as materialized (
        select q.lang, ('{' || q.term || ':1}/268435456')::sparsevec as direction, q.idf::float8 as idf
        from unnest(term_langs, terms, idfs) as q (lang, term, idf)
    ), dense as materialized (
        select n.chunk_id, s.weight, - n.distance as similarity,
            row_number() over (partition by s.server_id order by n.distance, n.chunk_id)::int as rank
        from servers s
        cross join lateral rag.nearest_chunks(s.server_id, s.embedding, scope.generations, scope.chunk_count, arm_count) n
    ), lexical as materialized (
        select m.chunk_id, - m.distance as score, row_number() over (order by m.distance, m.chunk_id)::int as rank
        from rag.lexical_matches(queries, scope.generations, arm_count) m
    ), candidates as materialized (
        select u.chunk_id, min(u.fts_rank) as fts_rank, min(u.fts_score) as fts_score,
            min(u.vector_rank) as vector_rank, min(u.similarity) as similarity, max(u.weight) as weight
        from (
            select l.chunk_id, l.rank as fts_rank, l.score as fts_score,
                null::int as vector_rank, null::float8 as similarity, null::real as weight from lexical l
            union all
            select d.chunk_id, null, null, d.rank, d.similarity, d.weight from dense d
            union all
            select p.chunk_id, null, null, null, null, null from unnest(quoting) as p (chunk_id)
        ) u
        group by u.chunk_id
    ), scored as materialized (
        -- A chunk that only one arm found gets its score in the other arm here; the subqueries run for no other chunk.
        select c.chunk_id, c.fts_rank, c.vector_rank, c.weight,
            coalesce(c.fts_score, (
                select - rag.lexical_distance(queries, t.lang, t.terms)
                from rag.chunk_terms t where t.chunk_id = c.chunk_id)) as fts_score,
            coalesce(c.similarity, (
                select - (v.embedding <#> s.embedding)
                from rag.chunk_vectors v join servers s on s.server_id = v.server_id
                where v.chunk_id = c.chunk_id)) as similarity
        from candidates c
    ), blended as materialized (
        select s.*, blend_alpha * coalesce(s.similarity, 0)
            + (1 - blend_alpha) * coalesce(s.fts_score / nullif(max(s.fts_score) over (), 0), 0) as blend_score
        from scored s
    ), ranked as materialized (
        select b.*, row_number() over (order by b.blend_score desc, b.chunk_id)::int as blend_rank from blended b
    ), fused as materialized (
        select r.*, coalesce(fts_weight / (rrf_k + r.fts_rank), 0)
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
        f.score, f.fts_rank, f.fts_score, f.vector_rank, f.similarity, f.blend_score,
        coalesce(coverage.share, 0), scope.source_count, scope.chunk_count, c.markdown, f.blend_rank
    from fused f
    join rag.chunks c on c.id = f.chunk_id
    join rag.generations g on g.id = c.generation
    left join rag.documents d on d.id = g.document_id
    left join rag.notes n on n.id = g.note_id
    join rag.chunk_terms t on t.chunk_id = f.chunk_id
    -- Coverage: the idf-weighted share of the question's terms that this passage contains.
    left join lateral (
        select sum(q.idf) filter (where t.terms <#> q.direction < 0) / nullif(sum(q.idf), 0) as share
        from question_terms q where q.lang = c.lang
    ) coverage on true
    order by f.is_quoting desc, f.score desc, f.chunk_id;
end
$$;
revoke all on function rag.hybrid_search(
    text, text, uuid[], extensions.halfvec[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real, real, real)
    from public;
grant execute on function rag.hybrid_search(
    text, text, uuid[], extensions.halfvec[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real, real, real)
    to authenticated, rag_worker;
