-- A question may take the place of an earlier one of its conversation, whose answer is kept. Readers rate answers, for the
-- evaluation. `daily_usage` has what a user's answers of a day (UTC) took; unlike messages it outlives conversations, because the
-- money is spent. Only rag.count_usage counts.
alter table rag.messages
    add column replaces uuid references rag.messages on delete set null, -- in a question, the question that it replaces
    add column rating text check (rating in ('up', 'down')), -- in an answer
    add column rating_reason text not null default '' check (length(rating_reason) <= 1000),
    add column rated_at timestamptz;
create index messages_replaces on rag.messages (replaces) where replaces is not null;
create index messages_rated on rag.messages (owner_id, rated_at desc, id desc) where rating is not null;

create table rag.daily_usage (
    owner_id uuid not null,
    day date not null,
    questions int not null default 0,
    prompt_tokens bigint not null default 0,
    completion_tokens bigint not null default 0,
    cost_usd numeric not null default 0, -- of the answers whose cost was known
    primary key (owner_id, day)
) with (fillfactor = 50); -- rows are updated often, but never in an indexed column
create index daily_usage_day on rag.daily_usage (day);

alter table rag.daily_usage enable row level security;
alter table rag.daily_usage force row level security;
create policy "Workers do everything" on rag.daily_usage to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.daily_usage for select to authenticated
    using (owner_id = (select auth.uid()));
create policy "Administrators read the usage of all" on rag.daily_usage for select to authenticated
    using ((select auth.jwt()) -> 'app_metadata' ->> 'role' = 'admin');
grant select, insert, update, delete on rag.daily_usage to rag_worker;
grant select on rag.daily_usage to authenticated;
