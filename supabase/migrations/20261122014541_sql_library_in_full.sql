-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/02_fold.sql sha256:5f133ca2f2edb6fd45cde39013f3fe8a03ad187e1a941b3ce366ff8646193486
-- Text without accents and ligatures (é → e, œ → oe), by the Unicode decomposition, so that no extension is needed.
-- Text that is all ASCII, a byte a character, has none.
create or replace function rag.fold(content text) returns text
language sql immutable parallel safe
as $$
    select case when octet_length(content) = char_length(content) then content else replace(replace(replace(replace(
        regexp_replace(normalize(content, NFKD), '[\u0300-\u036f]', '', 'g'),
        'œ', 'oe'), 'æ', 'ae'), 'Œ', 'Oe'), 'Æ', 'Ae') end
$$;
revoke all on function rag.fold(text) from public;
grant execute on function rag.fold(text) to authenticated, rag_worker;

-- from sql/04_lexemes.sql sha256:4503e4532631c17e2b91bede7014cd280611ca55c1c86141e143ab04c2e38b7d
-- The terms of a text in a language, with their frequencies. Accents are folded before stemming, not after, so that a text
-- and a question meet in the same stems whether or not either has its accents. French stop words that fold into other words
-- (à, été, était, même …) are known to the stemmer with their accents only, so their stems are left out here.
-- It has no `set`, which would keep it from being inlined: that is a quarter of the time it takes for a chunk.
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

-- from sql/05_content_words.sql sha256:a1c9dbef5019f31abb402610837e4d26bcb91b949e4b346add64c24b24ab7e64
-- A question without the stop words of its own language, at most 2,000 characters of it. Other languages' stop word lists
-- would leave « quelle » or "which" in, as the rarest term of all. When nothing else is left, the words are kept.
create or replace function rag.content_words(query_text text, query_lang text) returns text
language plpgsql stable parallel safe -- plpgsql keeps the plan for the session, sql plans anew for every question
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        with words as (
            select p.token,
                -- ts_lexize gives an empty array for a stop word. Token types 9–14 are parts of compounds, blanks and tags.
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

-- from sql/10_search_scope.sql sha256:2ee37a229297b9cc19accda4d20ed70eb83374d8570069742fc8872ee03dcaeb
-- The live generations a search may look at, under the caller's row level security, and how much they hold.
-- A notebook holds the attachments of its notes. Superseded versions, trashed notes and the attachments of trashed notes are
-- out of scope; who names an older version, or a duplicate, means the document that took its place.
-- `filters` may hold source ('document' or 'note'), file_type, lang, author, journal, doi, published_from and published_to. Authors
-- and journals match by the words they contain, whatever their case and accents. Dates are YYYY, YYYY-MM or YYYY-MM-DD on either
-- side; a year or a month stands for all of its days. A note has a language and nothing else that could be asked for.
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
set plan_cache_mode = force_generic_plan -- one plan for every scope: making it takes longer than most scopes do
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
        from rag.documents d
        where d.generation is not null and d.superseded_by is null
            and (search_scope.document_ids is null or d.id = any (search_scope.document_ids) or d.id in (
                select coalesce(o.superseded_by, o.duplicate_of) from rag.documents o where o.id = any (search_scope.document_ids)))
            and (search_scope.notebook_id is null or d.notebook_id = search_scope.notebook_id or exists (
                select from rag.notes n where n.id = d.note_id and n.notebook_id = search_scope.notebook_id))
            and (search_scope.note_id is null or d.note_id = search_scope.note_id)
            and not exists (select from rag.notes n where n.id = d.note_id and n.trashed_at is not null)
            -- A subquery of its own is evaluated once: without filters a row costs the look at one boolean.
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

-- from sql/11_lexical_queries.sql sha256:24678a19d788df10aecf0a40cee95cd947bc925f2683f489f97ab1fcb2a6e6aa
-- The question as one BM25 query vector per chunk language. The idf of each term is computed here, over the scope.
-- `terms` and `idf` are all of its terms, found or not (for coverage); that idf is of a scope of at least a hundred chunks.
-- idf = ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene; at most the 64 rarest terms are searched.
create or replace function rag.lexical_queries(
    query_text text, query_lang text, generations bigint[], chunk_count bigint
) returns table (lang text, query extensions.sparsevec, terms int[], idf real[])
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan -- planning for each question would take longer than counting
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
    -- Two statements, because each has one right plan: a probe for each generation and term, or, where there are many
    -- generations, the owner's index by term. `+ 0` keeps the planner from the first where the second is meant.
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
    )
    select w.lang,
        (coalesce('{' || string_agg(w.term || ':' || w.idf, ',') filter (where w.df > 0 and w.rarity <= 64) || '}', '{}')
            || '/268435456')::sparsevec,
        array_agg(w.term),
        -- What a word weighs in coverage must not depend on how little is searched: in a scope of one passage every word that
        -- stands there is common, and one that does not would outweigh four that do.
        array_agg(ln(1 + (greatest(chunk_count, 100) - w.df + 0.5::float8) / (w.df + 0.5::float8))::real)
    from weighted w
    group by w.lang;
