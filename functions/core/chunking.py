"""Cuts a page into passages to index: at headings, then paragraphs, sentences, words, and characters last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from functions.core import headings, languages, models, text_spans
from functions.core.text_spans import CountTokens, Span

_FULL_ENOUGH = 0.6
_TOO_SMALL = 0.2
_PREFIX_SHARE = 4

_LINE_END_HYPHEN = re.compile("(?<=\\w)(?:\u00ad\\s*|[-\u2010]\\n\\s*)(?=\\w)")
_WORD_BEFORE = re.compile(r"\w+$")
_WORD_AFTER = re.compile(r"\w+")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\u00ad": "", "\u200b": ""}
)


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """Sizes in tokens: the text of a chunk aims at the target, its `search_text` never exceeds the maximum."""

    target_tokens: int = 180
    overlap_tokens: int = 30
    max_tokens: int = 240


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
    section: str | None,
    first_index: int,
    lang: models.Lang,
) -> list[models.Chunk]:
    """The chunks of one page, numbered from `first_index`.

    They cover every visible character; `page.text[c.start_offset:c.end_offset] == c.text` holds for each; the same
    page with the same settings always gives the same chunks. `section` is the one the page before ended in, `lang`
    the language of passages too short to tell.
    """
    builder = _Builder(page, settings, count_tokens, title, lang)
    chunks: list[models.Chunk] = []
    for part in _split_sections(page.text, section):
        for start, end in _pack(page.text, part, builder.text_limit(part.title), settings, count_tokens):
            chunks += builder.build(start, end, part.title, first_index + len(chunks))
    return chunks


def last_section(chunks: Sequence[models.Chunk]) -> str | None:
    """The section the next page begins in; None when `chunks` is empty or has no heading."""
    return chunks[-1].section_title if chunks else None


def undo_hyphenation(text: str, context: str = "") -> str:
    """Joins words cut at line ends; the hyphen stays before capitals, digits, and where `context` has the compound."""

    def join(match: re.Match[str]) -> str:
        before, after = _WORD_BEFORE.search(text, 0, match.start()), _WORD_AFTER.match(text, match.end())
        left, right = before.group() if before else "", after.group() if after else ""
        if not right[:1].islower() or (f"{left}-{right}" in context and left + right not in context):
            return "-"
        return ""

    return _LINE_END_HYPHEN.sub(join, text)


def _split_sections(text: str, carried: str | None) -> Iterator[_Section]:
    """Sections tile the text; headings that follow each other directly open one section, named by the last."""
    start, title, body = 0, carried, 0
    for heading in headings.find_headings(text):
        if text[body : heading.start].strip():
            yield _Section(start, heading.start, title)
            start = heading.start
        title, body = heading.title, heading.end
    if text[start:].strip():
        yield _Section(start, len(text), title)


def _pack(
    text: str, section: _Section, limit: int, settings: ChunkSettings, count_tokens: CountTokens
) -> Iterator[tuple[int, int]]:
    """Groups of sentences near the target size, each as [start, end) with the overlap at its start."""
    target = min(settings.target_tokens, limit)
    spans = text_spans.split_spans(text, section.start, section.end, target, count_tokens)
    begin = fresh = 0  # the group starts at span `begin`; spans before `fresh` repeat the group before
    while fresh < len(spans):
        end = _group_end(spans, begin, fresh, target, limit)
        yield spans[begin].start, spans[end - 1].end
        begin, fresh = _overlap_start(spans, begin, end, settings.overlap_tokens, target), end


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


@dataclass(frozen=True, slots=True)
class _Builder:
    page: models.Page
    settings: ChunkSettings
    count_tokens: CountTokens
    title: str | None
    lang: models.Lang

    def text_limit(self, section: str | None) -> int:
        """Tokens left for the text when the whole prefix is kept."""
        prefix = self._prefix(section, "")
        used = self.count_tokens(prefix) if prefix else 0
        return max(1, self.settings.max_tokens - used - 2)

    def build(self, start: int, end: int, section: str | None, index: int) -> list[models.Chunk]:
        """The chunk of page text [start, end), or several where its `search_text` would be too long after all."""
        start, end = _trim(self.page.text, start, end)
        if start >= end:
            return []
        text = self.page.text[start:end]
        search_text = self._search_text(text, section)
        tokens = self.count_tokens(search_text)
        if tokens > self.settings.max_tokens and end - start > 1:
            middle = _middle(text) + start
            first = self.build(start, middle, section, index)
            return first + self.build(middle, end, section, index + len(first))
        chunk = models.Chunk(
            index=index,
            page_start=self.page.number,
            page_end=self.page.number,
            start_offset=start,
            end_offset=end,
            text=text,
            search_text=search_text,
            section_title=section,
            lang=languages.detect_language(text, self.lang),
            token_count=tokens,
        )
        return [chunk]

    def _search_text(self, text: str, section: str | None) -> str:
        body = undo_hyphenation(text, self.page.text).translate(_LIGATURES)
        prefix = self._prefix(section, text)
        while prefix and self.count_tokens(prefix + body) > self.settings.max_tokens:
            prefix = _shorten(prefix)
        return prefix + body

    def _prefix(self, section: str | None, text: str) -> str:
        """Title and section, a line each and a quarter of the room at most; not the section the text itself names."""
        opening = " ".join(text[: 2 * headings.MAX_HEADING_CHARACTERS].split())
        lines = [" ".join(line.split()) for line in (self.title, section) if line]
        prefix = "".join(f"{line}\n" for line in lines if line and not (opening and line in opening))
        while prefix and self.count_tokens(prefix) > self.settings.max_tokens // _PREFIX_SHARE:
            prefix = _shorten(prefix)
        return prefix


def _shorten(prefix: str) -> str:
    """Takes about a third off the longest line, at a word border where there is one."""
    lines = prefix.rstrip("\n").split("\n")
    longest = max(range(len(lines)), key=lambda index: len(lines[index]))
    cut = lines[longest][: len(lines[longest]) * 2 // 3]
    lines[longest] = cut.rpartition(" ")[0] or (cut if len(cut) > 8 else "")
    return "".join(f"{line}\n" for line in lines if line)


def _middle(text: str) -> int:
    half = len(text) // 2
    for border in ("\n", " "):
        at = text.rfind(border, half // 2, half + half // 2)
        if at > 0:
            return at + 1
    return max(1, half)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
