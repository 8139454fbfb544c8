-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/01_text_config.sql sha256:b6ed26618c88e3a4b26591097779e4dae88ea1be99da3d08eddc7038c779e7f9
-- The text search configuration of a language. Text in languages other than English and French is not stemmed.
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

-- from sql/02_fold.sql sha256:1fed77f9fc4593c17dec05dedbf1f6cd117fed07069bb9f29362a3cec1c572b2
-- Text without accents and ligatures (é → e, œ → oe). It uses the Unicode decomposition, so that no extension is needed. Text
-- with as many bytes as characters is ASCII and is returned as it is.
create or replace function rag.fold(content text) returns text
language sql immutable parallel safe
as $$
    select case when octet_length(content) = char_length(content) then content else replace(replace(replace(replace(
        regexp_replace(normalize(content, NFKD), '[\u0300-\u036f]', '', 'g'),
        'œ', 'oe'), 'æ', 'ae'), 'Œ', 'Oe'), 'Æ', 'Ae') end
$$;
revoke all on function rag.fold(text) from public;
grant execute on function rag.fold(text) to authenticated, rag_worker;

-- from sql/03_term_id.sql sha256:e922ee9ee6b1e95fc439c4ad5facdb9c73a04866d0ed11a44eb4cdd5d102583c
-- The dimension of a lexeme in the sparse vectors, 1 … 2^28. It uses md5, because hashtext() may change between Postgres
-- versions.
create or replace function rag.term_id(lexeme text) returns int
language sql immutable parallel safe
as $$
    select ('x' || left(md5(lexeme), 7))::bit(28)::int + 1
$$;
revoke all on function rag.term_id(text) from public;
grant execute on function rag.term_id(text) to authenticated, rag_worker;

-- from sql/04_lexemes.sql sha256:78df9fcdba8a32ce701191afc198d1fa078cc2b95a5d7d920d2cf4dac1b0d1ce
-- The terms of a text in a language, with their frequencies. Accents are folded before stemming, so that a text and a question
-- have the same stems whether or not either is written with accents. The stemmer recognizes French stop words only with their
-- accents (à, été, était, même …), so the stems of their folded forms are removed here.
-- There is no `set` clause, so that the planner can inline the function, which saves a quarter of the time for a chunk.
create or replace function rag.lexemes(lang text, content text) returns table (term int, frequency int)
language sql immutable parallel safe
as $$
    select rag.term_id(l.lexeme), sum(coalesce(cardinality(l.positions), 1))::int
    from unnest(to_tsvector(rag.text_config(lang), rag.fold(content))) as l
    where lang is distinct from 'fr'
        or l.lexeme <> all ('{a,ete,etant,etais,etait,etaient,etion,eti,mem,fum,eum}')
    group by 1
$$;
revoke all on function rag.lexemes(text, text) from public;
grant execute on function rag.lexemes(text, text) to authenticated, rag_worker;

-- from sql/05_content_words.sql sha256:340f89c9d949cc1ee8feb3acfbdc34b481496813b4e8510dbd1efdcb91f21c63
-- A question without the stop words of its own language; only its first 2,000 characters count. The stop words of its language
-- are removed before it is stemmed in the other languages, where « quelle » or "which" would be the rarest term of all. A
-- question of nothing but stop words keeps them.
create or replace function rag.content_words(query_text text, query_lang text) returns text
language plpgsql stable parallel safe -- plpgsql keeps the plan for the session, sql would plan for every question
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        with words as (
            select p.token,
                -- ts_lexize returns an empty array for a stop word. Token types 9–14 are parts of compounds, blanks and tags.
                query_lang in ('en', 'fr') and ts_lexize(
                    case query_lang when 'fr' then 'pg_catalog.french_stem' else 'pg_catalog.english_stem' end::regdictionary,
                    lower(p.token)) = '{}' as is_stop_word
            from ts_parse('default', left(normalize(query_text, NFKC), 2000)) as p
            where p.tokid not between 9 and 14
        )
        select coalesce(string_agg(token, ' ') filter (where not is_stop_word), string_agg(token, ' '), '') from words);
end
$$;
revoke all on function rag.content_words(text, text) from public;
grant execute on function rag.content_words(text, text) to authenticated, rag_worker;

