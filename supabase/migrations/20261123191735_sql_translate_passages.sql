-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/19_hybrid_search_v2.sql sha256:72a8e7fcf9ceef771aadc8c222ed7a3413a27eedb64d904a6adc7a7321b9b066
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

-- from sql/29_search_texts.sql sha256:d20e2b9331747d8b97dcd2fa582b95e248236d1b5690fb32347d12b1d35ae6ec
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

-- from sql/30_index_chunks.sql sha256:329181f97ba33ab20da1f01cb1daee07116bff0565fa9d9580a2fdf6cd550a0e
-- Writes the lexical index of freshly saved chunks or translations (rag.search_texts), a batch of each generation: BM25 term
-- weights for each of them, chunk frequencies for the batch. The worker calls it in the transaction that saves them. A chunk that
-- has a term in both of its forms is counted once, so translations are indexed after their chunks.
-- The weight of a term is tf (k1 + 1) / (tf + k1 (1 - b + b dl / 100)), with k1 0.9 and b 0.6. The length dl is compared with a
-- fixed 100 terms, about one default chunk, so that the vector of a chunk depends on that chunk alone.
create or replace function rag.index_chunks(chunk_ids bigint[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, extensions, pg_temp
as $$
    with lexemes as materialized (
        select c.id, c.generation, c.owner_id, c.lang, l.terms, l.frequencies, l.length
        from rag.search_texts c
        cross join lateral (
            select array_agg(x.term) as terms, array_agg(x.frequency) as frequencies, sum(x.frequency) as length
            from rag.lexemes(c.lang, c.content) x
        ) l
        where c.id = any (chunk_ids)
    ), batches as (
        select l.generation, l.owner_id, min(l.id) as first_chunk_id, count(*) as chunk_count from lexemes l group by 1, 2
    ), counted as (
        select l.generation, t.term, count(*) as frequency, count(*) over (partition by l.generation) as term_count
        from lexemes l cross join unnest(l.terms) as t (term)
        where l.id > 0 or not exists (
            select from rag.chunk_terms o
            where o.chunk_id = - l.id and o.terms <#> ('{' || t.term || ':1}/268435456')::sparsevec < 0)
        group by 1, 2
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

-- from sql/42_finish_ingest_job.sql sha256:2411c92ef4925297802373b38a029c0f9d244435b3ed6290d271426dc4e502bc
-- Makes the generation that a job has written the one that search finds, and removes the earlier ones, all at once: a search
-- sees the old rows or the new ones, never both and never none. In the same moment, a new upload replaces an older document of
-- the same name and place. Returns false when the lease is lost.
-- `facts` are columns of the source: lang, embedding_server_id, and for a document page_count, title, embedding_model,
-- embedding_dim, chunking_strategy, ingestion_log, health. `translated_langs` are the languages of passages that shall be translated
-- from now on; a note that is being written waits a minute.
create or replace function rag.finish_ingest_job(job_id bigint, token uuid, facts jsonb) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    written int;
begin
    -- Two uploads of one name that finish at once take turns, because each reads the other.
    perform pg_advisory_xact_lock(hashtextextended(d.owner_id || d.file_name, 0))
    from rag.ingest_jobs j join rag.documents d on d.id = j.document_id where j.id = job_id;
    perform rag.lock_job_source(job_id);
    update rag.ingest_jobs j set status = 'done', finished_at = clock_timestamp(), lease_token = null, error_code = null, error = null
    where j.id = job_id and j.lease_token = token and j.status = 'running'
    returning j.* into job;
    if not found then
        return false;
    end if;
    select count(*) into written from rag.chunks c where c.generation = job.generation;
    update rag.notes n
    set status = 'indexed', error_code = null, error = null, generation = job.generation, chunk_count = written,
        lang = facts ->> 'lang', embedding_server_id = (facts ->> 'embedding_server_id')::uuid, indexed_at = clock_timestamp()
    where n.id = job.note_id;
    update rag.documents d
    set status = 'indexed', stage = null, error_code = null, error = null, generation = job.generation,
        chunk_count = written, pages_done = (facts ->> 'page_count')::int, indexed_at = clock_timestamp(),
        page_count = (facts ->> 'page_count')::int, title = facts ->> 'title', lang = facts ->> 'lang',
        embedding_server_id = (facts ->> 'embedding_server_id')::uuid,
        embedding_model = facts ->> 'embedding_model', embedding_dim = (facts ->> 'embedding_dim')::int,
        chunking_strategy = facts ->> 'chunking_strategy', ingestion_log = facts -> 'ingestion_log', health = facts -> 'health'
    where d.id = job.document_id;
    -- A worker that took the job before its server was retired: questions need that server until the source is moved.
    update rag.embedding_servers s set active = true
    where s.id = (facts ->> 'embedding_server_id')::uuid and not s.active;
    if job.kind = 'ingest' then
        perform rag.supersede_versions(job.document_id);
    end if;
    insert into rag.translation_jobs (generation, owner_id, langs, run_after)
    select job.generation, job.owner_id, l.langs, clock_timestamp() + make_interval(mins => (job.note_id is not null)::int)
    from (select array(select jsonb_array_elements_text(facts -> 'translated_langs')) as langs) l
    where l.langs <> '{}';
    delete from rag.generations g
    where (g.document_id = job.document_id or g.note_id = job.note_id) and g.id <> job.generation;
    return true;
end
$$;
revoke all on function rag.finish_ingest_job(bigint, uuid, jsonb) from public;
grant execute on function rag.finish_ingest_job(bigint, uuid, jsonb) to rag_worker;

-- from sql/65_remove_generation_rows.sql sha256:c024580c26c207b77fb3d066a2378fce0b1af51449f0476666a1b552afe681ea
-- Trigger of rag.generations: deletes everything that belongs to deleted generations.
create or replace function rag.remove_generation_rows() returns trigger
language plpgsql
security definer -- whoever may delete a source may not delete these rows directly
set search_path = ''
as $$
begin
    delete from rag.pages using removed where pages.generation = removed.id;
    delete from rag.chunk_vectors using removed where chunk_vectors.generation = removed.id;
    delete from rag.chunk_terms using removed where chunk_terms.generation = removed.id;
    delete from rag.generation_terms using removed where generation_terms.generation = removed.id;
    delete from rag.chunk_translations using removed where chunk_translations.generation = removed.id;
    delete from rag.chunks using removed where chunks.generation = removed.id;
    return null;
end
$$;
revoke all on function rag.remove_generation_rows() from public;

-- from sql/72_add_translations.sql sha256:86fa8c98982440eca51e1145dc9095c0819df867f8a4ae76a6d6b40039843879
-- Saves translations of chunks of one generation beside them, and indexes their words; whoever saves them writes their vectors. A
-- null text records that the translator gave nothing that could be used. The caller holds a lease.
create or replace function rag.add_translations(chunk_ids bigint[], langs text[], text_hashes text[], texts text[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    insert into rag.chunk_translations (id, generation, owner_id, lang, text_hash, text)
    select - c.id, c.generation, c.owner_id, g.lang, g.text_hash, g.text
    from unnest(chunk_ids, langs, text_hashes, texts) as g (chunk_id, lang, text_hash, text)
    join rag.chunks c on c.id = g.chunk_id;
    select rag.index_chunks(array(select - t.chunk_id from unnest(chunk_ids) as t (chunk_id)))
$$;
revoke all on function rag.add_translations(bigint[], text[], text[], text[]) from public;
grant execute on function rag.add_translations(bigint[], text[], text[], text[]) to rag_worker;

-- from sql/73_claim_translation.sql sha256:e5007efc086d9d0a040192da07aaa9a3f036b8d71611b582c7bc9095c779377d
-- Gives the caller the lease of one due translation: of the given generation, or the one that has waited longest. Only those of
-- generations that a search can find are due; `langs` are the languages of passages that are to be translated now.
create or replace function rag.claim_translation(generation bigint, langs text[], lease_seconds int)
returns setof rag.translation_jobs
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    due bigint;
begin
    select j.generation into due
    from rag.translation_jobs j
    where j.run_after <= clock_timestamp() and j.status in ('queued', 'running')
        and (j.status = 'queued' or j.lease_expires_at < clock_timestamp())
        and j.generation = coalesce(claim_translation.generation, j.generation)
        and (exists (select from rag.documents d where d.generation = j.generation and d.superseded_by is null)
            or exists (select from rag.notes n where n.generation = j.generation and n.trashed_at is null))
    order by j.run_after, j.generation
    limit 1
    for update skip locked;
    return query
    update rag.translation_jobs j
    set status = 'running', langs = claim_translation.langs, attempts = j.attempts + 1, lease_token = gen_random_uuid(),
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
    where j.generation = due
    returning j.*;
end
$$;
revoke all on function rag.claim_translation(bigint, text[], int) from public;
grant execute on function rag.claim_translation(bigint, text[], int) to rag_worker;

-- from sql/74_extend_translation.sql sha256:b66645b39f98beff9e77681407950d2d867530870e037f73f8c24d4512292018
-- Renews the lease of a translation, in the transaction that saves a batch, and adds what the batch cost. A saved batch sets the
-- attempts back to 0. Returns false when the lease is lost (to another worker, or with the generation): then nothing may be saved.
create or replace function rag.extend_translation(
    generation bigint, token uuid, lease_seconds int, model text, prompt_tokens bigint, completion_tokens bigint, cost_usd float8
) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Whoever deletes the generation waits until this transaction ends, and then deletes its rows too.
    perform from rag.generations g where g.id = extend_translation.generation for key share;
    update rag.translation_jobs j
    set attempts = 0, lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds),
        model = coalesce(extend_translation.model, j.model), prompt_tokens = j.prompt_tokens + extend_translation.prompt_tokens,
        completion_tokens = j.completion_tokens + extend_translation.completion_tokens,
        cost_usd = j.cost_usd + extend_translation.cost_usd
    where j.generation = extend_translation.generation and j.lease_token = token and j.status = 'running';
    return found;
end
$$;
revoke all on function rag.extend_translation(bigint, uuid, int, text, bigint, bigint, float8) from public;
grant execute on function rag.extend_translation(bigint, uuid, int, text, bigint, bigint, float8) to rag_worker;

-- from sql/75_end_translation.sql sha256:0bd06b0ad9a2910e523f25e3bad2d0f2838b8cafd2d396fe97dacadcd06537b2
-- Ends a run of a translation: done without a `code`, and otherwise failed, or queued again for after `wait_seconds` where these
-- are given. The document is ready whatever happens here. Returns the new status, or null when the lease is lost.
create or replace function rag.end_translation(
    generation bigint, token uuid, code text default null, message text default null, wait_seconds float8 default null
) returns text
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    update rag.translation_jobs j
    set status = case when wait_seconds is not null then 'queued' when code is null then 'done' else 'failed' end,
        error_code = code, error = message, lease_token = null, lease_expires_at = null,
        run_after = clock_timestamp() + make_interval(secs => coalesce(wait_seconds, 0)),
        finished_at = case when wait_seconds is null then clock_timestamp() end
    where j.generation = end_translation.generation and j.lease_token = token and j.status = 'running'
    returning j.status
$$;
revoke all on function rag.end_translation(bigint, uuid, text, text, float8) from public;
grant execute on function rag.end_translation(bigint, uuid, text, text, float8) to rag_worker;

-- from sql/76_queue_translations.sql sha256:20f71ed507d4db398bb47acab568fb18134143b73cef1840ff28778f384ddc3d
-- Queues the translation of sources that were indexed before it was switched on, or for more languages than then, and of those
-- that failed more than an hour ago: at most `row_count` in a call. Returns those that are due.
create or replace function rag.queue_translations(langs text[], row_count int) returns setof bigint
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into rag.translation_jobs (generation, owner_id, langs)
    select s.generation, s.owner_id, queue_translations.langs
    from (
        select d.generation, d.owner_id from rag.documents d where d.generation is not null and d.superseded_by is null
        union all
        select n.generation, n.owner_id from rag.notes n where n.generation is not null and n.trashed_at is null
    ) s
    where not exists (select from rag.translation_jobs j where j.generation = s.generation)
    limit row_count
    on conflict do nothing;
    update rag.translation_jobs j
    set status = 'queued', attempts = 0, run_after = clock_timestamp(), finished_at = null
    where j.status = 'done' and not queue_translations.langs <@ j.langs
        or j.status = 'failed' and j.finished_at < clock_timestamp() - interval '1 hour';
    return query
    select j.generation from rag.translation_jobs j
    where j.status in ('queued', 'running') and j.run_after <= clock_timestamp()
        and (j.status = 'queued' or j.lease_expires_at < clock_timestamp())
    order by j.run_after
    limit 10;
end
$$;
revoke all on function rag.queue_translations(text[], int) from public;
grant execute on function rag.queue_translations(text[], int) to rag_worker;

-- from sql/77_request_translation.sql sha256:80a6ecddee0684d824494729e00d767a29f00afbdb4d1d2a4e5661c192d71310
-- Queues the translation of one of the caller's documents again, with the passages that the translator gave nothing for. A
-- translation that waits becomes due. Returns the generation, or null when there is nothing to translate.
create or replace function rag.request_translation(document_id uuid) returns bigint
language plpgsql volatile
security definer -- users may not write the queue; the owner is checked here
set search_path = pg_catalog, pg_temp
as $$
declare
    found_generation bigint;
begin
    update rag.translation_jobs j
    set status = case j.status when 'running' then 'running' else 'queued' end, attempts = 0, run_after = clock_timestamp(),
        finished_at = null
    from rag.documents d
    where d.id = request_translation.document_id and d.owner_id = auth.uid() and j.generation = d.generation
    returning j.generation into found_generation;
    delete from rag.chunk_translations t where t.generation = found_generation and t.text is null;
    return found_generation;
end
$$;
revoke all on function rag.request_translation(uuid) from public;
grant execute on function rag.request_translation(uuid) to authenticated;

-- from sql/78_describe_translation.sql sha256:a7108534fbe91851e6159490d25358552dc565722f3d241024c7f73b5463dc5d
-- How far the translation of a generation is, for the health report; null where none was asked for.
create or replace function rag.describe_translation(generation bigint) returns jsonb
language sql stable security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'status', j.status, 'error_code', j.error_code, 'error', j.error, 'model', j.model,
        'passages', c.passages, 'translated', t.translated, 'refused', t.refused,
        'prompt_tokens', j.prompt_tokens, 'completion_tokens', j.completion_tokens, 'cost_usd', nullif(round(j.cost_usd::numeric, 9), 0)::float8)
    from rag.translation_jobs j
    cross join lateral (
        select count(*) as passages from rag.chunks k where k.generation = j.generation and k.lang = any (j.langs)) c
    cross join lateral (
        select count(k.text) as translated, count(*) - count(k.text) as refused
        from rag.chunk_translations k where k.generation = j.generation) t
    where j.generation = describe_translation.generation
$$;
revoke all on function rag.describe_translation(bigint) from public;
grant execute on function rag.describe_translation(bigint) to authenticated, rag_worker;
