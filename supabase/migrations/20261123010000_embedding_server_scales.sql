-- Prefixes that a model wants before questions and passages, and the scale of its similarities. Cosines of different models are
-- not comparable: unrelated texts have a cosine of 0.0 with one and of 0.75 with another. The floor is what unrelated texts reach,
-- the ceiling what a question and the passage that answers it reach; search, guard and page use (cosine - floor) / (ceiling - floor).
alter table rag.embedding_servers
    add column query_prefix text not null default '' check (length(query_prefix) <= 500),
    add column passage_prefix text not null default '' check (length(passage_prefix) <= 500),
    add column similarity_floor real not null default 0 check (similarity_floor between -1 and 1),
    add column similarity_ceiling real not null default 1 check (similarity_ceiling between -1 and 1),
    -- How many passages the library had when the scale was measured; null means that it never was.
    add column calibrated_passages bigint check (calibrated_passages >= 0),
    add constraint embedding_servers_scale check (similarity_floor < similarity_ceiling);
