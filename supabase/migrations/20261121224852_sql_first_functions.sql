-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/01_text_config.sql sha256:5d65719900042da4ac0cc54c3a9b8c37709222287cc1e1a62ff2470dbd8fadaf
-- The text search configuration of a language; anything unknown is searched word by word, without stemming.
create or replace function rag.text_config(lang text) returns regconfig
language sql immutable parallel safe
as $$
    select case lang
        when 'en' then 'pg_catalog.english'::regconfig
        when 'fr' then 'pg_catalog.french'::regconfig
        else 'pg_catalog.simple'::regconfig
    end
$$;
revoke all on function rag.text_config(text) from public;
grant execute on function rag.text_config(text) to authenticated, rag_worker;

-- from sql/02_fold.sql sha256:607e0ac67d427d4cccf9da28810f5450cb08e5961b88d0b2ae8cbf450505f4b5
-- Text without accents and ligatures (é → e, œ → oe), by the Unicode decomposition, so that no extension is needed.
create or replace function rag.fold(content text) returns text
language sql immutable parallel safe
as $$
    select replace(replace(
        regexp_replace(normalize(content, NFKD), '[\u0300-\u036f]', '', 'g'), 'œ', 'oe'), 'æ', 'ae')
$$;
revoke all on function rag.fold(text) from public;
grant execute on function rag.fold(text) to authenticated, rag_worker;

-- from sql/03_term_id.sql sha256:c8d38746ce982318d4ccce24c7380d248864710bf513d102675cccd1c7826d45
-- The dimension of a lexeme in the sparse vectors, 1 … 2^28: md5, because hashtext() may change between Postgres versions.
create or replace function rag.term_id(lexeme text) returns int
language sql immutable parallel safe
as $$
    select ('x' || left(md5(lexeme), 7))::bit(28)::int + 1
$$;
revoke all on function rag.term_id(text) from public;
grant execute on function rag.term_id(text) to authenticated, rag_worker;

-- from sql/04_lexemes.sql sha256:cec58eb5e41b0ddd9e2c63e28fbccb56d2f7b661d7751c4f367429b647e48dd6
-- The terms of a text in a language, with their frequencies. Accents are folded before stemming, not after, so that a text
-- and a question meet in the same stems whether or not either has its accents. French stop words that fold into other words
-- (à, été, était, même …) are known to the stemmer with their accents only, so their stems are left out here.
create or replace function rag.lexemes(lang text, content text) returns table (term int, frequency int)
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select rag.term_id(l.lexeme), sum(coalesce(cardinality(l.positions), 1))::int
    from unnest(to_tsvector(rag.text_config(lang), rag.fold(content))) as l
    where lang is distinct from 'fr'
        or l.lexeme <> all ('{a,ete,etant,etais,etait,etaient,etion,eti,mem,fum,eum}')
    group by 1
$$;
revoke all on function rag.lexemes(text, text) from public;
grant execute on function rag.lexemes(text, text) to authenticated, rag_worker;

-- from sql/05_content_words.sql sha256:2137f016ea74e54cb5c38ccd51ef12c2147e0a17e74cd78c5a8a674a1a2fbea1
-- A question without the stop words of its own language, at most 2,000 characters of it. Other languages' stop word lists
-- would leave « quelle » or "which" in, as the rarest term of all. When nothing else is left, the words are kept.
create or replace function rag.content_words(query_text text, query_lang text) returns text
language sql stable parallel safe
as $$
    with words as (
        select p.token,
            -- ts_lexize gives an empty array for a stop word. Token types 9–14 are parts of compounds, blanks and tags.
            query_lang in ('en', 'fr') and ts_lexize(
                case query_lang when 'fr' then 'pg_catalog.french_stem' else 'pg_catalog.english_stem' end::regdictionary,
                lower(p.token)) = '{}' as is_stop_word
        from ts_parse('default', left(normalize(query_text, NFKC), 2000)) as p
        where p.tokid not between 9 and 14
    )
    select coalesce(string_agg(token, ' ') filter (where not is_stop_word), string_agg(token, ' '), '') from words
$$;
revoke all on function rag.content_words(text, text) from public;
grant execute on function rag.content_words(text, text) to authenticated, rag_worker;