end
$$;
revoke all on function rag.lexical_queries(text, text, bigint[], bigint) from public;
grant execute on function rag.lexical_queries(text, text, bigint[], bigint) to authenticated, rag_worker;

-- from sql/12_prefers_vector_index.sql sha256:7d44ae6086e46d725b335a455c3193cbeb86ded1b646d994567c6ce99392eda8
-- Whether an approximate index could find the nearest chunks of a scope sooner than a comparison with each of them, which
-- takes about 1 µs a chunk and misses none. The index answers in some 10 ms, if much of what it holds is in scope.
create or replace function rag.prefers_vector_index(scope_count bigint, total_count bigint) returns boolean
language sql immutable parallel safe
as $$
    select scope_count > 50000 and scope_count > total_count / 4
$$;
revoke all on function rag.prefers_vector_index(bigint, bigint) from public;
grant execute on function rag.prefers_vector_index(bigint, bigint) to authenticated, rag_worker;

-- from sql/13_nearest_chunks_exact.sql sha256:51a476e5f21eee9e6b4c44ee4b73ba2c2c7f0d384eab2b063d9984b838a30610
-- The chunks of a scope nearest to a question: each is compared, so that none is missed however small the scope is.
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

-- from sql/14_nearest_chunks_hnsw.sql sha256:7232171bfee646d8620d27db92482605c41af22e01b35d0923850209aa45ea37
-- Of the chunks nearest to a question in the index of an embedding server, those in scope (see 12_prefers_vector_index).
-- There may be few of them, or none: who asks has to look. The index is partial and on an expression, so the statement must
-- repeat both as constants: it is made for the server.
create or replace function rag.nearest_chunks_hnsw(
    server_id uuid, embedding extensions.halfvec, generations bigint[], row_count int
) returns table (chunk_id bigint, distance float8)
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set enable_seqscan = off -- these leave one plan only: the index by distance, the generations as a filter
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
    -- Not in the header: who creates the function may not set what the library, not loaded yet, has not declared.
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

-- from sql/15_nearest_chunks.sql sha256:16e3e676a8eecc1bb77414cd7bcafe210d513de313cbfbb402169bb3d6d61bd4
-- The chunks of a scope nearest to a question, in no order: exact, or by an index where there is one and it can be trusted.
-- An index that filters by scope afterwards misses most of what is nearest when a question is off the subjects of the scope:
-- its neighbourhood is full of other people's chunks. So the index is believed only where half of what it finds is in scope.
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

-- from sql/16_find_phrases.sql sha256:9fd8fabd66076202bf56d21daa62edebfde16630cd5a171b65eb248f13ba967d
-- The chunks of a scope that hold every phrase a question has in quotation marks, word for word; none without such phrases.
-- Case, accents, punctuation and line breaks do not matter. The first ten phrases count, and the thousand chunks that BM25 puts
-- first for their words are read.
create or replace function rag.find_phrases(
    query_text text, query_lang text, generations bigint[], chunk_count bigint, match_count int
) returns setof bigint
language plpgsql stable
set search_path = pg_catalog, extensions, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    phrases text[];
    question record;
    query_en sparsevec := '{}/268435456';
    query_fr sparsevec := '{}/268435456';
    query_simple sparsevec := '{}/268435456';
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
    for question in
        select q.lang, q.query
        from rag.lexical_queries(array_to_string(phrases, ''), query_lang, generations, chunk_count) q
    loop
        case question.lang
            when 'en' then query_en := question.query;
            when 'fr' then query_fr := question.query;
            else query_simple := question.query;
        end case;
    end loop;
    return query
    select n.chunk_id
    from (
        select t.chunk_id,
            t.terms <#> case t.lang when 'en' then query_en when 'fr' then query_fr else query_simple end as distance
        from rag.chunk_terms t
        where t.generation = any (generations)
        order by 2, 1
        limit 1000
    ) n
    join rag.chunks c on c.id = n.chunk_id
    cross join lateral (
        select ' ' || regexp_replace(lower(rag.fold(c.search_text)), '[^[:alnum:]]+', ' ', 'g') || ' ' as words offset 0) said
    where n.distance < 0 and not exists (select from unnest(phrases) as p where strpos(said.words, p) = 0)
    order by n.distance, n.chunk_id
    limit match_count;
