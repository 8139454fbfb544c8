"""Builds a passage from a stretch of page text: what is stored, and the text that is indexed and embedded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from functions.core import models
from functions.core.ingestion.chunking import headings
from functions.core.text import abbreviations, languages
from functions.core.text.token_spans import CountTokens
from functions.core.text.visible import has_word

_PREFIX_SHARE = 4

_LINE_END_HYPHEN = re.compile("(?<=\\w)(?:\u00ad\\s*|[-\u2010]\\n\\s*)(?=\\w)")
_WORD_BEFORE = re.compile(r"\w+$")
_WORD_AFTER = re.compile(r"\w+")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\u00ad": "", "\u200b": ""}
)


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """Sizes in tokens. The text of a chunk is near the target; its `search_text` never exceeds the maximum."""

    target_tokens: int = 180
    overlap_tokens: int = 30
    max_tokens: int = 240


@dataclass(frozen=True, slots=True)
class PassageBuilder:
    """Builds the chunks of one page; all have index 0 until `chunk_page` numbers them."""

    page: models.Page
    settings: ChunkSettings
    count_tokens: CountTokens
    title: str | None
    lang: models.Lang
    abbreviations: Mapping[str, str] = field(default_factory=dict)

    def text_limit(self, section: str | None) -> int:
        """The tokens left for the text below the whole prefix."""
        prefix = self.prefix(section, "")
        used = self.count_tokens(prefix) if prefix else 0
        return max(1, self.settings.max_tokens - used - 2)

    def fits_in_prefix(self, text: str) -> bool:
        """Whether `text` is short enough to be repeated above each of several passages."""
        return self.count_tokens(text) <= self.settings.max_tokens // _PREFIX_SHARE

    def build(self, start: int, end: int, section: str | None) -> list[models.Chunk]:
        """The chunk of page text [start, end), or several if its `search_text` would be too long.

        A stretch without any letter or digit has none.
        """
        start, end = trim(self.page.text, start, end)
        text = self.page.text[start:end]
        if not has_word(text):
            return []
        body = self.clean(text)
        prefix = self.fit_prefix(self.prefix(section, text), body)
        tokens = self.count_tokens(prefix + body)
        if tokens > self.settings.max_tokens and end - start > 1:
            middle = find_middle(text) + start
            return self.build(start, middle, section) + self.build(middle, end, section)
        return [self.assemble(start, end, section, prefix + body, tokens)]

    def assemble(
        self, start: int, end: int, section: str | None, search_text: str, tokens: int, markdown: str | None = None
    ) -> models.Chunk:
        text = self.page.text[start:end]
        search_text, tokens = self._add_other_forms(search_text, tokens)
        return models.Chunk(
            index=0,
            page_start=self.page.number,
            page_end=self.page.number,
            start_offset=start,
            end_offset=end,
            text=text,
            search_text=search_text,
            section_title=section,
            lang=languages.detect_language(text, self.lang),
            token_count=tokens,
            markdown=markdown,
        )

    def _add_other_forms(self, search_text: str, tokens: int) -> tuple[str, int]:
        """Adds the other form of the document's abbreviations, so that a passage is found by either; and the tokens."""
        for form in abbreviations.list_other_forms(search_text, self.abbreviations):
            longer = f"{search_text}\n{form}"
            count = self.count_tokens(longer)
            if count > self.settings.max_tokens:
                break
            search_text, tokens = longer, count
        return search_text, tokens

    def clean(self, text: str) -> str:
        """`text` as it is indexed: hyphenation undone, ligatures spelled out."""
        return undo_hyphenation(text, self.page.text).translate(_LIGATURES)

    def prefix(self, section: str | None, text: str) -> str:
        """Title and section, one line each, at most a quarter of a passage; without those that `text` begins with."""
        opening = " ".join(text[: 2 * headings.MAX_HEADING_CHARACTERS].split())
        lines = [" ".join(line.split()) for line in (self.title, section) if line]
        prefix = "".join(f"{line}\n" for line in lines if line and not (opening and line in opening))
        while prefix and self.count_tokens(prefix) > self.settings.max_tokens // _PREFIX_SHARE:
            prefix = _shorten(prefix)
        return prefix

    def fit_prefix(self, prefix: str, body: str) -> str:
        """As much of the prefix as fits above `body`."""
        while prefix and self.count_tokens(prefix + body) > self.settings.max_tokens:
            prefix = _shorten(prefix)
        return prefix


def undo_hyphenation(text: str, context: str = "") -> str:
    """Joins words cut at line ends; a hyphen stays before capitals and digits, and if `context` has the compound."""

    def join(match: re.Match[str]) -> str:
        before, after = _WORD_BEFORE.search(text, 0, match.start()), _WORD_AFTER.match(text, match.end())
        left, right = before.group() if before else "", after.group() if after else ""
        if not right[:1].islower() or (f"{left}-{right}" in context and left + right not in context):
            return "-"
        return ""

    return _LINE_END_HYPHEN.sub(join, text)


def trim(text: str, start: int, end: int) -> models.Offsets:
    """[start, end) without the white space at both ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def find_middle(text: str) -> int:
    """The offset of a line or word border near the middle of a text of at least two characters."""
    half = len(text) // 2
    for border in ("\n", " "):
        at = text.rfind(border, half // 2, half + half // 2)
        if at > 0:
            return at + 1
    return max(1, half)


def _shorten(prefix: str) -> str:
    """Cuts about a third off the longest line, at a word border if there is one."""
    lines = prefix.rstrip("\n").split("\n")
    longest = max(range(len(lines)), key=lambda index: len(lines[index]))
    cut = lines[longest][: len(lines[longest]) * 2 // 3]
    lines[longest] = cut.rpartition(" ")[0] or (cut if len(cut) > 8 else "")
    return "".join(f"{line}\n" for line in lines if line)
