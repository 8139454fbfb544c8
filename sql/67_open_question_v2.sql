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
