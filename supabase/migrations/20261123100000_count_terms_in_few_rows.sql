-- How many chunks contain a term, in a few rows for each batch of chunks that were saved together. A row for each term took more
-- than all other tables together. `bucket` is that of rag.term_bucket, or 0 where one row counts all terms of a small batch.
-- Rows of up to a page stay in the table, because reading them from TOAST takes several times as long.
create table rag.counted_terms (
    generation bigint not null,
    bucket smallint not null check (bucket between 0 and 16),
    first_chunk_id bigint not null, -- of the batch
    owner_id uuid not null,
    terms extensions.sparsevec not null,
    constraint counted_terms_pkey primary key (generation, bucket, first_chunk_id)
) with (toast_tuple_target = 8160);

lock table rag.generation_terms in exclusive mode; -- a batch that is saved meanwhile would be missing
-- What is there becomes one batch for each generation. Term ids are 1 … 2^28.
insert into rag.counted_terms (generation, bucket, first_chunk_id, owner_id, terms)
select g.generation, k.bucket, b.first_chunk_id, b.owner_id,
    ('{' || string_agg(g.term || ':' || g.chunk_frequency, ',') || '}/268435456')::extensions.sparsevec
from (
    select t.*, count(*) over (partition by t.generation) as term_count from rag.generation_terms t
) g
join (
    select t.generation, t.owner_id, min(t.chunk_id) as first_chunk_id, count(*) as chunk_count from rag.chunk_terms t group by 1, 2
) b on b.generation = g.generation
cross join lateral (
    select case when b.chunk_count <= 7 and g.term_count <= 900 then 0 else 1 + (g.term - 1 >> 24) end as bucket) k
group by 1, 2, 3, 4;

drop table rag.generation_terms;
alter table rag.counted_terms rename to generation_terms;
alter table rag.generation_terms rename constraint counted_terms_pkey to generation_terms_pkey;
alter table rag.generation_terms rename constraint counted_terms_bucket_check to generation_terms_bucket_check;
create index generation_terms_owner on rag.generation_terms (owner_id, bucket);

alter table rag.generation_terms enable row level security;
alter table rag.generation_terms force row level security;
create policy "Workers do everything" on rag.generation_terms to rag_worker using (true) with check (true);
create policy "Owners read their own rows" on rag.generation_terms for select to authenticated
    using (owner_id = (select auth.uid()));
grant select, insert, update, delete on rag.generation_terms to rag_worker;
grant select on rag.generation_terms to authenticated;
