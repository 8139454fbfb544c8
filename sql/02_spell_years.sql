-- Text with its years written in full, so that "FY22", "fiscal '22", "2022/23", "3Q21" and "2021-2022" in a question or a passage
-- meet the same years in the other: fiscal 2022, 2022 2023, Q3 2021, 2021 2022 (which the parser would read as 2021 and minus
-- 2022). Each step prepares for the next; a text that has been through them stays as it is.
create or replace function rag.spell_years(content text) returns text
language sql immutable parallel safe
as $$
    select case when content ~ '\d' then
        regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
        regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(content,
        '\m((?:19|20)\d\d)-?Q([1-4])\M', 'Q\2 \1', 'gi'), -- 2023Q4
        '\m([1-4])Q[- ]?(?:FY)?[''’]?(\d\d)\M', 'Q\1 ''\2', 'gi'), -- 3Q21
        '\m([1-4])Q[- ]?(?:FY)?((?:19|20)\d\d)\M', 'Q\1 \2', 'gi'),
        '\m(Q[1-4])[-/](\d\d)\M', '\1 ''\2', 'gi'), -- Q3/21
        '\m(Q[1-4])[-/]?(?=FY|(?:19|20)\d\d\M|[''’]\d\d\M)', '\1 ', 'gi'), -- Q3FY21
        '\m(?:FY[- ]?|fiscal (?:year )?)(?=[''’]?\d\d(?:\d\d)?\M)', 'fiscal ', 'gi'), -- FY 2022
        '\m(fiscal )[''’]?(?=\d\d\M(?![.,]\d|%))', '\1''', 'gi'), -- fiscal 22
        '(?<!\w)[''’](?=[0-4]\d\M)', '20', 'g'), -- '22
        '(?<!\w)[''’](?=[5-9]\d\M)', '19', 'g'), -- '93
        '\m(19|20)(\d)(\d) ?[-–/] ?(\2\d)\M(?![-–/.]\d)', '\1\2\3 \1\4', 'g'), -- 2022/23
        '\m(19|20)(\d9) ?[-–/] ?([1-9]0)\M(?![-–/.]\d)', '\1\2 \1\3', 'g'), -- 2019/20
        '\m1999 ?[-–/] ?00\M(?![-–/.]\d)', '1999 2000', 'g'),
        '(\d)[-/](?=(?:19|20)\d\d\M)', '\1 ', 'g') -- 2021-2022, 12/31/2022
        else content end
$$;
revoke all on function rag.spell_years(text) from public;
grant execute on function rag.spell_years(text) to authenticated, rag_worker;