-- from sql/06_lexical_distance.sql sha256:617c31937deb19a5d2ff3c6a97389de9f257195fa81206910c827f438bb747f2
-- The negative BM25 score of a chunk's terms for a question. `queries` are the question's query vectors in the order in which
-- rag.lexical_queries returns them: English, French, and any other language.
-- There is no `set` clause, so that the planner can inline the function.
create or replace function rag.lexical_distance(queries extensions.sparsevec[], lang text, terms extensions.sparsevec)
returns float8
language sql immutable parallel safe
as $$
    select terms operator(extensions.<#>) queries[case lang when 'en' then 1 when 'fr' then 2 else 3 end]
$$;
revoke all on function rag.lexical_distance(extensions.sparsevec[], text, extensions.sparsevec) from public;
grant execute on function rag.lexical_distance(extensions.sparsevec[], text, extensions.sparsevec) to authenticated, rag_worker;

-- from sql/07_lexical_matches.sql sha256:5c2b0b2da75c70b4aa0dcd9707eb55fc5b16ebd9a49d4f7e82c8461ec78d6a28
-- The best chunks of a scope for the words of a question: at most `match_count`, each with at least one of the words, in no
-- order. `queries` are those of rag.lexical_queries, `distance` is that of rag.lexical_distance.
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
    where m.distance < 0;
end
$$;
revoke all on function rag.lexical_matches(extensions.sparsevec[], bigint[], int) from public;
grant execute on function rag.lexical_matches(extensions.sparsevec[], bigint[], int) to authenticated, rag_worker;

-- from sql/08_untrashed_documents.sql sha256:6dea0cd3ba451d7a7c807d54da160428dddc35e11a83bfe2fb7d62d8585f9e71
-- The documents outside the trash, of every version: a document is in the trash while the note that it is attached to is.
create or replace view rag.untrashed_documents with (security_invoker = true) as
select d.*
from rag.documents d
where not exists (select from rag.notes n where n.id = d.note_id and n.trashed_at is not null);
grant select on rag.untrashed_documents to authenticated, rag_worker;

-- from sql/09_live_documents.sql sha256:df87176f49cc073b4f956559e3f8d5c16268b4cece31a2d9fca61dce92c38a5c
-- The documents that a library shows: the newest version of each, no duplicates, nothing in the trash.
create or replace view rag.live_documents with (security_invoker = true) as
select d.*
from rag.untrashed_documents d
where d.superseded_by is null and d.duplicate_of is null;
grant select on rag.live_documents to authenticated, rag_worker;

-- from sql/10_search_scope.sql sha256:b080d1754df3249aa2d4a66e1763af76c6fa14b74d05f69eb21c97ac52a3d4b7
-- The generations that a search looks at, under the caller's row level security, and how much they hold: those of live
-- documents and of notes outside the trash. A notebook includes the attachments of its notes. The id of an older version, or of
-- a duplicate, stands for the document that replaced it.
-- `filters` may have source ('document' or 'note'), file_type, lang, author, journal, doi, published_from and published_to.
-- Authors and journals match by the words they contain, whatever their case and accents. Dates are YYYY, YYYY-MM or YYYY-MM-DD
-- on either side; a year or a month includes all of its days. Notes match the filters source and lang only.
create or replace function rag.search_scope(
    document_ids uuid[],
    notebook_id uuid,
    note_id uuid,
    filters jsonb,
    out generations bigint[],
    out source_count int,
    out chunk_count bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan -- one plan for every scope: planning takes longer than finding most scopes
as $$
begin
    with wanted as materialized (
        select f.asked, f.asked ->> 'source' as source, f.asked ->> 'file_type' as file_type, f.asked ->> 'lang' as lang,
            array(select '\m' || m[1] || '\M'
                from regexp_matches(rag.fold(lower(left(f.asked ->> 'author', 300))), '\w+', 'g') m) as author,
            array(select '\m' || m[1] || '\M'
                from regexp_matches(rag.fold(lower(left(f.asked ->> 'journal', 300))), '\w+', 'g') m) as journal,
            regexp_replace(lower(btrim(f.asked ->> 'doi')), '^((https?://)?((dx|www)\.)?doi\.org/|doi:?\s*)', '') as doi,
            f.asked ->> 'published_from' as published_from,
            (f.asked ->> 'published_to') || substr('9999-99-99', length(f.asked ->> 'published_to') + 1) as published_to
        from jsonb_strip_nulls(filters) as f (asked)
    ), sources as (
        select d.generation, d.chunk_count
        from rag.live_documents d
        where d.generation is not null
            and (search_scope.document_ids is null or d.id = any (search_scope.document_ids) or d.id in (
                select coalesce(o.superseded_by, o.duplicate_of) from rag.documents o where o.id = any (search_scope.document_ids)))
            and (search_scope.notebook_id is null or d.notebook_id = search_scope.notebook_id or exists (
                select from rag.notes n where n.id = d.note_id and n.notebook_id = search_scope.notebook_id))
            and (search_scope.note_id is null or d.note_id = search_scope.note_id)
            -- The subquery is evaluated once: without filters, each row costs the test of one boolean.
            and ((select coalesce(filters, '{}') = '{}') or exists (
                select from wanted w
                where (w.source is null or w.source = 'document')
                    and (w.file_type is null or d.file_type = w.file_type) and (w.lang is null or d.lang = w.lang)
                    and (w.doi is null or lower(d.ingestion_log ->> 'doi_extracted') = w.doi)
                    and (w.published_from is null or d.ingestion_log ->> 'published_at_extracted'
                        || substr('9999-99-99', length(d.ingestion_log ->> 'published_at_extracted') + 1)
                        >= w.published_from collate "C")
                    and (w.published_to is null
                        or d.ingestion_log ->> 'published_at_extracted' <= w.published_to collate "C")
                    and (w.asked ->> 'author' is null or w.author <> '{}'
                        and rag.fold(lower(d.ingestion_log ->> 'authors_extracted')) ~ all (w.author))
                    and (w.asked ->> 'journal' is null or w.journal <> '{}'
                        and rag.fold(lower(d.ingestion_log ->> 'journal_extracted')) ~ all (w.journal))))
        union all
        select n.generation, n.chunk_count
        from rag.notes n
        where n.generation is not null and n.trashed_at is null and search_scope.document_ids is null
            and (search_scope.notebook_id is null or n.notebook_id = search_scope.notebook_id)
            and (search_scope.note_id is null or n.id = search_scope.note_id)
            and ((select coalesce(filters, '{}') = '{}') or exists (
                select from wanted w
                where w.asked - 'lang' - 'source' = '{}' and (w.lang is null or n.lang = w.lang)
                    and (w.source is null or w.source = 'note')))
    )
    select coalesce(array_agg(s.generation), '{}'), count(*)::int, coalesce(sum(s.chunk_count), 0)::bigint
    into generations, source_count, chunk_count
    from sources s;
end
$$;
revoke all on function rag.search_scope(uuid[], uuid, uuid, jsonb) from public;
grant execute on function rag.search_scope(uuid[], uuid, uuid, jsonb) to authenticated, rag_worker;

-- from sql/11_lexical_queries.sql sha256:0175e40f01688ba5d38e280ef538ee5b0f1aeeacb448303291251ecdc7cb7455
-- The question as BM25 query vectors: one row for each language of chunks, always in the order 'en', 'fr', 'simple'. The idf of
-- a term is ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene, computed over the scope; only the 64 rarest terms are searched.
-- `terms` and `idf` are all terms of the question, whether or not they occur, for coverage: that idf is computed as for a
-- scope of at least a hundred chunks.
create or replace function rag.lexical_queries(
    query_text text, query_lang text, generations bigint[], chunk_count bigint
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
    from (select rag.content_words(query_text, query_lang) as words offset 0) q
    cross join unnest(array['en', 'fr', 'simple']) as l (lang)
    cross join lateral rag.lexemes(l.lang, q.words) t;
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
revoke all on function rag.lexical_queries(text, text, bigint[], bigint) from public;
grant execute on function rag.lexical_queries(text, text, bigint[], bigint) to authenticated, rag_worker;

-- from sql/12_prefers_vector_index.sql sha256:942785dd74a14596f95ff51bfd063633a7d2ca0d3bdc78e3e4f0e21f63b47251
-- Whether an approximate index is likely to find the nearest chunks of a scope sooner than comparing all of them, which takes
-- about 1 µs a chunk and misses none. The index takes some 10 ms, and helps only where a large part of what it holds is in
-- scope.
create or replace function rag.prefers_vector_index(scope_count bigint, total_count bigint) returns boolean
language sql immutable parallel safe
as $$
    select scope_count > 50000 and scope_count > total_count / 4
$$;
revoke all on function rag.prefers_vector_index(bigint, bigint) from public;
grant execute on function rag.prefers_vector_index(bigint, bigint) to authenticated, rag_worker;

-- from sql/13_nearest_chunks_exact.sql sha256:c45767f0b25216c6d6b9f45d33ea2f7bf08f7caa6c42099717dd9d741828c08f
-- The chunks of a scope nearest to a question. Every chunk is compared, so that none is missed however small the scope is.
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

-- from sql/14_nearest_chunks_hnsw.sql sha256:2d1b77b1f824e3d7bededdb5528bb57aa91cf865eb4cb26d40ad2573da7fbc16
-- The chunks nearest to a question in the index of an embedding server that are also in scope (see rag.prefers_vector_index).
-- There may be few of them, or none: the caller must check. The index is partial and on an expression, and the statement must
-- repeat both as constants, so it is built for the server.
create or replace function rag.nearest_chunks_hnsw(
    server_id uuid, embedding extensions.halfvec, generations bigint[], row_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set enable_seqscan = off -- these leave one plan: the index by distance, with the generations as a filter
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
    -- Not as `set` clauses: the role that creates the function may not set parameters of a library that is not loaded yet.
    perform set_config('hnsw.iterative_scan', 'off', true), set_config('hnsw.ef_search', row_count::text, true);
    return query execute format(
        'select v.chunk_id, v.embedding::halfvec(%1$s) <#> $1::halfvec(%1$s)
        from rag.chunk_vectors v
        where v.server_id = %2$L::uuid and v.generation + 0 = any ($2)
        order by v.embedding::halfvec(%1$s) <#> $1::halfvec(%1$s)
        limit $3', vector_dims(embedding), server_id)
        using embedding, generations, row_count;
end
$$;
revoke all on function rag.nearest_chunks_hnsw(uuid, extensions.halfvec, bigint[], int) from public;
grant execute on function rag.nearest_chunks_hnsw(uuid, extensions.halfvec, bigint[], int) to authenticated, rag_worker;

-- from sql/15_nearest_chunks.sql sha256:52d5e7e8c52a301166b670a964c2951230c0cd2b6fa1557e394b30d25ac589de
-- The chunks of a scope nearest to a question, in no order: from an index where there is one and its result can be trusted, and
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

-- from sql/16_find_phrases.sql sha256:c77cd3de4b86b460d637282afc08bef7e85400a6059293f8af86ef2dcb6101d0
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
        select q.query from rag.lexical_queries(array_to_string(phrases, ''), query_lang, generations, chunk_count) q);
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

-- from sql/20_hybrid_search.sql sha256:16e37b453025a32252f60913a685709582e05cde71c8231f11c528447e577439
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

-- from sql/21_search_chunks_fts.sql sha256:08c5e934e985853d1eddeff4914846c5db35114c98bd0d8b80e00860478237d6
-- Full text search alone: the lexical arm of rag.hybrid_search. A chunk needs one term of the question, and BM25 ranks them.
-- There is no operator syntax, so no question can be a syntax error.
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

-- from sql/22_match_chunks.sql sha256:7d44730ca1ff8bfe0e1917aaf50a9b412d78083df4f502acf2fc8cb49d217404
-- Vector search alone: the dense arm of rag.hybrid_search, for passages at least `match_threshold` similar to the question.
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

-- from sql/30_index_chunks.sql sha256:acd0511aab33179b5e1440f5f936fa84a60c3ea8d71000da04e1de68316ff63d
-- Writes the lexical index of freshly saved chunks: BM25 term weights for each chunk, chunk frequencies for the generation. The
-- worker calls it in the transaction that saves the chunks.
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
            from rag.lexemes(c.lang, c.search_text) x
        ) l
        where c.id = any (chunk_ids)
    ), counted as (
        insert into rag.generation_terms as g (generation, owner_id, term, chunk_frequency)
        select l.generation, l.owner_id, t.term, count(*) from lexemes l, unnest(l.terms) as t (term) group by 1, 2, 3
        order by 1, 3 -- one lock order for all writers
        on conflict (generation, term) do update set chunk_frequency = g.chunk_frequency + excluded.chunk_frequency
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

-- from sql/34_due_jobs.sql sha256:2a980c042abf287a9d6b7c407e0874beb2f824c5d32821a02f107b17bf5fd571
-- The jobs that a worker may claim now: those that are queued for no later time, and those whose worker let the lease expire.
create or replace view rag.due_jobs with (security_invoker = true) as
select j.*
from rag.ingest_jobs j
where j.run_after <= clock_timestamp()
    and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()));
grant select, update on rag.due_jobs to rag_worker; -- update, because `select … for update` needs it

-- from sql/35_describe_generation.sql sha256:6cb7e702b049e699b91d37403d0aadbdaee74712bdb367dbb37a6d0c574a078a
-- What an indexing run found, for the health report: pages without text, read by OCR, with tables or with hidden text, and the
-- number of chunks in each language.
create or replace function rag.describe_generation(generation bigint) returns jsonb
language sql stable security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'pages_without_text', coalesce((
            select jsonb_agg(p.page_number order by p.page_number) from rag.pages p
            where p.generation = describe_generation.generation and p.text !~ '[^[:space:]\u00ad\u200b\u2060\ufeff]'), '[]'),
        'ocr', (
            select jsonb_build_object(
                'pages', count(*), 'confidence', round(avg(p.ocr_confidence)::numeric, 1),
                'lowest', jsonb_build_object(
                    'page', (array_agg(p.page_number order by p.ocr_confidence, p.page_number))[1],
                    'confidence', round(min(p.ocr_confidence)::numeric, 1)))
            from rag.pages p
            where p.generation = describe_generation.generation and p.ocr_confidence is not null having count(*) > 0),
        'tables', (
            select coalesce(sum(p.table_count), 0) from rag.pages p where p.generation = describe_generation.generation),
        'hidden_text', coalesce((
            select jsonb_agg(jsonb_build_object('page', p.page_number, 'characters', p.hidden_characters) order by p.page_number)
            from rag.pages p where p.generation = describe_generation.generation and p.hidden_characters > 0), '[]'),
        'warnings', coalesce((
            select jsonb_object_agg(w.warning, w.pages)
            from (
                select u.warning, jsonb_agg(p.page_number order by p.page_number) as pages
                from rag.pages p cross join unnest(p.warnings) as u (warning)
                where p.generation = describe_generation.generation
                group by 1
            ) w), '{}'),
        'languages', coalesce((
            select jsonb_object_agg(c.lang, c.chunks)
            from (
                select k.lang, count(*) as chunks from rag.chunks k where k.generation = describe_generation.generation group by 1
            ) c), '{}')
    )