end
$$;
revoke all on function rag.find_phrases(text, text, bigint[], bigint, int) from public;
grant execute on function rag.find_phrases(text, text, bigint[], bigint, int) to authenticated, rag_worker;

-- from sql/20_hybrid_search.sql sha256:2cc3ad5e32905b5923fc3197b35deba7a9ed2276ff5ab35d0cb1cfe0d26da435
-- Searches by words and by meaning in one statement, fused by weighted reciprocal rank fusion (Cormack et al. 2009).
-- Three rankings are fused: BM25 (a sparse dot product), the cosine similarity (a ranking per embedding server) and
-- the blend of the two scores, because ranks alone forget how sure each arm was. Ties are broken by chunk id. What holds the
-- phrases that the question has in quotation marks comes before what does not.
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
set plan_cache_mode = force_generic_plan -- one plan is right for every scope, and planning takes longer than a small search
as $$
declare
    scope record;
    question record;
    query_en sparsevec := '{}/268435456';
    query_fr sparsevec := '{}/268435456';
    query_simple sparsevec := '{}/268435456';
    term_langs text[] := '{}';
    terms int[] := '{}';
    idfs real[] := '{}';
    quoting bigint[];
begin
    select * into scope from rag.search_scope(document_ids, notebook_id, note_id, filters);
    for question in select * from rag.lexical_queries(query_text, query_lang, scope.generations, scope.chunk_count) loop
        case question.lang
            when 'en' then query_en := question.query;
            when 'fr' then query_fr := question.query;
            else query_simple := question.query;
        end case;
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
        -- What only one arm found gets its score of the other; the subqueries run for nothing else.
        select c.chunk_id, c.fts_rank, c.vector_rank, c.weight,
            coalesce(c.fts_score, (
                select - (t.terms <#> case t.lang when 'en' then query_en when 'fr' then query_fr else query_simple end)
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
    -- Coverage: the idf-weighted share of the question's terms that this very passage holds.
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

-- from sql/30_index_chunks.sql sha256:168bf887e85f558b79e68d66fb017aa7b4eafa6fed326e15c258c3fd6d9cb140
-- Builds the lexical index of freshly saved chunks: BM25 term weights per chunk, chunk frequencies per generation.
-- tf part = tf (k1 + 1) / (tf + k1 (1 - b + b dl / 100)), k1 0.9, b 0.6. The length is held against a fixed 100 terms, about
-- one default chunk, so that a chunk's vector depends on nothing but the chunk. Called by the worker, in the same
-- transaction as the chunks.
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
            -- Four decimals are more than a ranking needs; arithmetic in numeric would take three times as long.
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

-- from sql/35_describe_generation.sql sha256:1b92c0ec7f45a85bba128b2b9fc388c7fd7073249461b805df7802f342d045c8
-- What an indexing run found, for the health report: pages without text, read by OCR, with tables or with hidden text, and
-- chunks by language.
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

-- from sql/36_fail_job_source.sql sha256:a2de17a8f625d38ee9122aa22e3b5c8daa983a8b59254c94b364d3a845460bdf
-- Says on the document or the note why its job ended without success, and removes what the job had written. What was
-- indexed before stays searchable as it was. A note of marks without a word is no fault: it is empty, and its older text
-- leaves search. The caller has locked the source.
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

-- from sql/37_adopt_duplicate.sql sha256:19c7c887087610990709b987ec65d550ffb6fad1f58f3d35ba6337ba094ea30f
-- Notes what the bytes of a job's document are and, when the owner's library has them already, ends the job: the document
-- becomes an alias of the one that has them, and nothing is ingested twice. Two uploads of the same bytes take turns here.
-- Returns the id of that document, or null when the bytes are new. False lease: null as well, the next save will notice.
-- Raises IB001 when other bytes arrived than those whose sha256 was announced.
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
        raise exception 'other bytes than announced' using errcode = 'IB001';
    end if;
    select d.id into twin from rag.documents d
    where d.owner_id = job.owner_id and d.content_sha256 = adopt_duplicate.content_sha256 and d.id <> job.document_id
        and d.superseded_by is null and d.duplicate_of is null and d.status <> 'failed'
        and not exists (select from rag.notes n where n.id = d.note_id and n.trashed_at is not null)
    order by d.created_at limit 1;
    -- A document that was indexed before (another file was stored in its place) stays itself.
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

-- from sql/38_supersede_versions.sql sha256:341657a71f863983274d2532adec63d957a2f1f8a2559192338aa26684708f95
-- Of all indexed documents with the name and the place of this one, the newest upload is live and the others are its older
-- versions: out of search, but kept, so that what was cited stays readable. Called when a document is flipped.
-- Versions are counted in the order of upload, whichever was indexed first; a number once given only grows.
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

-- from sql/39_lock_job_source.sql sha256:ac052f3c169f0a8986718da0392dac87524bcb85da87cfc89cbaa40b5dfb2d68
-- Locks the document or the note of a job. Everybody does this before touching the job itself: one order, no deadlock.
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

-- from sql/40_claim_ingest_job.sql sha256:b72b6e1cc414def128e89881b7a7854fdb062c1d77bd436869990953068968f9
-- Gives the caller the lease of one due job: a given one, or the longest waiting. Expired leases are due again.
-- No row means nothing to do. The first claim opens the generation that the job writes into.
create or replace function rag.claim_ingest_job(job_id bigint, lease_seconds int, holder text default null)
returns setof rag.ingest_jobs
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    due record;
    job rag.ingest_jobs;
begin
    -- Everybody locks the source before its job: one order, no deadlock. A source that is locked is left to the next claim.
    for due in
        select j.id, j.document_id, j.note_id from rag.ingest_jobs j
        where (claim_ingest_job.job_id is null or j.id = claim_ingest_job.job_id)
            and j.run_after <= clock_timestamp()
            and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()))
        order by j.run_after, j.id
        limit 100
    loop
        perform from rag.documents d where d.id = due.document_id for update skip locked;
        if not found then
            perform from rag.notes n where n.id = due.note_id for update skip locked;
            continue when not found;
        end if;
        select * into job from rag.ingest_jobs j
        where j.id = due.id and j.run_after <= clock_timestamp()
            and (j.status = 'queued' or (j.status = 'running' and j.lease_expires_at < clock_timestamp()))
        for update skip locked;
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

-- from sql/41_checkpoint_ingest_job.sql sha256:4a2856109a7bb5d46f6ff6964bbfa8f8f6a08b823881d90c892b94d3a18bf5de
-- Saves how far a job has come, in the transaction that saves its rows, and renews the lease. Progress clears the attempts.
-- False means that the lease is lost (another worker, a newer upload, a deleted source): nothing may be saved.
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

-- from sql/42_finish_ingest_job.sql sha256:55027b3d63b7a1b72c6609038e1c85fae26bfc87c9709b4740ea9bc97cb7d8b9
-- Flips a document or a note to the generation its job has written and removes the generations before it, all at once: a
-- search sees the old rows or the new ones, never both and never none. A new upload under the name of an older document in
-- the same place takes over from it in the same moment. False means that the lease is lost.
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
    -- Two uploads of one name may finish at once, and each looks at the other.
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

-- from sql/43_fail_ingest_job.sql sha256:ab334813eec1105498516ecbd15c0a1d8f7f969b4e7497e4bec2444b52947830
-- Records a failure. A retryable one waits for another try (as long as a server asked for, at most an hour, or 2, 4, 8 …
-- seconds, at most 5 minutes, with jitter) until
-- `max_attempts`; then the job is dead. Others fail at once. What the job had written is removed; a source that was
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
        -- least() passes over null, so it may not see an unsaid wait.
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

-- from sql/45_sweep_ingest_jobs.sql sha256:53ceee2a44205fd32df0bfeb131a82b8fda09048abe862b80744333ac035629a
-- Puts right what a crash or a lost message left: leases that expired too often become dead jobs and failed sources, stored
-- objects without a job get one, uploads that never came are given up when their signed URL is long over, unfinished
-- generations that no job will finish are removed. A lost worker is forgiven twice as often as a failure: most were merely
-- stopped. Returns counts, the ids of the jobs that are due (oldest first, at most 100) and the paths of stored objects that
-- belong to nobody, at most 100, which the caller removes: uploads that came after their document was deleted, duplicates, and
-- what is larger than was announced.
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
        'The document could not be processed: every attempt ended without an answer. Try again, or split the file.';
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
        and not exists (select from rag.ingest_jobs j where j.document_id = d.id and j.kind = 'ingest' and j.object_version = o.version);

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
        select q.id, q.run_after from rag.ingest_jobs q
        where q.run_after <= clock_timestamp()
            and (q.status = 'queued' or (q.status = 'running' and q.lease_expires_at < clock_timestamp()))
        order by q.run_after limit 100
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

-- from sql/46_request_ingest_job.sql sha256:809d0e974f21e7bdc6e34e767a0e127fdb01ca09644d20b52c7ac4329a03a26c
-- Queues one of the caller's documents again: a failed one from its stored file, an indexed one for re-indexing (the old
-- passages answer until the new ones replace them). An open job is left alone and, if it was waiting, made due now.
-- Returns the job's id, or null when the document is not the caller's or has no stored file that may be read.
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

