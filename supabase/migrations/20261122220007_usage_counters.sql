-- How often a user has done something in the window that began at `window_start`: one row for each user and kind. Only
-- rag.take_quota counts; users have no right to the table.
create table rag.usage_counters (
    owner_id uuid not null,
    kind text not null check (kind in ('request', 'question', 'upload')),
    window_start timestamptz not null,
    used int not null,
    primary key (owner_id, kind)
) with (fillfactor = 50); -- rows are updated often, but never in an indexed column
