"""Splits passages into the units that an answer without a model quotes: sentences, items and rows of tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from functions.core import models
from functions.core.answering.extracts import wording
from functions.core.answering.extracts.rows import Row, find_rows
from functions.core.citations import quotes
from functions.core.text import words
from functions.core.text.sentences import Span, split_sentences

_MIN_LETTERS = 12
_RULE = re.compile(r"_{4,}[^\S\n]*\n")
_CAPTION_CHARS = 300  # before a table, in which its caption is looked for


@dataclass(frozen=True, slots=True)
class Unit:
    """The sentence or row hit.text[start:end].

    `keys` are its content words, `context` those of what a reader knows besides: the headings above it, and for a row
    its header and caption. `index` counts the units of its passage, and `rank` the passages.
    """

    hit: models.SearchHit
    rank: int
    index: int
    start: int
    end: int
    keys: frozenset[str]
    context: frozenset[str]
    row: Row | None = None
    caption: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        return self.hit.text[self.start : self.end]

    @property
    def place(self) -> tuple[str, int, int, int]:
        """Source, page and offsets in the page: the same for a unit in two overlapping passages."""
        offset = self.hit.start_offset
        return self.hit.source_id, self.hit.page_start, offset + self.start, offset + self.end

    @property
    def readable(self) -> str:
        """What the unit says to somebody who sees nothing else; a row names its columns."""
        if self.row is None:
            return " ".join(self.text.split())
        named = zip(self.row.column_names, self.row.cells, strict=True)
        cells = "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)
        return " ".join(f"{self.caption} {self.row.group} {cells}".split())


def collect_units(question_words: frozenset[str], passages: Sequence[Sequence[Unit]]) -> list[Unit]:
    """The units of all passages, best first; one that overlapping passages share belongs to the better passage.

    A short sentence ("Rent: 900 EUR", "No.") counts only if it has words of the question and others, or follows a
    question.
    """
    units: dict[tuple[str, int, int, int], Unit] = {}
    for passage in passages:
        follows_question = False
        for unit in passage:
            is_long = sum(map(str.isalpha, unit.text)) >= _MIN_LETTERS
            if unit.row or is_long or follows_question or (unit.keys & question_words and unit.keys - question_words):
                units.setdefault(unit.place, unit)
            follows_question = wording.is_question(unit.text)
    return list(units.values())


def split_passage(hit: models.SearchHit, rank: int) -> list[Unit]:
    """All units of a passage, in order."""
    units = []
    headings = words.keys(" ".join(filter(None, (hit.title, hit.section_title))))
    rows = find_rows(hit)
    table = (min(row.start for row in rows), max(row.end for row in rows)) if rows else (0, 0)
    caption = " ".join(hit.text[max(0, table[0] - _CAPTION_CHARS) : table[0]].split()) if rows else ""
    spans: list[tuple[Span, Row | None]] = [((row.start, row.end), row) for row in rows]
    for start, end in split_sentences(hit.text):
        if not rows or end <= table[0] or start >= table[1]:
            spans.append(((_skip_headings(hit, start, end), end), None))
    for index, ((start, end), row) in enumerate(sorted(spans, key=lambda one: one[0])):
        keys = words.keys(hit.text[start:end])
        if row is None:
            units.append(Unit(hit, rank, index, start, end, keys, headings))
        else:
            above = words.keys(f"{caption} {' '.join(row.column_names)}")
            known = keys | words.keys(row.group)
            units.append(Unit(hit, rank, index, start, end, known, headings | above, row, caption))
    return units


def _skip_headings(hit: models.SearchHit, start: int, end: int) -> int:
    """Where a sentence begins behind what a page has above it: its number, a rule, or the title of a section."""
    for rule in _RULE.finditer(hit.text, start, end):
        start = rule.end()
    titles = [quotes.fold(title).text for title in (hit.title, hit.section_title) if title]
    while (line_end := hit.text.find("\n", start, end)) >= 0:
        line = quotes.fold(hit.text[start:line_end]).text
        has_letters = any(map(str.isalpha, line))
        if has_letters and not any(title.endswith(line) for title in titles):
            break
        start = line_end + 1
    return start