$$;
revoke all on function rag.describe_generation(bigint) from public;
grant execute on function rag.describe_generation(bigint) to rag_worker;

-- from sql/36_fail_job_source.sql sha256:d179e2ce5c03f7f5022440969bfc9c06c9149a27a0a8416763ff2b29e3a53a7f
-- Records on a document or a note why its job failed, and removes what the job had written. A source that was indexed before
-- stays searchable as it was. A note of punctuation alone is not a failure: it is empty, and its older text leaves search. The
-- caller has locked the source.
create or replace function rag.fail_job_source(job_id bigint, code text, message text) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
begin
    select * into job from rag.ingest_jobs j where j.id = job_id;
    update rag.documents d
    set status = case when d.generation is null then 'failed' else 'indexed' end, stage = null, error_code = code, error = message,
        ingestion_log = case when d.generation is null
            then jsonb_build_object('error', message, 'ingested_at', clock_timestamp()) else d.ingestion_log end
    where d.id = job.document_id;
    if code in ('empty', 'no_text') then
        update rag.notes n
        set status = 'empty', generation = null, chunk_count = 0, lang = null, error_code = null, error = null
        where n.id = job.note_id;
        delete from rag.generations g where g.note_id = job.note_id;
    else
        update rag.notes n set status = 'failed', error_code = code, error = message where n.id = job.note_id;
    end if;
    delete from rag.generations g
    where g.id = job.generation
        and not exists (select from rag.documents d where d.generation = g.id)
        and not exists (select from rag.notes n where n.generation = g.id);
end
$$;
revoke all on function rag.fail_job_source(bigint, text, text) from public;
grant execute on function rag.fail_job_source(bigint, text, text) to rag_worker;

-- from sql/37_adopt_duplicate.sql sha256:4c842fbb7962f794670745952525a6b61433baa218059b71cd6b7e6fe981fa14
-- Records the sha256 of the file of a job's document. When the owner's library already has a live document with the same bytes,
-- ends the job: the document becomes a duplicate of that one, and nothing is ingested twice. Two uploads of the same bytes take
-- turns here. Returns the id of the other document, or null when the bytes are new. Returns null for a lost lease, too: the
-- next save reports it. Raises IB001 when the sha256 is not the announced one.
create or replace function rag.adopt_duplicate(job_id bigint, token uuid, content_sha256 text) returns uuid
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job rag.ingest_jobs;
    twin uuid;