-- from sql/47_delete_document.sql sha256:511b145b80018277434800c7bf7e0f37fa4cbc2e8f4a03aa53d6073a38fe1ef6
-- Deletes one of the caller's documents with everything made of it, its older versions and its aliases, in any status, and
-- says how many rows went. Null when there is no such document of the caller's. The stored objects, whose paths are in the
-- receipt, are removed by the caller afterwards.
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

-- from sql/49_release_lost_jobs.sql sha256:8be119728341233dd49c6c3af005e1f7f44ac0f6d55b08a02ad26538788d711f
-- Ends the leases of the dead processes of a host: a job whose holder is "host:…" and not among those alive is due now instead
-- of when its lease would end. It counts as lost (sweep_ingest_jobs), so that what kills every worker is given up.
-- Returns how many.
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

-- from sql/51_delete_sources.sql sha256:1f04056c12dbcfb706435e10a5d5b6ab04fb98f45439004a64cb2fabec7c0382
-- Deletes notes and documents of the caller's with everything made of them, in any state, and says how many rows went; what
-- is not there, or not the caller's, counts for nothing. The stored objects, whose paths are in the receipt, are removed by
-- the caller afterwards.
create or replace function rag.delete_sources(note_ids uuid[], document_ids uuid[]) returns jsonb
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    doomed uuid;
    receipts jsonb[];
