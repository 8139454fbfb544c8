-- The indexed text of most chunks is `text` below a title and a section. Then only these are stored, in `search_prefix`, and
-- `search_text` is null. Both columns are computed in one rewrite of the table.
alter table rag.chunks add column search_prefix text, alter column search_text drop not null;
alter table rag.chunks
    alter column search_prefix type text using (
        case when right(search_text, length(text)) = text then left(search_text, length(search_text) - length(text)) end),
    alter column search_text type text using (case when right(search_text, length(text)) <> text then search_text end);
alter table rag.chunks add constraint chunks_search_text_check check (num_nonnulls(search_prefix, search_text) = 1);