begin
    select * into job from rag.ingest_jobs j
    where j.id = job_id and j.lease_token = token and j.status = 'running' and j.document_id is not null;
    if not found then
        return null;
    end if;
    perform pg_advisory_xact_lock(hashtextextended(job.owner_id || adopt_duplicate.content_sha256, 0));
    perform rag.lock_job_source(job_id);
    if exists (
        select from rag.documents d
        where d.id = job.document_id and d.content_sha256 is null and d.sha256 <> adopt_duplicate.content_sha256
    ) then
        raise exception 'the file does not have the announced sha256' using errcode = 'IB001';
    end if;
    select d.id into twin from rag.live_documents d
    where d.owner_id = job.owner_id and d.content_sha256 = adopt_duplicate.content_sha256 and d.id <> job.document_id
        and d.status <> 'failed'
    order by d.created_at limit 1;
    -- A document that was indexed before, and whose file was then replaced, never becomes a duplicate.
    if twin is null or exists (select from rag.documents d where d.id = job.document_id and d.generation is not null) then
        update rag.documents d
        set content_sha256 = adopt_duplicate.content_sha256, sha256 = adopt_duplicate.content_sha256
        where d.id = job.document_id;
        return null;
    end if;
    update rag.ingest_jobs j
    set status = 'done', finished_at = clock_timestamp(), lease_token = null where j.id = job_id and j.lease_token = token;
    if not found then
        return null;
    end if;
    update rag.documents d
    set status = 'failed', stage = null, duplicate_of = twin, error_code = 'duplicate',
        error = 'Your library has a document with the same bytes.'
    where d.id = job.document_id;
    delete from rag.generations g where g.id = job.generation;
    return twin;
end
$$;
revoke all on function rag.adopt_duplicate(bigint, uuid, text) from public;
grant execute on function rag.adopt_duplicate(bigint, uuid, text) to rag_worker;

-- from sql/38_supersede_versions.sql sha256:9fdf5fd295e9e5bded8b7474ff8cbd4d7d083d0d565bbefe812306d3e423b6b1
-- Of all indexed documents with the name and the place of this one, makes the newest upload live and the others its older
-- versions: search no longer finds those, but what cited them stays readable. Called when a document gets its new generation.
-- Versions are numbered in the order of upload, whichever was indexed first; the number of a document never decreases.
create or replace function rag.supersede_versions(document_id uuid) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    one record;
    number int := 0;
    newest uuid;
begin
    for one in
        select d.id, d.version, last_value(d.id) over (
            order by d.created_at, d.id rows between unbounded preceding and unbounded following) as newest
        from rag.documents flipped
        join rag.documents d on d.owner_id = flipped.owner_id and d.file_name = flipped.file_name
            and d.notebook_id is not distinct from flipped.notebook_id and d.note_id is not distinct from flipped.note_id
        where flipped.id = supersede_versions.document_id and d.generation is not null and d.duplicate_of is null
        order by d.created_at, d.id
    loop
        number := greatest(one.version, number + 1);
        newest := nullif(one.newest, one.id);
        update rag.documents d set version = number, superseded_by = newest
        where d.id = one.id and (d.version <> number or d.superseded_by is distinct from newest);
    end loop;
end
$$;
revoke all on function rag.supersede_versions(uuid) from public;
grant execute on function rag.supersede_versions(uuid) to rag_worker;

-- from sql/39_lock_job_source.sql sha256:d8687354d8ef0ab6c882a3d75a77cbe85de93175fa47269593193427e47d84f2
-- Locks the document or the note of a job. Every function does so before it changes the job: one order of locks, so no
-- deadlock.
create or replace function rag.lock_job_source(job_id bigint) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    job record;
begin
    select j.document_id, j.note_id into job from rag.ingest_jobs j where j.id = job_id;
    perform from rag.documents d where d.id = job.document_id for update;
    perform from rag.notes n where n.id = job.note_id for update;
end
$$;
revoke all on function rag.lock_job_source(bigint) from public;
grant execute on function rag.lock_job_source(bigint) to rag_worker;

-- from sql/40_claim_ingest_job.sql sha256:90da70c54700de95b39052a3fabc6d73df649a23026ae8f6857dc2e58b35d100
-- Gives the caller the lease of one due job: the given one, or the one that has waited longest. No row means that no job is
-- due. The first claim creates the generation that the job writes.
create or replace function rag.claim_ingest_job(job_id bigint, lease_seconds int, holder text default null)
returns setof rag.ingest_jobs
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    due record;
    job rag.ingest_jobs;
begin
    -- The source is locked before its job, as in rag.lock_job_source, but a locked source is left to the next claim.
    for due in
        select j.id, j.document_id, j.note_id from rag.due_jobs j
        where claim_ingest_job.job_id is null or j.id = claim_ingest_job.job_id
        order by j.run_after, j.id
        limit 100
    loop
        perform from rag.documents d where d.id = due.document_id for update skip locked;
        if not found then
            perform from rag.notes n where n.id = due.note_id for update skip locked;
            continue when not found;
        end if;
        select * into job from rag.due_jobs j where j.id = due.id for update skip locked;
        exit when found;
    end loop;
    if job.id is null then
        return;
    end if;
    if job.generation is null then
        insert into rag.generations (owner_id, document_id, note_id) values (job.owner_id, job.document_id, job.note_id)
        returning id into job.generation;
    end if;
    update rag.documents d
    set status = case when d.generation is null then 'processing' else 'reindexing' end,
        stage = 'reading', pages_done = coalesce((job.checkpoint ->> 'pages_done')::int, 0)
    where d.id = job.document_id;
    return query
    update rag.ingest_jobs j
    set status = 'running', attempts = j.attempts + 1, generation = job.generation, lease_token = gen_random_uuid(),
        lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds), holder = claim_ingest_job.holder
    where j.id = job.id
    returning j.*;
end
$$;
revoke all on function rag.claim_ingest_job(bigint, int, text) from public;
grant execute on function rag.claim_ingest_job(bigint, int, text) to rag_worker;

-- from sql/41_checkpoint_ingest_job.sql sha256:7ea8199cf047910516b3b09aad37985b3f985636a491740acddacebdee6d8aec
-- Saves the progress of a job, in the transaction that saves its rows, and renews the lease. Progress sets the attempts back to
-- 0. Returns false when the lease is lost (to another worker, a newer upload, or a deleted source): then nothing may be saved.
create or replace function rag.checkpoint_ingest_job(
    job_id bigint, token uuid, lease_seconds int, checkpoint jsonb, page_count int
) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    document_id uuid;
begin
    perform rag.lock_job_source(job_id);
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