begin
    -- Notes before documents and each kind by id: one order for everybody, no deadlock.
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
        receipts := array_append(receipts, rag.delete_document(doomed)); -- null when it went as a version of another
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

-- from sql/52_request_note_job.sql sha256:220306c3b46f07eae6f93713c69def07350d1cc88c42607ea29341307d7a6cdc
-- Queues one of the caller's notes again, as after a failure; what is indexed answers until the new passages replace it. An
-- open job is left alone and, if it was waiting, made due now. Returns the job's id, or null when the note is not the
-- caller's or has no text.
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

-- from sql/53_take_quota.sql sha256:dbcdc532ef4993491058cd93beaf0f6844fb3298c91dbc4d5656e46d1e79b66b
-- Counts one use of a kind by the caller: a 'request' or an 'upload' within a minute, a 'question' within a day (UTC). When
-- `quota` of them are used up, nothing is counted and the transaction fails with IB002, whose detail says which quota it was
-- and in how many seconds it begins anew. 0 is no quota. The row stays locked until the caller's transaction ends, so uses at
-- the same time take turns and none is lost.
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

-- from sql/54_take_upload.sql sha256:528ca5e554dd5092303703df4573660300740e9199b94f3d66417242e2b044bd
-- Counts the announcement of an upload by the caller and fails with IB002, as rag.take_quota does, when the caller has as many
-- documents or bytes as allowed; 0 is no limit. What is announced counts as what is stored; a duplicate and an upload that was
-- given up do not. Announcements of one user take turns until their transactions end: two at once cannot share the last place.
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

-- from sql/55_forget_user.sql sha256:635931ecae1ab74ca7beb077f0fc3791fb23a9a1821b3994821e33e006f5ccde
-- Deletes what a person has left here: at most `batch_size` documents, notes and conversations a call, and with the last of
-- them everything else that bears the id. Returns how many rows of each went, the paths of the stored objects, which the caller
-- removes afterwards, and `is_done`; call it until that is true. Repeating it is safe: what came meanwhile goes, too.
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
    -- Notes before documents and each kind by id, as everywhere: nobody waits in a circle.
    select array_agg(n.id) into doomed
    from (select id from rag.notes where owner_id = user_id order by id limit batch_size for update) n;
    delete from rag.notes n where n.id = any (doomed);
    get diagnostics removed = row_count;
    receipt := receipt || jsonb_build_object('notes', removed);

    -- Duplicates go with the document that answers for them.
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
        -- What was uploaded to the address of a document that is gone.
        select paths || coalesce(jsonb_agg(o.name), '[]') into paths
        from storage.objects o
        where o.bucket_id = 'documents' and starts_with(o.name, user_id::text || '/') and not paths ? o.name;
    end if;
    return receipt || jsonb_build_object('object_paths', paths, 'is_done', is_done);
end
$$;
revoke all on function rag.forget_user(uuid, int) from public;
grant execute on function rag.forget_user(uuid, int) to rag_worker;
