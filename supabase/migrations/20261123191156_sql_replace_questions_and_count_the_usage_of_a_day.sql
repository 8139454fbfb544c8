-- Stamped from sql/ by `make sql-stamp`. Edit the files there, not here.

-- from sql/55_forget_user.sql sha256:728b6653e7df56fea4c0e002445e7930fc7b91710fffc94bcd9d24b3ae50a6e7
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

-- from sql/67_open_question_v2.sql sha256:f1577660e19b0d46b47ab84b18760e69093c33691dc55eb277679c1c765becca
-- Opens a question of the caller in one round trip: counts it, checks what it names, finds or begins its conversation, and saves
-- it. Returns `conversation_id`, `question_id`, `scope`, `position`, and `history`: the last `turn_count` answered questions with their answers,
-- oldest first, and `translations`, see rag.find_translations. Whatever it raises leaves no trace: neither the question nor its count is kept.
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
        'history', coalesce(history, '[]'), 'translations', rag.find_translations(text_hash,
            array(select jsonb_array_elements_text(scope -> 'document_ids')::uuid), (scope ->> 'notebook_id')::uuid,
            (scope ->> 'note_id')::uuid, coalesce(scope -> 'filters', '{}')));
end
$$;
revoke all on function rag.open_question_v2(
    text, text, uuid, uuid[], uuid, uuid, jsonb, boolean, boolean, int, int, int, text, uuid) from public;
grant execute on function rag.open_question_v2(
    text, text, uuid, uuid[], uuid, uuid, jsonb, boolean, boolean, int, int, int, text, uuid) to authenticated;

-- from sql/72_count_usage.sql sha256:5608928ddf42592c8c512b37386e3e7ee7754d70461ebbd5fe6bfe0abfaafaa2
-- Adds an answer of the caller to today's usage (UTC). What a model server did not report is null.
create or replace function rag.count_usage(prompt_tokens bigint, completion_tokens bigint, cost_usd numeric) returns void
language sql volatile
security definer -- users may not write the counters; it counts for the caller alone
set search_path = pg_catalog, pg_temp
as $$
    insert into rag.daily_usage as u (owner_id, day, questions, prompt_tokens, completion_tokens, cost_usd)
    values (auth.uid(), (clock_timestamp() at time zone 'UTC')::date, 1, greatest(0, coalesce($1, 0)),
        greatest(0, coalesce($2, 0)), greatest(0, coalesce($3, 0)))
    on conflict on constraint daily_usage_pkey do update
    set questions = u.questions + 1, prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = u.completion_tokens + excluded.completion_tokens, cost_usd = u.cost_usd + excluded.cost_usd
$$;
revoke all on function rag.count_usage(bigint, bigint, numeric) from public;
grant execute on function rag.count_usage(bigint, bigint, numeric) to authenticated;