-- from sql/42_finish_ingest_job.sql sha256:fb326767d77c616a82b71d5074dafacf3c03c86747de1e49b5efea84301a5872
-- Makes the generation that a job has written the one that search finds, and removes the earlier ones, all at once: a search
-- sees the old rows or the new ones, never both and never none. In the same moment, a new upload replaces an older document of
-- the same name and place. Returns false when the lease is lost.
-- `facts` are columns of the source: lang, and for a document page_count, title, embedding_server_id, embedding_model,
-- embedding_dim, chunking_strategy, ingestion_log, health.
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
        lang = facts ->> 'lang', indexed_at = clock_timestamp()
    where n.id = job.note_id;
    update rag.documents d
    set status = 'indexed', stage = null, error_code = null, error = null, generation = job.generation,
        chunk_count = written, pages_done = (facts ->> 'page_count')::int, indexed_at = clock_timestamp(),
        page_count = (facts ->> 'page_count')::int, title = facts ->> 'title', lang = facts ->> 'lang',
        embedding_server_id = (facts ->> 'embedding_server_id')::uuid,
        embedding_model = facts ->> 'embedding_model', embedding_dim = (facts ->> 'embedding_dim')::int,
        chunking_strategy = facts ->> 'chunking_strategy', ingestion_log = facts -> 'ingestion_log', health = facts -> 'health'
    where d.id = job.document_id;
    if job.kind = 'ingest' then
        perform rag.supersede_versions(job.document_id);
    end if;
    delete from rag.generations g
    where (g.document_id = job.document_id or g.note_id = job.note_id) and g.id <> job.generation;
    return true;
end
$$;
revoke all on function rag.finish_ingest_job(bigint, uuid, jsonb) from public;
grant execute on function rag.finish_ingest_job(bigint, uuid, jsonb) to rag_worker;

-- from sql/43_fail_ingest_job.sql sha256:08502d33883a0a5de09ad23cc18fc97d935f0d9736cca099662d02b53fab28d8
-- Records a failure. A retryable one is tried again until `max_attempts`, after the wait that a server asked for (an hour at
-- most), or after 2, 4, 8 … seconds (5 minutes at most, with jitter); then the job is dead. Any other failure is final. What a
-- job had written is removed when it ends; a source that was indexed before stays searchable as it was. Returns the job's new
-- status, or null when the lease is lost.
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
    perform rag.lock_job_source(job_id);
    select * into job from rag.ingest_jobs j
    where j.id = job_id and j.lease_token = token and j.status = 'running' for update;
    if not found then
        return null;
    end if;
    again := retryable and job.attempts < max_attempts;
    update rag.ingest_jobs j
    set status = case when again then 'queued' when retryable then 'dead' else 'failed' end,
        lease_token = null, lease_expires_at = null, error_code = code, error = message,
        -- least() ignores null, so a missing wait must be handled apart.
        run_after = clock_timestamp() + make_interval(secs => case
            when wait_seconds is null then least(300, 2 ^ job.attempts) * (0.5 + random())
            else least(wait_seconds, 3600) * (1 + random() / 5) end),
        finished_at = case when not again then clock_timestamp() end
    where j.id = job.id
    returning j.* into job;
    if again then
        update rag.documents d set stage = 'waiting', error_code = code, error = message where d.id = job.document_id;
        update rag.notes n set error_code = code, error = message where n.id = job.note_id;
        return job.status;
    end if;
    perform rag.fail_job_source(job.id, code, message);
    return job.status;
end
$$;
revoke all on function rag.fail_ingest_job(bigint, uuid, text, text, boolean, int, int) from public;
grant execute on function rag.fail_ingest_job(bigint, uuid, text, text, boolean, int, int) to rag_worker;

-- from sql/44_release_ingest_job.sql sha256:0bf1c9ce6ada3bb157f5275bbd998f63a147dcf9ac8a157c502e1ca7dd508929
-- Queues an unfinished job again, because the time limit of this run is near; the next claim continues after the checkpoint.
-- The attempt is not given back: saving progress has already set the attempts to 0.
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

-- from sql/45_sweep_ingest_jobs.sql sha256:2802a952f9b13fa0f482c9dcb4290ea8822e89d74db0d83abf19e2f5e2c955b4
-- Repairs what a crash or a lost message left behind:
-- * jobs whose leases expired too often become dead, and their documents or notes fail. A lost worker is tolerated twice as
--   often as a failure, because most lost workers were merely stopped;
-- * stored objects without a job get one;
-- * uploads that never arrived fail, long after their signed URL has expired;
-- * unfinished generations that no open job will finish are removed.
-- Returns the counts, the ids of the due jobs (oldest first, at most 100), and the paths of at most 100 stored objects that the
-- caller must remove: files of deleted documents, duplicates, and files larger than announced.
create or replace function rag.sweep_ingest_jobs(max_attempts int) returns jsonb
language plpgsql volatile
security definer -- storage.objects is not readable for the worker role
set search_path = pg_catalog, pg_temp
as $$
declare
    lost record;
    dead int := 0;
    enqueued int;
    expired int;
    orphans int;
    due jsonb;
    objects jsonb;
    message constant text :=
        'The document could not be processed: every attempt was interrupted. Try again, or split the file.';
begin
    for lost in
        select j.id from rag.ingest_jobs j
        where j.status = 'running' and j.lease_expires_at < clock_timestamp() and j.attempts >= 2 * max_attempts
        order by j.document_id, j.note_id
    loop
        perform rag.lock_job_source(lost.id);
        update rag.ingest_jobs j
        set status = 'dead', lease_token = null, error_code = 'worker_lost', error = message, finished_at = clock_timestamp()
        where j.id = lost.id and j.status = 'running' and j.lease_expires_at < clock_timestamp();
        continue when not found;
        perform rag.fail_job_source(lost.id, 'worker_lost', message);
        dead := dead + 1;
    end loop;

    select count(rag.enqueue_stored_object(o.name, o.version, (o.metadata ->> 'size')::bigint)) into enqueued
    from storage.objects o
    join rag.documents d on d.object_path = o.name
    where o.bucket_id = 'documents' and d.duplicate_of is null
        and not exists (
            select from rag.ingest_jobs j where j.document_id = d.id and j.kind = 'ingest' and j.object_version = o.version);

    update rag.documents d
    set status = 'failed', error_code = 'upload_expired', error = 'The file never arrived. Upload it again.'
    where d.status = 'awaiting_upload' and d.created_at < clock_timestamp() - interval '3 hours';
    get diagnostics expired = row_count;

    delete from rag.generations g
    where not exists (select from rag.documents d where d.generation = g.id)
        and not exists (select from rag.notes n where n.generation = g.id)
        and not exists (select from rag.ingest_jobs j where j.generation = g.id and j.status in ('queued', 'running'));
    get diagnostics orphans = row_count;

    select coalesce(jsonb_agg(j.id order by j.run_after), '[]') into due
    from (
        select q.id, q.run_after from rag.due_jobs q order by q.run_after limit 100
    ) j;

    select coalesce(jsonb_agg(s.name), '[]') into objects
    from (
        select o.name from storage.objects o
        where o.bucket_id = 'documents' and o.name ~ '^[0-9a-f-]{36}/[0-9a-f-]{36}/original\.[a-z]+$'
            and not exists (
                select from rag.documents d
                where d.object_path = o.name and d.duplicate_of is null
                    and d.error_code is distinct from 'larger_than_announced'
            )
        order by o.created_at limit 100
    ) s;
    return jsonb_build_object('dead', dead, 'enqueued', enqueued, 'expired', expired, 'orphans', orphans, 'due', due,
        'objects', objects);
