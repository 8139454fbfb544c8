-- What an indexing run found, for the health report: pages without text, read by OCR, with tables or with hidden text, and the
-- number of chunks in each language.
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
