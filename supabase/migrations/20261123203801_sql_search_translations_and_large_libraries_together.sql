-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/19_hybrid_search_v2.sql sha256:ebfad69750c2e8cb358f45e90ea5f3d2b9626ac3909eaa923f75abeff6aa1146
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

-- from sql/26_segment_scope.sql sha256:c3be859ea71df9ed33718f2f52fe8ff1f8d63b652e228e79bd31f33e3d2a1c5a
-- How a scope is searched by words: in the posting lists of these segments, without the chunks that are left out because they
-- are not in scope, and in the remaining generations chunk by chunk. A segment of which less than a quarter is in scope is not
-- worth it. A generation that got translations after its segment was written is stale there, and searched chunk by chunk.
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
        from (
            select s.*, case when not s.is_stale then s.generation end as current from rag.segment_generations s
        ) g
        full join unnest(generations) as w (generation) on w.generation = g.current
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

-- from sql/27_posting_frequencies.sql sha256:b31643a5627c52b1729d7a0eabfeed3e180bb62c4d970dacf2ac8fdb8fdd2c8a
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
            select p.term, sum(p.chunk_frequency - case scope.left_out when '{}' then 0 else (
                select count(*) from unnest(p.postings) as l (posting)
                where l.posting > 0 and l.posting >> 15 in (select unnest(scope.left_out))) end) as df
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

-- from sql/55_forget_user.sql sha256:a8b355d1244f70f5a3cd8e9459303eed0360e1fcc6db76d50793cf52ed366de7
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
        delete from rag.daily_usage where owner_id = user_id;
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

-- from sql/67_open_question_v2.sql sha256:51971050028dfdb94b0cea1f9aa28c3435a8157d575ae74f0c369cf16e746cba
-- Opens a question of the caller in one round trip: counts it, checks what it names, finds or begins its conversation, and saves
-- it. Returns `conversation_id`, `question_id`, `scope`, `position`, and `history`: the last `turn_count` answered questions with their answers,
-- oldest first, `translations`, see rag.find_translations, and `preferences`, see rag.find_preferences. Whatever it raises leaves no
-- trace: neither the question nor its count is kept.
-- `scope` is what the question asks for. With `inherits_scope` the conversation's takes its place: the documents attached to it,
-- else its note or notebook. Without `is_saved` the client keeps the conversation, and nothing is found or saved.
-- With `replaces` it takes the place of an earlier question of the conversation. What is replaced is kept, but is no history.
-- Raises IB002 as rag.take_quota does, and IB003 with a message that says what is refused: a `document`, `place` or
-- `conversation` that the caller does not have, a `question` that the conversation does not have, or a `named note`, `note` or `documents` in the trash.
create or replace function rag.open_question_v2(
    query_text text,
    title text,
    conversation_id uuid, -- null begins a new one, with that title
    document_ids uuid[],
    notebook_id uuid,
    note_id uuid,
    scope jsonb,
    inherits_scope boolean,
    is_saved boolean,
    turn_count int,
    requests_per_minute int,
    questions_per_day int,
    text_hash text,
    replaces uuid
) returns jsonb
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan -- every statement finds its rows by their keys
as $$
declare
    conversation record;
    attached uuid[];
    asked uuid[];
    history jsonb;
    replaced bigint[];
    saved_id uuid;
    saved_position bigint;