end
$$;
revoke all on function rag.sweep_ingest_jobs(int) from public;
grant execute on function rag.sweep_ingest_jobs(int) to rag_worker;

-- from sql/46_request_ingest_job.sql sha256:9ed30d06656fa5ec310cda59eeae95b49d1d7f85f3cf60c2bdfb87dfcca102ed
-- Queues one of the caller's documents again: a failed one from its stored file, an indexed one for indexing it again (search
-- finds the old passages until the new ones replace them). An open job stays as it is and, if it was waiting, becomes due now.
-- Returns the id of the job, or null when the document is not the caller's or has no stored file that may be read.
create or replace function rag.request_ingest_job(document_id uuid) returns bigint
language plpgsql volatile
security definer -- users may not write the queue; the owner is checked here
set search_path = pg_catalog, pg_temp
as $$
declare
    document rag.documents;
    version text;
    size_bytes bigint;
    job_id bigint;
begin
    select * into document from rag.documents d
    where d.id = request_ingest_job.document_id and d.owner_id = auth.uid() for update;
    select o.version, (o.metadata ->> 'size')::bigint into version, size_bytes from storage.objects o
    where o.bucket_id = 'documents' and o.name = document.object_path;
    if version is null or document.error_code = 'larger_than_announced' then
        return null;
    end if;
    update rag.ingest_jobs j set run_after = least(j.run_after, clock_timestamp())
    where j.document_id = document.id and j.status in ('queued', 'running')
    returning j.id into job_id;
    if job_id is not null then
        return job_id;
    end if;
    if not exists (select from rag.ingest_jobs j where j.document_id = document.id) then
        return rag.enqueue_stored_object(document.object_path, version, size_bytes);
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

-- from sql/47_delete_document.sql sha256:5ad548917e00e6f29fe1ce77720578b5e0d8e6528071e2635ce3653cc8f992e8
-- Deletes one of the caller's documents, whatever its status, with its older versions, its duplicates and everything made of
-- them. Returns a receipt with the number of deleted rows, or null when the caller has no such document. The caller then
-- removes the stored objects, whose paths are in the receipt.
create or replace function rag.delete_document(document_id uuid) returns jsonb
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    doomed uuid[];
    receipt jsonb;
begin
    select array_agg(l.id) into doomed
    from (
        select d.id from rag.documents d
        where delete_document.document_id in (d.id, d.superseded_by, d.duplicate_of) order by d.id for update
    ) l;
    if not delete_document.document_id = any (coalesce(doomed, '{}')) then
        return null;
    end if;
    with runs as materialized (select g.id from rag.generations g where g.document_id = any (doomed))
    select jsonb_build_object(
        'documents', cardinality(doomed),
        'pages', (select count(*) from rag.pages p where p.generation in (select id from runs)),
        'chunks', (select count(*) from rag.chunks c where c.generation in (select id from runs)),
        'vectors', (select count(*) from rag.chunk_vectors v where v.generation in (select id from runs)),
        'jobs', (select count(*) from rag.ingest_jobs j where j.document_id = any (doomed)),
        'object_paths', (select jsonb_agg(d.object_path) from rag.documents d where d.id = any (doomed))
    ) into receipt;
    delete from rag.documents d where d.id = any (doomed);
    return receipt;
end
$$;
revoke all on function rag.delete_document(uuid) from public;
grant execute on function rag.delete_document(uuid) to authenticated;

-- from sql/48_extend_ingest_lease.sql sha256:b55cf6a47d903090df2e77b82513a641313cce70a734295482f5083ddf7af72f
-- Renews the lease of a worker between two saves, for example while a slow model server answers. Returns false when the lease
-- is lost.
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