-- from sql/10_search_scope.sql sha256:f999211edff24d70b4b7d9b10e21b59e0e69b1acaef5e347d904a705d2baeb34
-- The live generations a search may look at, under the caller's row level security, and how much they hold.
-- Superseded versions, trashed notes and the attachments of trashed notes are out of scope.
create or replace function rag.search_scope(
    document_ids uuid[],
    notebook_id uuid,
    note_id uuid,
    filters jsonb,
    out generations bigint[],
    out source_count int,
    out chunk_count bigint
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with sources as (
        select d.generation, d.chunk_count
        from rag.documents d
        where d.generation is not null and d.superseded_by is null
            and (search_scope.document_ids is null or d.id = any (search_scope.document_ids))
            and (search_scope.notebook_id is null or d.notebook_id = search_scope.notebook_id)
            and (search_scope.note_id is null or d.note_id = search_scope.note_id)
            and not exists (select from rag.notes n where n.id = d.note_id and n.trashed_at is not null)
            and (filters ->> 'file_type' is null or d.file_type = filters ->> 'file_type')
            and (filters ->> 'lang' is null or d.lang = filters ->> 'lang')
        union all
        select n.generation, n.chunk_count
        from rag.notes n
        where n.generation is not null and n.trashed_at is null and search_scope.document_ids is null
            and (search_scope.notebook_id is null or n.notebook_id = search_scope.notebook_id)
            and (search_scope.note_id is null or n.id = search_scope.note_id)
            and filters ->> 'file_type' is null
            and (filters ->> 'lang' is null or n.lang = filters ->> 'lang')
    )
    select coalesce(array_agg(s.generation), '{}'), count(*)::int, coalesce(sum(s.chunk_count), 0)::bigint from sources s
$$;
revoke all on function rag.search_scope(uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_scope(uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;

-- from sql/11_lexical_queries.sql sha256:3a08a1772c4dfff1b763cbe644b74655653fce2a27104bec965489c573551286
-- The question as one BM25 query vector per chunk language. The idf of each term is computed here, over the scope.
-- `terms` and `idf` are all of its terms, found or not (for coverage).
-- idf = ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene; at most the 64 rarest terms are searched.
create or replace function rag.lexical_queries(
    query_text text, query_lang text, generations bigint[], chunk_count bigint
) returns table (lang text, query extensions.sparsevec, terms int[], idf real[])
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_custom_plan -- so that the planner knows how many generations there are
as $$
#variable_conflict use_column
begin
    return query
    with question as materialized (
        select rag.content_words(query_text, query_lang) as words
    ), terms as materialized (
        select l.lang, t.term
        from question q
        cross join unnest(array['en', 'fr', 'simple']) as l (lang)
        cross join lateral rag.lexemes(l.lang, q.words) t
    ), frequencies as materialized (
        select g.term, sum(g.chunk_frequency) as df
        -- A join: `= any` of thousands of generations is planned, or compared, one by one.
        from unnest(generations) as s (generation) join rag.generation_terms g using (generation)
        where g.term = any (array(select distinct t.term from terms t))
        group by g.term
    ), weighted as (
        select t.lang, t.term, coalesce(f.df, 0) as df,
            ln(1 + (chunk_count - coalesce(f.df, 0) + 0.5) / (coalesce(f.df, 0) + 0.5))::real as idf,
            row_number() over (partition by t.lang order by coalesce(f.df, 0) = 0, f.df, t.term) as rarity
        from terms t left join frequencies f using (term)
    )
    select w.lang,
        (coalesce('{' || string_agg(w.term || ':' || w.idf, ',') filter (where w.df > 0 and w.rarity <= 64) || '}', '{}')
            || '/268435456')::sparsevec,
        array_agg(w.term),
        array_agg(w.idf)
    from weighted w
    group by w.lang;
end
$$;
revoke all on function rag.lexical_queries(text, text, bigint[], bigint) from public;
grant execute on function rag.lexical_queries(text, text, bigint[], bigint) to authenticated, rag_worker;

-- from sql/20_hybrid_search.sql sha256:4b1b1eb193f2eb9563cddf708686ee6e3d8898927587df23401374036a86e95f
-- Searches by words and by meaning in one statement, fused by weighted reciprocal rank fusion (Cormack et al. 2009).
-- Three rankings are fused: BM25 (a sparse dot product), the cosine similarity (exact, a ranking per embedding server) and
-- the blend of the two scores, because ranks alone forget how sure each arm was. Ties are broken by chunk id.
-- `embeddings` are unit vectors of the question, one for each of `server_ids`, weighted by `server_weights`.
-- An empty question leaves the lexical arm out, no embeddings leave the dense arm out. Called by core/retrieval.py.
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
set plan_cache_mode = force_custom_plan -- a generic plan would be made for no scope in particular
as $$
declare
    scope record;
    question record;
    query_en sparsevec := '{}/268435456';
    query_fr sparsevec := '{}/268435456';
    query_simple sparsevec := '{}/268435456';
    coverage_terms jsonb := '{}';
begin
    select * into scope from rag.search_scope(document_ids, notebook_id, note_id, filters);
    for question in select * from rag.lexical_queries(query_text, query_lang, scope.generations, scope.chunk_count) loop
        case question.lang
            when 'en' then query_en := question.query;
            when 'fr' then query_fr := question.query;
            else query_simple := question.query;
        end case;
        coverage_terms := coverage_terms || jsonb_build_object(
            question.lang, jsonb_build_object('terms', question.terms, 'idf', question.idf));
    end loop;
    return query
    with servers as materialized (
        select s.server_id, s.embedding, s.weight from unnest(server_ids, embeddings, server_weights)
            as s (server_id, embedding, weight)
    ), dense as materialized (
        select n.chunk_id, s.weight, row_number() over (partition by s.server_id order by n.distance, n.chunk_id)::int as rank
        from servers s
        cross join lateral (
            select v.chunk_id, v.embedding <#> s.embedding as distance
            from rag.chunk_vectors v
            where v.generation = any (scope.generations) and v.server_id = s.server_id
            order by 2, 1
            limit arm_count
        ) n
    ), lexical as materialized (
        select m.chunk_id, row_number() over (order by m.distance, m.chunk_id)::int as rank
        from (
            select t.chunk_id,
                t.terms <#> case t.lang when 'en' then query_en when 'fr' then query_fr else query_simple end as distance
            from rag.chunk_terms t
            where t.generation = any (scope.generations)
            order by 2, 1
            limit arm_count
        ) m
        where m.distance < 0
    ), candidates as materialized (
        select u.chunk_id, min(u.fts_rank) as fts_rank, min(u.vector_rank) as vector_rank, max(u.weight) as weight
        from (
            select l.chunk_id, l.rank as fts_rank, null::int as vector_rank, null::real as weight from lexical l
            union all
            select d.chunk_id, null, d.rank, d.weight from dense d
        ) u
        group by u.chunk_id
    ), scored as materialized (
        select c.*,
            - (t.terms <#> case t.lang when 'en' then query_en when 'fr' then query_fr else query_simple end) as fts_score,
            - (v.embedding <#> s.embedding) as similarity
        from candidates c
        join rag.chunk_terms t on t.chunk_id = c.chunk_id
        left join (rag.chunk_vectors v join servers s on s.server_id = v.server_id) on v.chunk_id = c.chunk_id
    ), blended as materialized (
        select s.*, blend_alpha * coalesce(s.similarity, 0)
            + (1 - blend_alpha) * coalesce(s.fts_score / nullif(max(s.fts_score) over (), 0), 0) as blend_score
        from scored s
    ), fused as materialized (
        select b.*, coalesce(fts_weight / (rrf_k + b.fts_rank), 0)
            + coalesce(vector_weight * b.weight / (rrf_k + b.vector_rank), 0)
            + blend_weight / (rrf_k + row_number() over (order by b.blend_score desc, b.chunk_id)) as score
        from blended b
        order by score desc, b.chunk_id
        limit match_count
    )
    select f.chunk_id, case when g.note_id is null then 'document' else 'note' end, coalesce(g.document_id, g.note_id),
        c.chunk_index, coalesce(d.file_name, n.title), coalesce(d.title, n.title), coalesce(d.file_type, 'md'),
        c.page_start, c.page_end, c.start_offset, c.end_offset, c.section_title, c.text, c.lang,
        f.score, f.fts_rank, f.fts_score, f.vector_rank, f.similarity, f.blend_score,
        coalesce(coverage.share, 0), scope.source_count, scope.chunk_count
    from fused f
    join rag.chunks c on c.id = f.chunk_id
    join rag.generations g on g.id = c.generation
    left join rag.documents d on d.id = g.document_id
    left join rag.notes n on n.id = g.note_id
    join rag.chunk_terms t on t.chunk_id = f.chunk_id
    -- Coverage: the idf-weighted share of the question's terms that this very passage holds.
    left join lateral (
        select sum(q.idf) filter (where t.terms <#> ('{' || q.term || ':1}/268435456')::sparsevec < 0)
            / nullif(sum(q.idf), 0) as share
        from unnest(
            array(select jsonb_array_elements_text(coverage_terms -> c.lang -> 'terms')::int),
            array(select jsonb_array_elements_text(coverage_terms -> c.lang -> 'idf')::float8)
        ) as q (term, idf)
    ) coverage on true
    order by f.score desc, f.chunk_id;
end
$$;
revoke all on function rag.hybrid_search(
    text, text, uuid[], extensions.halfvec[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real, real, real)
    from public;
grant execute on function rag.hybrid_search(
    text, text, uuid[], extensions.halfvec[], real[], uuid[], uuid, uuid, jsonb, int, int, real, real, real, real, real)
    to authenticated, rag_worker;

-- from sql/21_search_chunks_fts.sql sha256:36aebda82f555ecaf0c5ab69d8d80d4874799d3c7173dce07122110bf1154975
-- Full text search alone: the lexical arm of hybrid_search. Terms are OR-ed and ranked by BM25; no operator syntax exists,
-- so no question can be a syntax error.
create or replace function rag.search_chunks_fts(
    query_text text,
    query_lang text default 'simple',
    match_count int default 20,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select * from rag.hybrid_search(
        query_text, query_lang, document_ids => document_ids, notebook_id => notebook_id, note_id => note_id,
        filters => filters, match_count => match_count, arm_count => match_count, blend_weight => 0)
$$;
revoke all on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_chunks_fts(text, text, int, uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;

-- from sql/22_match_chunks.sql sha256:b398244746eae34e0889f0e9de01a21fdee9b000f39d55ed650da37424a76a26
-- Vector search alone: the dense arm of hybrid_search, for passages at least `match_threshold` similar to the question.
create or replace function rag.match_chunks(
    query_embedding extensions.halfvec,
    server_id uuid,
    match_count int default 20,
    match_threshold real default 0.3,
    document_ids uuid[] default null,
    notebook_id uuid default null,
    note_id uuid default null,
    filters jsonb default '{}'
) returns setof rag.search_hit
language sql stable security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    select * from rag.hybrid_search(
        '', 'simple', array[server_id], array[query_embedding], array[1], document_ids => document_ids,
        notebook_id => notebook_id, note_id => note_id, filters => filters,
        match_count => match_count, arm_count => match_count, blend_weight => 0) h
    where h.similarity >= match_threshold
$$;
revoke all on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.match_chunks(extensions.halfvec, uuid, int, real, uuid[], uuid, uuid, jsonb)
    to authenticated, rag_worker;

-- from sql/30_index_chunks.sql sha256:de8c5f3c575aa2f07863e84c5750ed79826fa0adf522756e6dbc7951e1a714f8
-- Builds the lexical index of freshly saved chunks: BM25 term weights per chunk, chunk frequencies per generation.
-- tf part = tf (k1 + 1) / (tf + k1 (1 - b + b dl / 100)), k1 0.9, b 0.6. The length is held against a fixed 100 terms, about
-- one default chunk, so that a chunk's vector depends on nothing but the chunk. Called by the worker, in the same
-- transaction as the chunks.
create or replace function rag.index_chunks(chunk_ids bigint[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    with lexemes as materialized (
        select c.id, c.generation, c.owner_id, c.lang, l.term, l.frequency,
            sum(l.frequency) over (partition by c.id) as length
        from rag.chunks c left join lateral rag.lexemes(c.lang, c.search_text) l on true
        where c.id = any (chunk_ids)
    ), counted as (
        insert into rag.generation_terms as g (generation, owner_id, term, chunk_frequency)
        select l.generation, l.owner_id, l.term, count(*) from lexemes l where l.term is not null group by 1, 2, 3
        order by 1, 3 -- one lock order for all writers
        on conflict (generation, term) do update set chunk_frequency = g.chunk_frequency + excluded.chunk_frequency
    ), indexed as (
        insert into rag.chunk_terms (chunk_id, generation, owner_id, lang, terms)
        select l.id, l.generation, l.owner_id, l.lang,
            (coalesce('{' || string_agg(
                l.term || ':' || round((l.frequency * 1.9 / (l.frequency + 0.9 * (0.4 + 0.6 * l.length / 100.0)))::numeric, 5), ',')
                || '}', '{}') || '/268435456')::sparsevec
        from lexemes l group by l.id, l.generation, l.owner_id, l.lang order by l.id
        returning 1
    )
    select count(*)::int from indexed
$$;
revoke all on function rag.index_chunks(bigint[]) from public;
grant execute on function rag.index_chunks(bigint[]) to rag_worker;

-- from sql/40_claim_ingest_job.sql sha256:357548b99e74329daa3ede47867367eca81f89aa99bf85a5dba5c703faa574f1
-- Gives the caller the lease of one due job: a given one, or the longest waiting. Expired leases are due again.
-- No row means nothing to do. The first claim opens the generation that the job writes into.
create or replace function rag.claim_ingest_job(job_id bigint, lease_seconds int) returns setof rag.ingest_jobs
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
begin
    -- Everybody locks the document before its job: one order, no deadlock.
    select j.* into job from rag.ingest_jobs j join rag.documents d on d.id = j.document_id
    where (claim_ingest_job.job_id is null or j.id = claim_ingest_job.job_id)
        and j.run_after <= clock_timestamp()
        and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()))
    order by j.run_after, j.id
    for update of d, j skip locked
    limit 1;
    if not found then
        return;
    end if;
    if job.generation is null then
        insert into rag.generations (owner_id, document_id) values (job.owner_id, job.document_id)
        returning id into job.generation;
    end if;
    update rag.documents d
    set status = case when d.generation is null then 'processing' else 'reindexing' end,
        stage = 'reading', pages_done = coalesce((job.checkpoint ->> 'pages_done')::int, 0)
    where d.id = job.document_id;
    return query
    update rag.ingest_jobs j
    set status = 'running', attempts = j.attempts + 1, generation = job.generation, lease_token = gen_random_uuid(),
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
    where j.id = job.id
    returning j.*;
end
$$;
revoke all on function rag.claim_ingest_job(bigint, int) from public;
grant execute on function rag.claim_ingest_job(bigint, int) to rag_worker;

-- from sql/41_checkpoint_ingest_job.sql sha256:93a5c8a29614e036d70d3ace6d01a3bcf47cb0a94d3405e3fc2f03aca9a383ab
-- Saves how far a job has come, in the transaction that saves its rows, and renews the lease. Progress clears the attempts.
-- False means that the lease is lost (another worker, a newer upload, a deleted document): nothing may be saved.
create or replace function rag.checkpoint_ingest_job(
    job_id bigint, token uuid, lease_seconds int, checkpoint jsonb, page_count int
) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    document_id uuid;
begin
    perform from rag.documents d where d.id = (select j.document_id from rag.ingest_jobs j where j.id = job_id) for update;
    update rag.ingest_jobs j
    set checkpoint = checkpoint_ingest_job.checkpoint, attempts = 0,
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
    where j.id = job_id and j.lease_token = token and j.status = 'running'
    returning j.document_id into document_id;
    if not found then
        return false;
    end if;
    update rag.documents d
    set pages_done = (checkpoint_ingest_job.checkpoint ->> 'pages_done')::int, page_count = checkpoint_ingest_job.page_count,
        stage = 'indexing'
    where d.id = document_id;
    return true;
end
$$;
revoke all on function rag.checkpoint_ingest_job(bigint, uuid, int, jsonb, int) from public;
grant execute on function rag.checkpoint_ingest_job(bigint, uuid, int, jsonb, int) to rag_worker;

-- from sql/42_finish_ingest_job.sql sha256:e4202141b1ac31645c7947b950d347d2358c9020dd5c02f9b5095fdc4940d355
-- Flips a document to the generation its job has written and removes the generations before it, all at once: a search sees
-- the old rows or the new ones, never both and never none. False means that the lease is lost.
-- `facts` are columns of the document: page_count, title, lang, sha256, embedding_server_id, embedding_model, embedding_dim,
-- chunking_strategy, ingestion_log, health.
create or replace function rag.finish_ingest_job(job_id bigint, token uuid, facts jsonb) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    written int;
begin
    perform from rag.documents d where d.id = (select j.document_id from rag.ingest_jobs j where j.id = job_id) for update;
    update rag.ingest_jobs j set status = 'done', finished_at = clock_timestamp(), lease_token = null, error_code = null, error = null
    where j.id = job_id and j.lease_token = token and j.status = 'running'
    returning j.* into job;
    if not found then
        return false;
    end if;
    select count(*) into written from rag.chunks c where c.generation = job.generation;
    update rag.documents d
    set status = 'indexed', stage = null, error_code = null, error = null, generation = job.generation,
        chunk_count = written, pages_done = (facts ->> 'page_count')::int, indexed_at = clock_timestamp(),
        page_count = (facts ->> 'page_count')::int, title = facts ->> 'title', lang = facts ->> 'lang',
        sha256 = facts ->> 'sha256', embedding_server_id = (facts ->> 'embedding_server_id')::uuid,
        embedding_model = facts ->> 'embedding_model', embedding_dim = (facts ->> 'embedding_dim')::int,
        chunking_strategy = facts ->> 'chunking_strategy', ingestion_log = facts -> 'ingestion_log', health = facts -> 'health'
    where d.id = job.document_id;
    delete from rag.generations g where g.document_id = job.document_id and g.id <> job.generation;
    return true;
end
$$;
revoke all on function rag.finish_ingest_job(bigint, uuid, jsonb) from public;
grant execute on function rag.finish_ingest_job(bigint, uuid, jsonb) to rag_worker;

-- from sql/43_fail_ingest_job.sql sha256:148cebf9c572c77270f35769061d56b8abff94a28990b15e668fbde0a9549ff0
-- Records a failure. A retryable one waits for another try (as long as a server asked for, at most an hour, or 2, 4, 8 …
-- seconds, at most 5 minutes, with jitter) until
-- `max_attempts`; then the job is dead. Others fail at once. What the job had written is removed; a document that was
-- indexed before stays searchable as it was. Returns the job's new status, or null when the lease is lost.
create or replace function rag.fail_ingest_job(
    job_id bigint, token uuid, code text, message text, retryable boolean, max_attempts int, wait_seconds int default null
) returns text
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    again boolean;
begin
    perform from rag.documents d where d.id = (select j.document_id from rag.ingest_jobs j where j.id = job_id) for update;
    select * into job from rag.ingest_jobs j
    where j.id = job_id and j.lease_token = token and j.status = 'running' for update;
    if not found then
        return null;
    end if;
    again := retryable and job.attempts < max_attempts;
    update rag.ingest_jobs j
    set status = case when again then 'queued' when retryable then 'dead' else 'failed' end,
        lease_token = null, lease_expires_at = null, error_code = code, error = message,
        run_after = clock_timestamp() + make_interval(secs => coalesce(
            least(wait_seconds, 3600) * (1 + random() / 5), least(300, 2 ^ job.attempts) * (0.5 + random()))),
        finished_at = case when not again then clock_timestamp() end
    where j.id = job.id
    returning j.* into job;
    if again then
        update rag.documents d set stage = 'waiting', error_code = code, error = message where d.id = job.document_id;
        return job.status;
    end if;
    update rag.documents d
    set status = case when d.generation is null then 'failed' else 'indexed' end, stage = null, error_code = code, error = message,
        ingestion_log = case when d.generation is null
            then jsonb_build_object('error', message, 'ingested_at', clock_timestamp()) else d.ingestion_log end
    where d.id = job.document_id;
    delete from rag.generations g using rag.documents d
    where g.id = job.generation and d.id = job.document_id and g.id is distinct from d.generation;
    return job.status;
end
$$;
revoke all on function rag.fail_ingest_job(bigint, uuid, text, text, boolean, int, int) from public;
grant execute on function rag.fail_ingest_job(bigint, uuid, text, text, boolean, int, int) to rag_worker;

-- from sql/44_release_ingest_job.sql sha256:131daa2db243f50d9da74235bcfcad5a3a57301dd3f1efe51876bb34519a1dc2
-- Hands an unfinished job on: the time limit of this run is near, the next claim goes on from the checkpoint. The attempt
-- is not given back: saving progress has cleared it.
create or replace function rag.release_ingest_job(job_id bigint, token uuid) returns boolean
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    with released as (
        update rag.ingest_jobs j
        set status = 'queued', lease_token = null, lease_expires_at = null,
            run_after = clock_timestamp()
        where j.id = job_id and j.lease_token = token and j.status = 'running'
        returning 1
    )
    select exists (select from released)
$$;
revoke all on function rag.release_ingest_job(bigint, uuid) from public;
grant execute on function rag.release_ingest_job(bigint, uuid) to rag_worker;

-- from sql/45_sweep_ingest_jobs.sql sha256:0758f003257017f50ec976c110e2eedc169b1252f86d655ee804a0f75414788b
-- Puts right what a crash or a lost message left: leases that expired too often become dead jobs and failed documents,
-- stored objects without a job get one, uploads that never came are given up after a day, and unfinished generations that
-- no job will finish are removed. Returns counts and the ids of the jobs that are due, oldest first, at most 100.
create or replace function rag.sweep_ingest_jobs(max_attempts int) returns jsonb
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    dead int;
    enqueued int;
    expired int;
    orphans int;
    due jsonb;
begin
    with exhausted as materialized (
        select j.id, j.document_id
        from rag.ingest_jobs j join rag.documents d on d.id = j.document_id
        where j.status = 'running' and j.lease_expires_at < clock_timestamp() and j.attempts >= max_attempts
        order by d.id
        for update of d, j skip locked
    ), buried as (
        update rag.ingest_jobs j
        set status = 'dead', lease_token = null, error_code = 'worker_lost', finished_at = clock_timestamp(),
            error = 'The document could not be processed: every attempt ended without an answer. Try again, or split the file.'
        from exhausted e where j.id = e.id
        returning j.document_id, j.error_code, j.error
    ), failed as (
        update rag.documents d
        set status = case when d.generation is null then 'failed' else 'indexed' end, stage = null,
            error_code = b.error_code, error = b.error
        from buried b where d.id = b.document_id
        returning 1
    )
    select count(*) into dead from failed;

    select count(rag.enqueue_stored_object(o.name, o.version, (o.metadata ->> 'size')::bigint)) into enqueued
    from storage.objects o
    join rag.documents d on d.object_path = o.name
    where o.bucket_id = 'documents'
        and not exists (select from rag.ingest_jobs j where j.document_id = d.id and j.kind = 'ingest' and j.object_version = o.version);

    update rag.documents d
    set status = 'failed', error_code = 'upload_expired', error = 'The file never arrived. Upload it again.'
    where d.status = 'awaiting_upload' and d.created_at < clock_timestamp() - interval '1 day';
    get diagnostics expired = row_count;

    delete from rag.generations g
    where not exists (select from rag.documents d where d.generation = g.id)
        and not exists (select from rag.notes n where n.generation = g.id)
        and not exists (select from rag.ingest_jobs j where j.generation = g.id and j.status in ('queued', 'running'));
    get diagnostics orphans = row_count;

    select coalesce(jsonb_agg(j.id order by j.run_after), '[]') into due
    from (
        select q.id, q.run_after from rag.ingest_jobs q
        where q.run_after <= clock_timestamp()
            and (q.status = 'queued' or (q.status = 'running' and q.lease_expires_at < clock_timestamp()))
        order by q.run_after limit 100
    ) j;
    return jsonb_build_object('dead', dead, 'enqueued', enqueued, 'expired', expired, 'orphans', orphans, 'due', due);
end
$$;
revoke all on function rag.sweep_ingest_jobs(int) from public;
grant execute on function rag.sweep_ingest_jobs(int) to rag_worker;

-- from sql/46_request_ingest_job.sql sha256:5398d6098afb8a921fc5ad5a2f12d2ae8ee8c3f4d5c2a710fbdc77d29061bef6
-- Queues one of the caller's documents again: a failed one from its stored file, an indexed one for re-indexing (the old
-- passages answer until the new ones replace them). An open job is left alone and, if it was waiting, made due now.
-- Returns the job's id, or null when the document is not the caller's or has no stored file yet.
create or replace function rag.request_ingest_job(document_id uuid) returns bigint
language plpgsql volatile
security definer -- users may not write the queue; the owner is checked here
set search_path = pg_catalog, pg_temp
as $$
declare
    document rag.documents;
    version text;
    job_id bigint;
begin
    select * into document from rag.documents d
    where d.id = request_ingest_job.document_id and d.owner_id = auth.uid() for update;
    select o.version into version from storage.objects o
    where o.bucket_id = 'documents' and o.name = document.object_path;
    if version is null then
        return null;
    end if;
    update rag.ingest_jobs j set run_after = least(j.run_after, clock_timestamp())
    where j.document_id = document.id and j.status in ('queued', 'running')
    returning j.id into job_id;
    if job_id is not null then
        return job_id;
    end if;
    if not exists (select from rag.ingest_jobs j where j.document_id = document.id) then
        return rag.enqueue_stored_object(document.object_path, version, null);
    end if;
    insert into rag.ingest_jobs (owner_id, document_id, kind, object_version)
    values (document.owner_id, document.id, 'reindex', version)
    returning id into job_id;
    update rag.documents d
    set status = case when d.generation is null then 'uploaded' else 'reindexing' end, stage = 'queued', pages_done = 0,
        error_code = null, error = null
    where d.id = document.id;
    return job_id;
end
$$;
revoke all on function rag.request_ingest_job(uuid) from public;
grant execute on function rag.request_ingest_job(uuid) to authenticated;

-- from sql/47_delete_document.sql sha256:e1c2df3217f3b245a397feefa4aac57199126887c1aa8e180d3c75bdf6028152
-- Deletes one of the caller's documents with everything made of it, in any status, and says how many rows went.
-- Null when there is no such document of the caller's. The stored object is removed by the caller afterwards.
create or replace function rag.delete_document(document_id uuid) returns jsonb
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    receipt jsonb;
begin
    perform from rag.documents d where d.id = delete_document.document_id for update;
    with runs as materialized (select g.id from rag.generations g where g.document_id = delete_document.document_id)
    select jsonb_build_object(
        'pages', (select count(*) from rag.pages p where p.generation in (select id from runs)),
        'chunks', (select count(*) from rag.chunks c where c.generation in (select id from runs)),
        'vectors', (select count(*) from rag.chunk_vectors v where v.generation in (select id from runs)),
        'jobs', (select count(*) from rag.ingest_jobs j where j.document_id = delete_document.document_id)
    ) into receipt;
    delete from rag.documents d where d.id = delete_document.document_id;
    return case when found then receipt end;
end
$$;
revoke all on function rag.delete_document(uuid) from public;
grant execute on function rag.delete_document(uuid) to authenticated;

-- from sql/48_extend_ingest_lease.sql sha256:1ac09e6fee4e077329a0bf36ff2391e203e9f42dc6823e73288ba302444b5eac
-- The heartbeat of a worker between two saves, as while a slow model server answers. False means that the lease is lost.
create or replace function rag.extend_ingest_lease(job_id bigint, token uuid, lease_seconds int) returns boolean
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    with extended as (
        update rag.ingest_jobs j
        set lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
        where j.id = job_id and j.lease_token = token and j.status = 'running'
        returning 1
    )
    select exists (select from extended)
$$;
revoke all on function rag.extend_ingest_lease(bigint, uuid, int) from public;
grant execute on function rag.extend_ingest_lease(bigint, uuid, int) to rag_worker;

-- from sql/50_purge_conversations.sql sha256:e2bff31f833051a5a5a2d59c7f0295f9f4aac1150b5b9aa79e0c1dceeb864f9d
-- Deletes up to `batch_size` conversations that nobody has touched for `retention_days`; their messages go with them.
-- Two purges at once share the work. Returns how many were deleted; call it until that is 0.
create or replace function rag.purge_conversations(retention_days int, batch_size int default 500) returns int
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    with doomed as (
        select c.id from rag.conversations c
        where c.updated_at < clock_timestamp() - make_interval(days => retention_days)
        order by c.updated_at
        limit batch_size
        for update skip locked
    ), deleted as (
        delete from rag.conversations c using doomed d where c.id = d.id returning 1
    )
    select count(*)::int from deleted
$$;
revoke all on function rag.purge_conversations(int, int) from public;
grant execute on function rag.purge_conversations(int, int) to rag_worker;
