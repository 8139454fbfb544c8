-- The scale of similarities for each pair of languages: {"fr>en": [floor, ceiling]} for French questions and English passages,
-- because two French texts are closer than two English ones, and both than a French and an English one. Other pairs use
-- similarity_floor and similarity_ceiling.
alter table rag.embedding_servers add column similarity_scales jsonb not null default '{}';