-- from sql/49_release_lost_jobs.sql sha256:9bf5cc2bd9d2e98ffea1cc5f2f09bd68a699eb384c1f06e11f3494a232882c48
-- Ends the leases of dead processes on a host: a job whose holder is "host:…", and not one of those alive, is due now, not when
-- its lease would have expired. It counts as lost (see rag.sweep_ingest_jobs), so a job that kills every worker is given up in
-- the end. Returns the number of jobs.
create or replace function rag.release_lost_jobs(host text, alive text[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    with released as (
        update rag.ingest_jobs j
        set lease_token = null, lease_expires_at = clock_timestamp() - interval '1 millisecond', holder = null
        where j.status = 'running' and starts_with(j.holder, host || ':') and j.holder <> all (alive)
        returning 1
    )
    select count(*)::int from released
$$;
revoke all on function rag.release_lost_jobs(text, text[]) from public;
grant execute on function rag.release_lost_jobs(text, text[]) to rag_worker;

-- from sql/50_purge_conversations.sql sha256:f566952f4ca3beb0d8e2bf8175dec368b31e898e3e15ce22d52c5f4d68115b1e
-- Deletes up to `batch_size` conversations without a new message or a change for `retention_days`, with their messages.
-- Concurrent purges share the work. Returns the number of deleted conversations; call it until that is 0.
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

-- from sql/51_delete_sources.sql sha256:8db51f438da6203a77833aa1129eb2031e77aae52301cf39c43a5ea308c101c1
-- Deletes the caller's notes and documents with everything made of them, whatever their status. Returns a receipt with the
-- number of deleted rows; ids that do not exist, or are not the caller's, are ignored. The caller then removes the stored
-- objects, whose paths are in the receipt.
create or replace function rag.delete_sources(note_ids uuid[], document_ids uuid[]) returns jsonb
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    doomed uuid;
    receipts jsonb[];
begin
    -- Notes are locked before documents, and each kind by id: one order of locks, so no deadlock.
    perform from rag.notes n where n.id = any (note_ids) order by n.id for update;
    perform from rag.documents d
    where d.id = any (document_ids) or d.superseded_by = any (document_ids) or d.duplicate_of = any (document_ids)
    order by d.id for update;
    with runs as materialized (select g.id from rag.generations g where g.note_id = any (note_ids))
    select array[jsonb_build_object(
        'notes', (select count(*) from rag.notes n where n.id = any (note_ids)),
        'documents', 0,
        'pages', (select count(*) from rag.pages p where p.generation in (select id from runs)),
        'chunks', (select count(*) from rag.chunks c where c.generation in (select id from runs)),
        'vectors', (select count(*) from rag.chunk_vectors v where v.generation in (select id from runs)),
        'jobs', (select count(*) from rag.ingest_jobs j where j.note_id = any (note_ids)))] into receipts;
    foreach doomed in array document_ids loop
        receipts := array_append(receipts, rag.delete_document(doomed)); -- null when it was deleted as a version of another
    end loop;
    delete from rag.notes n where n.id = any (note_ids);
    return (
        select jsonb_object_agg(s.key, s.total)
        from (
            select e.key, sum(e.value::text::bigint) as total
            from unnest(receipts) as r (receipt) cross join jsonb_each(r.receipt) e
            where jsonb_typeof(e.value) = 'number'
            group by e.key
        ) s
    ) || jsonb_build_object('object_paths', (
        select coalesce(jsonb_agg(p.path), '[]')
        from unnest(receipts) as r (receipt) cross join jsonb_array_elements_text(r.receipt -> 'object_paths') as p (path)
    ));
end
$$;
revoke all on function rag.delete_sources(uuid[], uuid[]) from public;
grant execute on function rag.delete_sources(uuid[], uuid[]) to authenticated;

-- from sql/52_request_note_job.sql sha256:5981136b364e6e109adeb96b2639c61c920d74c9aade64e69ad65df07d23c9a3
-- Queues one of the caller's notes again, for example after a failure; search finds the old passages until the new ones replace
-- them. An open job stays as it is and, if it was waiting, becomes due now. Returns the id of the job, or null when the note is
-- not the caller's or has no text.
create or replace function rag.request_note_job(note_id uuid) returns bigint
language plpgsql volatile
security definer -- users may not write the queue; the owner is checked here
set search_path = pg_catalog, pg_temp
as $$
declare
    note rag.notes;
    job_id bigint;
begin
    select * into note from rag.notes n where n.id = request_note_job.note_id and n.owner_id = auth.uid() for update;
    if not found or note.status = 'empty' then
        return null;
    end if;
    update rag.ingest_jobs j set run_after = least(j.run_after, clock_timestamp())
    where j.note_id = note.id and j.status in ('queued', 'running')
    returning j.id into job_id;
    if job_id is null then
        insert into rag.ingest_jobs (owner_id, note_id, kind, object_version)
        values (note.owner_id, note.id, 'note', clock_timestamp()::text)
        returning id into job_id;
    end if;
    update rag.notes n set status = 'queued', error_code = null, error = null where n.id = note.id;
    return job_id;
end
$$;
revoke all on function rag.request_note_job(uuid) from public;
grant execute on function rag.request_note_job(uuid) to authenticated;

-- from sql/53_take_quota.sql sha256:43c3e6ed5ad9629263ae285567490fa58a0ea229b0f50ff0921669da48c5729a
-- Counts one use by the caller: a 'request' or an 'upload' within a minute, or a 'question' within a day (UTC). When `quota`
-- uses have been counted, raises IB002, whose detail names the quota and the seconds until its next window. A quota of 0 means
-- no limit. The row stays locked until the caller's transaction ends, so concurrent uses take turns and none is lost.
create or replace function rag.take_quota(kind text, quota int) returns void
language plpgsql volatile
security definer -- users may not write the counters; it counts for the caller alone, in windows that the caller cannot choose
set search_path = pg_catalog, pg_temp
as $$
declare
    span constant interval := case take_quota.kind when 'question' then interval '1 day' else interval '1 minute' end;
    began constant timestamptz := date_bin(span, clock_timestamp(), timestamptz '2000-01-01 00:00:00+00');
    ends timestamptz;
begin
    if quota = 0 then
        return;
    end if;
    insert into rag.usage_counters as c (owner_id, kind, window_start, used)
    values (auth.uid(), take_quota.kind, began, 1)
    on conflict on constraint usage_counters_pkey do update
    set used = case when c.window_start < excluded.window_start then 1 else c.used + 1 end,
        window_start = greatest(c.window_start, excluded.window_start)
    where c.window_start < excluded.window_start or c.used < quota;
    if found then
        return;
    end if;
    select c.window_start + span into ends
    from rag.usage_counters c where c.owner_id = auth.uid() and c.kind = take_quota.kind;
    raise exception using errcode = 'IB002', message = format('the quota of %s %ss is used up', quota, kind),
        detail = jsonb_build_object('kind', kind, 'quota', quota,
            'retry_after', greatest(1, ceil(extract(epoch from ends - clock_timestamp()))::int));
end
$$;
revoke all on function rag.take_quota(text, int) from public;
grant execute on function rag.take_quota(text, int) to authenticated;

-- from sql/54_take_upload.sql sha256:b5dcfedd757a6730e7e29c5495aab944812e8e4597c2562b07c1a9c66ba0085a
-- Counts an announced upload by the caller. Raises IB002, as rag.take_quota does, when the caller's library is full; a limit of
-- 0 means none. Announced bytes count like stored ones; duplicates and expired uploads do not count. Announcements of one user
-- take turns until their transactions end, so two at once cannot both take the last place.
create or replace function rag.take_upload(size_bytes bigint, per_minute int, max_documents int, max_bytes bigint) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    held record;
begin
    perform pg_advisory_xact_lock(hashtextextended('rag.take_upload ' || auth.uid(), 0));
    perform rag.take_quota('upload', per_minute);
    if max_documents = 0 and max_bytes = 0 then
        return;
    end if;
    select count(*) as documents, coalesce(sum(d.size_bytes), 0) as bytes into held
    from rag.documents d
    where d.owner_id = auth.uid() and d.duplicate_of is null and d.error_code is distinct from 'upload_expired';
    if max_documents > 0 and held.documents >= max_documents then
        raise exception using errcode = 'IB002', message = 'the library holds as many documents as allowed',
            detail = jsonb_build_object('kind', 'documents', 'quota', max_documents);
    end if;
    if max_bytes > 0 and held.bytes + take_upload.size_bytes > max_bytes then
        raise exception using errcode = 'IB002', message = 'the library holds as many bytes as allowed',
            detail = jsonb_build_object('kind', 'bytes', 'quota', max_bytes);
    end if;
end
$$;
revoke all on function rag.take_upload(bigint, int, int, bigint) from public;
grant execute on function rag.take_upload(bigint, int, int, bigint) to authenticated;

-- from sql/55_forget_user.sql sha256:5abd0f92c3606019755d786e2b263e32a9cda2e6c918ebfa4daf8732e36aa3ff
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
        delete from rag.ingest_jobs where owner_id = user_id;
        delete from rag.usage_counters where owner_id = user_id;
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

-- from sql/60_enqueue_stored_object.sql sha256:f6e2d932f0e3dd4da02e1b3302871d4fbda79eec24f582238399c4406d8ea0bc
-- Queues the ingestion of a stored object; calling it again for the same version changes nothing. The storage trigger, the
-- finalize request and the sweeper call it. Returns the id of the job, or null when the object belongs to no document, has been
-- replaced by a newer version, or is larger than its upload announced.
create or replace function rag.enqueue_stored_object(object_path text, object_version text, object_size bigint) returns bigint
language plpgsql
security definer -- neither the storage service nor users may write the queue
set search_path = ''
as $$
declare
    document rag.documents;
    job_id bigint;
begin
    select * into document from rag.documents d where d.object_path = enqueue_stored_object.object_path for update;
    if not found then
        return null;
    end if;
    -- An event for a version that has been replaced since: the version stored now has its own event.
    if exists (
        select from storage.objects o
        where o.bucket_id = 'documents' and o.name = enqueue_stored_object.object_path
            and o.version <> enqueue_stored_object.object_version
    ) then
        return null;
    end if;
    select j.id into job_id from rag.ingest_jobs j
    where j.document_id = document.id and j.kind = 'ingest' and j.object_version = enqueue_stored_object.object_version;
    if found then
        return job_id;
    end if;
    update rag.ingest_jobs j set status = 'superseded', finished_at = clock_timestamp(), lease_token = null
    where j.document_id = document.id and j.status in ('queued', 'running');
    -- Quotas count the announced size. A larger file is not read, and the sweeper removes it.
    if document.generation is null and object_size > coalesce(document.announced_bytes, document.size_bytes) then
        update rag.documents d
        set status = 'failed', stage = null, error_code = 'larger_than_announced',
            error = format('%s bytes arrived where %s were announced. Upload the file again, with its real size.',
                object_size, coalesce(document.announced_bytes, document.size_bytes))
        where d.id = document.id and d.error_code is distinct from 'larger_than_announced';
        return null;
    end if;
    insert into rag.ingest_jobs (owner_id, document_id, kind, object_version)
    values (document.owner_id, document.id, 'ingest', enqueue_stored_object.object_version)
    returning id into job_id;
    -- A duplicate whose file was replaced is a document of its own again.
    update rag.documents d
    set duplicate_of = null, status = case when d.generation is null then 'uploaded' else 'reindexing' end,
        announced_bytes = coalesce(d.announced_bytes, d.size_bytes),
        size_bytes = coalesce(object_size, d.size_bytes), error_code = null, error = null, stage = 'queued', pages_done = 0
    where d.id = document.id;
    return job_id;
end
$$;
revoke all on function rag.enqueue_stored_object(text, text, bigint) from public;
grant execute on function rag.enqueue_stored_object(text, text, bigint) to rag_worker, service_role;

-- from sql/61_on_object_stored.sql sha256:f5a9c2b722fc2f3509a681f0aad2f46572606979294a94b8635aa23635d6a639
-- Trigger of storage.objects: queues the ingestion of a stored file and, once for each version, sends a storage event.
create or replace function rag.on_object_stored() returns trigger
language plpgsql
security definer -- the storage service writes objects under a role that cannot see our tables
set search_path = ''
as $$
declare
    job_id bigint;
    object_size bigint;
begin
    object_size := (new.metadata ->> 'size')::bigint;
    job_id := rag.enqueue_stored_object(new.name, new.version, object_size);
    if job_id is not null and (tg_op = 'INSERT' or new.version is distinct from old.version) then
        perform rag.send_storage_event(tg_op, new.name, new.version, object_size);
    end if;
    return new;
exception when others then
    -- An upload must never fail because of the queue: the sweeper finds objects without a job.
    raise warning 'the ingestion of % was not queued: %', new.name, sqlerrm;
    return new;
end
$$;
revoke all on function rag.on_object_stored() from public;

-- from sql/62_on_note_saved.sql sha256:f328acee90e97fea7499f938744486163d8d423cb30080c30e6c74bd7dc90305
-- Trigger of rag.notes: queues the indexing of a saved note and supersedes the job for its older text. A note without any text
-- has nothing to index, so it leaves search at once.
create or replace function rag.on_note_saved() returns trigger
language plpgsql
security definer -- users may not write the queue
set search_path = ''
as $$
begin
    update rag.ingest_jobs j set status = 'superseded', finished_at = clock_timestamp(), lease_token = null
    where j.note_id = new.id and j.status in ('queued', 'running');
    if new.content ~ '[^[:space:]\u00ad\u200b\u2060\ufeff]' then
        insert into rag.ingest_jobs (owner_id, note_id, kind, object_version)
        values (new.owner_id, new.id, 'note', clock_timestamp()::text);
        update rag.notes n set status = 'queued', error_code = null, error = null where n.id = new.id;
    else
        update rag.notes n
        set status = 'empty', generation = null, chunk_count = 0, lang = null, error_code = null, error = null
        where n.id = new.id;
        delete from rag.generations g where g.note_id = new.id;
    end if;
    return null;
end
$$;
revoke all on function rag.on_note_saved() from public;

-- from sql/63_audit_setting.sql sha256:c6c4cbbb83803cf6131b6ffa2a352363020c45d43211fa54208a5646ffbc6d44
-- Trigger of rag.settings: writes a changed value to the audit. An update that keeps the value is no change: rag.forget_user
-- makes such updates when it removes user ids.
create or replace function rag.audit_setting() returns trigger
language plpgsql
security definer -- every change is audited, but nobody may write the audit
set search_path = ''
as $$
begin
    if tg_op = 'UPDATE' and new.value is not distinct from old.value then
        return null;
    end if;
    insert into rag.settings_audit (key, old_value, new_value, changed_by)
    values (
        coalesce(new.key, old.key),
        case when tg_op <> 'INSERT' then old.value end,
        case when tg_op <> 'DELETE' then new.value end,
        auth.uid()
    );
    return null;
end
$$;
revoke all on function rag.audit_setting() from public;

-- from sql/64_send_storage_event.sql sha256:f351a1b55592c4b22ebe428540afc1e578ff295937a557a3680041fa24979142
-- Asks pg_net to call POST /api/hooks/storage once this transaction has committed, so that a worker starts at once. Vault keeps
-- the address and the secret as `ibid_webhook_url` and `ibid_webhook_secret`; without them, or without either extension,
-- nothing is sent. The body has the form of a database webhook and contains ids only. A crash may lose the call; the sweeper
-- finds the job.
create or replace function rag.send_storage_event(change text, object_name text, object_version text, object_size bigint) returns void
language plpgsql
set search_path = ''
as $$
declare
    secrets jsonb;
begin
    if to_regprocedure('net.http_post(text, jsonb, jsonb, jsonb, integer)') is null
        or to_regclass('vault.decrypted_secrets') is null then
        return;
    end if;
    select jsonb_object_agg(s.name, s.decrypted_secret) into secrets
    from vault.decrypted_secrets s
    where s.name in ('ibid_webhook_url', 'ibid_webhook_secret') and s.decrypted_secret <> '';
    if not coalesce(secrets ?& array['ibid_webhook_url', 'ibid_webhook_secret'], false) then
        return;
    end if;
    perform net.http_post(
        url := secrets ->> 'ibid_webhook_url',
        body := jsonb_build_object(
            'type', change, 'schema', 'storage', 'table', 'objects', 'old_record', null,
            'record', jsonb_build_object(
                'bucket_id', 'documents', 'name', object_name, 'version', object_version,
                'metadata', jsonb_build_object('size', object_size)
            )
        ),
        headers := jsonb_build_object(
            'content-type', 'application/json', 'x-webhook-secret', secrets ->> 'ibid_webhook_secret'
        ),
        timeout_milliseconds := 5000 -- a cold start takes longer than the 2 s that pg_net allows by default
    );
exception when others then
    -- The job that was just written must stay.
    raise warning 'no storage event was sent for %: %', object_name, sqlerrm;
end
$$;
revoke all on function rag.send_storage_event(text, text, text, bigint) from public;

-- from sql/65_remove_generation_rows.sql sha256:915471152cad2dbca20ef3edc48d7121e18cddeee6c1113c355e9630fe0dfbd7
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
    delete from rag.chunks using removed where chunks.generation = removed.id;
    return null;
end
$$;
revoke all on function rag.remove_generation_rows() from public;

-- from sql/66_touch_updated_at.sql sha256:d65a2b6a6090ad04920a5c42bb46c5c995fe12139a69a3ab61f9256698ca0a9a
-- Trigger of notebooks, notes and documents: keeps `updated_at` current without every statement having to set it.
create or replace function rag.touch_updated_at() returns trigger
language plpgsql
set search_path = ''
as $$
begin
    new.updated_at := clock_timestamp();
    return new;
end
$$;
revoke all on function rag.touch_updated_at() from public;
