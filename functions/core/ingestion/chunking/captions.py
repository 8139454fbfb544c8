"""Finds the text above a table that belongs to it: headings, and its caption, title or unit."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from functions.core.ingestion.chunking import headings
from functions.core.ingestion.chunking.page_layout import PageLayout, TableBlock
from functions.core.ingestion.chunking.passages import PassageBuilder

_MAX_CAPTION_LINES = 3
_MAX_DESCRIPTION_LINES = 6
"""The most lines of a text between a numbered caption and its table."""
_SHORT_LINE = 0.75
"""A line ends before its room does if it and the next word are shorter than this share of the page's longest line."""
_MIN_LETTERS = 0.5
"""The share of letters in a title or a line of prose; formulas have fewer."""
_MAX_TITLE_CHARACTERS = 120

_CAPTION = re.compile(
    r"(?:table|tableau|tab\.|exhibit|schedule|annexe?|appendix|figure|fig\.)\s*"
    r"(?:n[°o]\.?\s*)?(?:[A-Z]{0,3}\d+(?:[.\-–]\d+)*|[IVXLC]+|[A-Z])\b",
    re.I,
)
# "Table 3.3: Substance abuse" begins a caption anywhere; "Table 3 shows that" may be the middle of a sentence.
_NUMBERED_CAPTION = re.compile(rf"{_CAPTION.pattern}\s*[.:|–—-]\s*\W*[A-ZÀ-Þ\d]", re.I)
_TITLE = re.compile(r"""[("'“«]?[^\W_a-zà-öø-ÿ](?:.*[^\s.,;!?])?""")
_UNIT = re.compile(
    r"[(\[]?(?:(?:amounts?|figures?|dollars?|montants?|chiffres?|all)\b.{0,40})?\b(?:in|en)\b.{0,30}?"
    r"(?:thousand|million|billion|trillion|per ?cent|%|euro|dollar|millier|milliard|pourcent|tonn|€|\$|EUR|USD|GBP)"
    r".{0,60}"
    r"|[(\[](?:%|€|\$|(?:€|\$|EUR|USD)\s?\w+)[)\]]"
    # "(US$ in millions)", "(millions of euros)", "($000)": in parentheses a scale alone is a unit.
    r"|[(\[][^()\[\]]{0,30}(?:\b(?:thousand|million|billion|millier|milliard)s?\b|\b000)[^()\[\]]{0,60}[)\]]",
    re.I,
)
_LINE = re.compile(r"\S[^\n]*")
_SPACE_BEFORE = re.compile(r"\s*$")
_ENDS = re.compile(r"""[.!?:;…][”"'»)\]]*$""")


@dataclass(frozen=True, slots=True)
class Lead:
    """The text right above a table that belongs to it, page text [start, table): headings, and its caption or title."""

    start: int
    caption: str = ""


def find_lead(layout: PageLayout, floor: int, block: TableBlock, builder: PassageBuilder) -> Lead:
    """The caption or title right above a table, and the headings above both if nothing else is between them."""
    start = next((left for left, right in layout.stretches(floor, block.start) if right == block.start), block.start)
    lines = list(_LINE.finditer(layout.text, start, block.start))
    caption = _caption_lines(lines)
    top = caption[0].start() if caption else block.start
    names = " ".join(line.group().strip() for line in caption) or block.caption
    is_long = not builder.fits_in_prefix(names)
    if (is_long or not caption) and (described := _find_described(lines)) and builder.fits_in_prefix(described):
        return Lead(block.start, described)  # the text between them stays a passage of its own
    if is_long:
        return Lead(block.start)
    above = layout.prose[:top]
    above_table = [heading for heading in headings.find_headings(above) if heading.start >= start]
    ends = [start, *(heading.end for heading in above_table)]
    starts = [*(heading.start for heading in above_table), top]
    is_bare = not any(above[left:right].strip() for left, right in zip(ends, starts, strict=True))
    if above_table and is_bare and builder.fits_in_prefix(layout.text[start : block.start]):
        top = above_table[0].start
    return Lead(top, names)


def _caption_lines(lines: Sequence[re.Match[str]]) -> Sequence[re.Match[str]]:
    """The last lines if they are a caption ("Table 3 …"), or the last one if it is a title or ends in a colon.

    Captions right above it belong to it, because a figure's and a table's may follow each other.
    """
    if len(lines) > 1 and _is_unit(lines[-1].group().strip()) and (titles := _caption_lines(lines[:-1])):
        return [*titles, lines[-1]]
    for count in range(1, min(_MAX_CAPTION_LINES, len(lines)) + 1):
        first = lines[-count]
        before = lines[-count - 1].group().strip() if count < len(lines) else ""
        line = first.group().strip()
        is_title = count == 1 and (_is_title(line) or _is_unit(line))
        is_near = "\n\n" not in first.string[first.end() : lines[-1].end()]
        starts = count == len(lines) or _starts_block(first, before) or bool(_NUMBERED_CAPTION.match(line))
        if is_near and (is_title or _CAPTION.match(line)) and starts:
            above = [_NUMBERED_CAPTION.match(each.group()) for each in lines[-count - 1 : -_MAX_CAPTION_LINES - 1 : -1]]
            return lines[-count - sum(1 for _ in itertools.takewhile(bool, above)) :]
    return ()


def _find_described(lines: Sequence[re.Match[str]]) -> str:
    """The numbered caption above a text that describes the table, without a gap between them; empty without one."""
    for line in lines[: -_MAX_DESCRIPTION_LINES - 2 : -1]:
        is_near = "\n\n" not in line.string[line.end() : lines[-1].end()]
        if is_near and _NUMBERED_CAPTION.match(line.group()):
            return line.group().strip()
    return ""


def _is_title(line: str) -> bool:
    letters = sum(map(str.isalpha, line))
    is_worded = letters > 2 and letters >= _MIN_LETTERS * len("".join(line.split()))
    return len(line) <= _MAX_TITLE_CHARACTERS and bool(_TITLE.fullmatch(line)) and is_worded


def _is_unit(line: str) -> bool:
    """Whether a line says what the figures below it count: "(in millions of euros, except per share data)"."""
    is_set_off = line[0].isupper() or (line[0] in "([" and line[-1] in ")]")
    return is_set_off and len(line) <= _MAX_TITLE_CHARACTERS and line[-1] not in ".,;" and bool(_UNIT.fullmatch(line))


def _starts_block(line: re.Match[str], before: str) -> bool:
    space = _SPACE_BEFORE.search(line.string, 0, line.start())
    is_set_off = space is not None and space.group().count("\n") > 1
    return is_set_off or bool(_ENDS.search(before)) or _ends_early(before, line)


def _ends_early(before: str, line: re.Match[str]) -> bool:
    """Whether the line above is no prose that goes on: it is a title or a formula, and the next word had room in it."""
    letters = sum(map(str.isalpha, before))
    if not before or (before[0].islower() and letters >= _MIN_LETTERS * len(before)):
        return False
    longest = max(map(len, line.string.split("\n")))
    return len(before) + 1 + len(line.group().split()[0]) < _SHORT_LINE * longest