begin
    perform rag.take_quota('request', requests_per_minute), rag.take_quota('question', questions_per_day);
    if exists (
        select from unnest(open_question_v2.document_ids) as i (id)
        where not exists (select from rag.documents d where d.id = i.id)) then
        raise sqlstate 'IB003' using message = 'document';
    end if;
    if open_question_v2.notebook_id is not null
        and not exists (select from rag.notebooks b where b.id = open_question_v2.notebook_id)
        or open_question_v2.note_id is not null
        and not exists (select from rag.notes n where n.id = open_question_v2.note_id) then
        raise sqlstate 'IB003' using message = 'place';
    end if;
    if exists (select from rag.notes n where n.id = open_question_v2.note_id and n.trashed_at is not null) then
        raise sqlstate 'IB003' using message = 'named note';
    end if;
    if not is_saved then
        return jsonb_build_object('conversation_id', null, 'question_id', null, 'scope', scope, 'position', null, 'history', '[]'::jsonb,
            'preferences', rag.find_preferences(scope),
            'translations', rag.find_translations(text_hash,
            array(select jsonb_array_elements_text(scope -> 'document_ids')::uuid), (scope ->> 'notebook_id')::uuid,
            (scope ->> 'note_id')::uuid, coalesce(scope -> 'filters', '{}')));
    end if;
    if conversation_id is not null then
        update rag.conversations c set updated_at = clock_timestamp() where c.id = open_question_v2.conversation_id
        returning c.note_id, c.notebook_id into conversation;
        if not found then
            raise sqlstate 'IB003' using message = 'conversation';
        end if;
        if inherits_scope then
            attached := array(
                select a.document_id from rag.conversation_documents a
                where a.conversation_id = open_question_v2.conversation_id order by a.created_at, a.document_id);
            scope := scope || case
                when attached <> '{}' then jsonb_build_object('kind', 'conversation', 'document_ids', attached)
                when conversation.note_id is not null then
                    jsonb_build_object('kind', 'note', 'note_id', conversation.note_id)
                when conversation.notebook_id is not null then
                    jsonb_build_object('kind', 'notebook', 'notebook_id', conversation.notebook_id)
                else '{}' end;
        end if;
        if replaces is not null and not exists (
            select from rag.messages m
            where m.id = open_question_v2.replaces and m.conversation_id = open_question_v2.conversation_id and m.role = 'user') then
            raise sqlstate 'IB003' using message = 'question';
        end if;
        replaced := array(
            select m.position from rag.messages m
            where m.conversation_id = open_question_v2.conversation_id and (m.id = open_question_v2.replaces
                or m.id in (select later.replaces from rag.messages later
                    where later.conversation_id = open_question_v2.conversation_id)));
        with numbered as (
            select m.role, m.content, m.status, row_number() over following as place,
                lead(m.status) over following as answer, lead(m.role) over following as next_role,
                lead(m.search_query) over following as searched
            from rag.messages m where m.conversation_id = open_question_v2.conversation_id
                and coalesce(m.question_position, m.position) <> all (replaced)
            window following as (order by coalesce(m.question_position, m.position), m.position)
        ), latest as (
            select * from numbered n
            where (n.role = 'assistant' and n.status in ('complete', 'interrupted'))
                or (n.role = 'user' and n.next_role = 'assistant' and n.answer in ('complete', 'interrupted'))
            order by n.place desc limit turn_count * 2
        )
        select jsonb_agg(jsonb_build_object('role', l.role, 'content', l.content,
            'search_query', case l.role when 'user' then l.searched end) order by l.place) into history
        from latest l;
    end if;
    asked := array(select jsonb_array_elements_text(scope -> 'document_ids')::uuid);
    if exists (select from rag.notes n where n.id = (scope ->> 'note_id')::uuid and n.trashed_at is not null) then
        raise sqlstate 'IB003' using message = 'note';
    end if;
    if exists (select from rag.documents d where d.id = any (asked))
        and not exists (select from rag.untrashed_documents u where u.id = any (asked)) then
        raise sqlstate 'IB003' using message = 'documents';
    end if;
    if conversation_id is null then
        insert into rag.conversations as c (owner_id, title, notebook_id, note_id)
        values (auth.uid(), open_question_v2.title, (scope ->> 'notebook_id')::uuid, (scope ->> 'note_id')::uuid)
        returning c.id into conversation_id;
    end if;
    insert into rag.messages as m (conversation_id, owner_id, role, content, scope, replaces)
    values (open_question_v2.conversation_id, auth.uid(), 'user', query_text, open_question_v2.scope, open_question_v2.replaces)
    returning m.id, m.position into saved_id, saved_position;
    return jsonb_build_object('conversation_id', conversation_id, 'question_id', saved_id, 'scope', scope, 'position', saved_position,
        'history', coalesce(history, '[]'), 'preferences', rag.find_preferences(scope),
        'translations', rag.find_translations(text_hash,
            array(select jsonb_array_elements_text(scope -> 'document_ids')::uuid), (scope ->> 'notebook_id')::uuid,
            (scope ->> 'note_id')::uuid, coalesce(scope -> 'filters', '{}')));
end
$$;
revoke all on function rag.open_question_v2(
    text, text, uuid, uuid[], uuid, uuid, jsonb, boolean, boolean, int, int, int, text, uuid) from public;
grant execute on function rag.open_question_v2(
    text, text, uuid, uuid[], uuid, uuid, jsonb, boolean, boolean, int, int, int, text, uuid) to authenticated;

-- from sql/72_add_translations.sql sha256:0646c48475c68a0f836ce6bcad61e8d7c58cc1c76e336c6ace4a1b6ef2b6cfa1
-- Saves translations of chunks of one generation beside them, and indexes their words; whoever saves them writes their vectors. A
-- null text records that the translator gave nothing that could be used. Posting lists that were written before lack them, so they
-- are stale. The caller holds a lease.
create or replace function rag.add_translations(chunk_ids bigint[], langs text[], text_hashes text[], texts text[]) returns int
language sql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
    insert into rag.chunk_translations (id, generation, owner_id, lang, text_hash, text)
    select - c.id, c.generation, c.owner_id, g.lang, g.text_hash, g.text
    from unnest(chunk_ids, langs, text_hashes, texts) as g (chunk_id, lang, text_hash, text)
    join rag.chunks c on c.id = g.chunk_id;
    update rag.segment_generations s set is_stale = true
    from rag.chunks c
    where c.id = any (chunk_ids) and s.generation = c.generation and not s.is_stale;
    select rag.index_chunks(array(select - t.chunk_id from unnest(chunk_ids) as t (chunk_id)))
$$;
revoke all on function rag.add_translations(bigint[], text[], text[], text[]) from public;
grant execute on function rag.add_translations(bigint[], text[], text[], text[]) to rag_worker;

-- from sql/72_renew_segments.sql sha256:2d61827993f6fa714003ef29d9e5cc09617b359423800d235802d68cb36a3acb
-- Writes the posting lists of one segment more, and returns how many chunks it has, or null when nothing is left to do. First a
-- segment with deleted or stale generations is dissolved, so that nothing stays of their words. Then the library with most chunks outside
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
        where g.is_stale or not exists (select from rag.generations r where r.id = g.generation));
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
    select new_id, p.term, p.lang, owner, count(*) filter (where not p.is_repeated), max(p.weight) / 10000.0,
        array_agg(p.chunk_id << 15 | p.weight order by p.chunk_id)
    from (
        select t.chunk_id, case t.lang when 'en' then 1 when 'fr' then 2 else 3 end as lang,
            split_part(e.element, ':', 1)::int as term, round(10000 * split_part(e.element, ':', 2)::float8)::int as weight,
            -- A chunk that has a term in both of its forms is counted once, as in rag.index_chunks.
            t.chunk_id < 0 and exists (
                select from rag.chunk_terms o
                where o.chunk_id = - t.chunk_id
                    and o.terms <#> ('{' || split_part(e.element, ':', 1) || ':1}/268435456')::sparsevec < 0) as is_repeated
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
