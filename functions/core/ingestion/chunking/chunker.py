"""Cuts a page into passages to index: at headings, then at paragraphs, sentences, words and characters.

Tables are cut between rows, and each piece gets the names of its columns (`table_chunks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from functions.core import models
from functions.core.ingestion.chunking import captions, headings, page_layout, table_chunks
from functions.core.ingestion.chunking.page_layout import Carry, PageLayout
from functions.core.ingestion.chunking.passages import ChunkSettings, PassageBuilder
from functions.core.text import abbreviations, token_spans
from functions.core.text.token_spans import CountTokens, Span

_FULL_ENOUGH = 0.6  # from this share of the target on, a passage may end with its paragraph
_TOO_SMALL = 0.2  # a rest below this share of the target joins the passage before it


@dataclass(frozen=True, slots=True)
class _Section:
    start: int
    end: int
    title: str | None


def chunk_page(
    page: models.Page,
    *,
    settings: ChunkSettings,
    count_tokens: CountTokens,
    title: str | None,
    carry: Carry,
    first_index: int,
    lang: models.Lang,
    skip: Sequence[models.Offsets] = (),
) -> tuple[list[models.Chunk], Carry]:
    """The chunks of one page, numbered from `first_index`, and what the next page takes over.

    They cover every character except white space, `page.hidden`, `skip` (outside of tables only) and stretches without
    any letter or digit. `page.text[c.start_offset:c.end_offset] == c.text` for each chunk, and the same page with the
    same settings always gives the same chunks. `lang` is the language of passages that are too short to detect it.
    """
    layout = page_layout.lay_out(page, skip, carry)
    known = abbreviations.learn(carry.abbreviations, layout.visible)
    builder = PassageBuilder(page, settings, count_tokens, title, lang, known)
    chunks: list[models.Chunk] = []
    for section in _split_sections(layout, carry.section):
        chunks += _chunk_section(layout, section, builder)
    last_title = chunks[-1].section_title if chunks else carry.section
    numbered = [replace(chunk, index=first_index + offset) for offset, chunk in enumerate(chunks)]
    table = layout.last_table()
    if table is None:
        return numbered, Carry(last_title, abbreviations=known)
    caption = captions.find_lead(layout, 0, table, builder).caption
    header = table_chunks.shorten_header(table.header, builder)
    group = table_chunks.find_last_group(table)
    return numbered, Carry(last_title, header, table.borders, caption, known, group)


def _chunk_section(layout: PageLayout, section: _Section, builder: PassageBuilder) -> Iterator[models.Chunk]:
    blocks = [block for block in layout.blocks if section.start <= block.start < section.end]
    leads = {block.start: captions.find_lead(layout, section.start, block, builder) for block in blocks}
    prose = [
        (start, leads[end].start if end in leads else end)
        for start, end in layout.stretches(section.start, section.end)
    ]
    limit = builder.text_limit(section.title)
    # Where text runs through a table, prose and table may begin at the same place: the prose goes first.
    for start, end, block in sorted(
        [(start, end, None) for start, end in prose] + [(block.start, block.end, block) for block in blocks],
        key=lambda item: (item[0], item[2] is not None),
    ):
        if block is not None:
            yield from table_chunks.chunk_table(block, leads[block.start], section.title, builder)
            continue
        for left, right in _pack(layout.text, start, end, limit, builder):
            yield from builder.build(left, right, section.title)


def _split_sections(layout: PageLayout, carried: str | None) -> Iterator[_Section]:
    """The sections, which tile the text; consecutive headings open one section, named by the last of them."""
    start, title, body = 0, carried, 0
    for heading in headings.find_headings(layout.prose):
        if layout.visible[body : heading.start].strip():
            yield _Section(start, heading.start, title)
            start = heading.start
        title, body = heading.title or title, heading.end
    if layout.visible[start:].strip():
        yield _Section(start, len(layout.text), title)


def _pack(text: str, start: int, end: int, limit: int, builder: PassageBuilder) -> Iterator[models.Offsets]:
    """Groups of sentences near the target size, each as [start, end) and beginning with the overlap."""
    settings = builder.settings
    target = min(settings.target_tokens, limit)
    spans = token_spans.split_spans(text, start, end, target, builder.count_tokens)
    begin = fresh = 0  # the group begins at span `begin`; spans before `fresh` repeat the previous group
    while fresh < len(spans):
        stop = _group_end(spans, begin, fresh, target, limit)
        yield spans[begin].start, spans[stop - 1].end
        begin, fresh = _overlap_start(spans, begin, stop, settings.overlap_tokens, target), stop


def _group_end(spans: list[Span], begin: int, fresh: int, target: int, limit: int) -> int:
    tokens = sum(span.tokens for span in spans[begin:fresh])
    end, paragraph_end = fresh, 0
    while end < len(spans) and (end == fresh or tokens + spans[end].tokens <= target):
        tokens += spans[end].tokens
        end += 1
        if spans[end - 1].ends_paragraph and tokens >= _FULL_ENOUGH * target:
            paragraph_end = end
    rest = sum(span.tokens for span in spans[end : end + 8])
    if len(spans) - end <= 8 and rest < _TOO_SMALL * target and tokens + rest <= limit:
        return len(spans)
    return paragraph_end if paragraph_end and end < len(spans) else end


def _overlap_start(spans: list[Span], begin: int, end: int, overlap_tokens: int, target: int) -> int:
    if end >= len(spans):
        return end
    room = min(overlap_tokens, target - spans[end].tokens)
    start = end
    while start - 1 > begin and spans[start - 1].tokens <= room:
        start -= 1
        room -= spans[start].tokens
    return start
