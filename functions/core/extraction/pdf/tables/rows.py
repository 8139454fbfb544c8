"""Joins lines of text, already divided into columns, into the rows of a table.

Pitch is the distance between the base lines of successive lines; lengths in em are multiples of the font size.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from functions.core.extraction.pdf.tables.glyphs import Piece
from functions.core.extraction.pdf.tables.ruling_lines import Rule

LINE_PITCH = 1.32
"""Em: the largest usual pitch within a paragraph; lines set farther apart are not of one cell.

Cell F1 of unruled tables: 0.961 at 1.15, 0.994 at 1.25, 0.996 from 1.32 to 1.6.
"""

_NUMBER = re.compile(
    r"[(\[+\-−–±~≈<>≤≥#]*\s*(?:[$€£¥]|[A-Z]{1,3}\$)?\s*[-−]?\d[\d\s.,'’:/×x-]*\s*[%‰€$£)\]*†‡°a-z]{0,4}"
)
_YEAR = re.compile(r"(?:19|20)\d\d\W*")
_LONGEST_NUMBER = 40
"""Characters: a longer cell is no number; the check also bounds the time that the pattern takes."""
_CAPTION = re.compile(r"(?:table|tableau|figure|fig\.|tab\.)\s*(?:n[°o]\s*)?[\dIVX]+", re.I)
_LONGEST_REMARK, _LONGEST_HEADING = 4, 3
"""Words: a lone piece with a full stop at its end is a sentence, and several pieces are prose, only with more."""
_MAX_SMALL = 0.5
"""The share of pieces that begin with a small letter: with more, a line is prose."""
_MIN_RULED_ROWS, _MIN_RULED_SHARE = 3, 0.4
"""Rules separate rows if they divide the lines into so many groups, and into so many for each line."""
_MIN_SINGLE_SHARE, _SURELY_RULED = 0.4, 4
"""This share of the groups must be single lines, unless there are so many groups."""
_NAMES_PITCH = 0.88
"""Medians of pitch: the largest pitch within column names of several lines."""
_MOST_NAME_LINES = 4
"""The most lines of such names, and how many lines below them are searched for numbers."""
_DISTINCT = 1.12
"""Pitches fall into two kinds, within rows and between them, where one is this many times the next smaller."""
_LEAST_PITCH = 1.0
"""Points: smaller pitches count as this when compared, since lines at nearly one height differ by any factor."""
_MIN_FULL = 0.8
"""The share of columns that a line must fill to look like a row of its own; at least two columns."""
_MAX_FULL = 0.3
"""If more than this share of the lines that would continue a row look like rows, the tight lines are rows."""


@dataclass(slots=True)
class Row:
    """The pieces of one row by column; `spans` are cells over several columns [first, after the last)."""

    cells: list[list[Piece]]
    spans: list[tuple[int, int]] = field(default_factory=list)

    @property
    def filled(self) -> list[int]:
        """The numbers of the columns that are not empty."""
        return [column for column, cell in enumerate(self.cells) if cell]

    @property
    def pieces(self) -> Iterator[Piece]:
        return itertools.chain.from_iterable(self.cells)

    @property
    def first_base(self) -> float:
        return min(piece.base for piece in self.pieces)

    @property
    def last_base(self) -> float:
        return max(piece.base for piece in self.pieces)

    def merge(self, below: Row) -> Row:
        return Row([one + two for one, two in zip(self.cells, below.cells, strict=True)], self.spans + below.spans)


ReadRow = Callable[[Row], list[str]]
"""Returns the texts of a row's cells."""


def is_number(cell: str) -> bool:
    """Whether a cell is an amount, a date or another number, with its sign, unit or mark."""
    return len(cell) <= _LONGEST_NUMBER and bool(_NUMBER.fullmatch(cell))


def is_year(cell: str) -> bool:
    return bool(_YEAR.fullmatch(cell))


def is_running_text(cells: Sequence[str]) -> bool:
    """Whether the pieces of a line are prose or a caption: cells seldom begin with a small letter or end a sentence."""
    if len(cells) == 1:
        return bool(_CAPTION.match(cells[0])) or (cells[0].endswith(".") and len(cells[0].split()) > _LONGEST_REMARK)
    small = sum(cell[:1].islower() for cell in cells)
    return small > _MAX_SMALL * len(cells) and sum(len(cell.split()) for cell in cells) > _LONGEST_HEADING


def merge_rows(rows: Sequence[Row]) -> Row:
    merged = rows[0]
    for row in rows[1:]:
        merged = merged.merge(row)
    return merged


def join_rows(lines: Sequence[Row], size: float, rules: Sequence[Rule], read: ReadRow) -> list[Row]:
    """Joins lines that stand between the same two rules, are set tighter than rows are, or continue the row above.

    `size` is that of the font in points, `rules` are the horizontal rules from the top down.
    """
    if len(lines) < 2:
        return list(lines)
    between = _split_at_rules(lines, rules)
    if between is not None:
        return between
    lines = _join_names(lines, size, read)
    tight = _tight_pitch(lines, size, read)
    joined = [lines[0]]
    for above, line in itertools.pairwise(lines):
        pitch = line.first_base - above.last_base
        if pitch <= tight or (pitch <= LINE_PITCH * size and _continues(joined[-1], line, read)):
            joined[-1] = joined[-1].merge(line)
        else:
            joined.append(line)
    return joined


def _split_at_rules(lines: Sequence[Row], rules: Sequence[Rule]) -> list[Row] | None:
    """The rows that rules separate; None where there are too few rules for that."""

    def count_rules_above(line: Row) -> int:
        middle = statistics.mean((piece.top + piece.bottom) / 2 for piece in line.pieces)
        return sum(rule.at < middle for rule in rules)

    groups = [list(group) for _, group in itertools.groupby(lines, key=count_rules_above)]
    single = sum(len(group) == 1 for group in groups)
    if len(groups) < max(_MIN_RULED_ROWS, _MIN_RULED_SHARE * len(lines)):
        return None
    if single < _MIN_SINGLE_SHARE * len(groups) and len(groups) < _SURELY_RULED:
        return None
    return [merge_rows(group) for group in groups]


def _join_names(lines: Sequence[Row], size: float, read: ReadRow) -> list[Row]:
    """Joins the first lines if they are column names: words or years set tighter than the rows below, of numbers."""
    pitches = [below.first_base - above.last_base for above, below in itertools.pairwise(lines)]
    tight = min(_NAMES_PITCH * statistics.median(pitches), LINE_PITCH * size)
    count = next((n for n, pitch in enumerate(pitches) if pitch > tight), 0)
    if not 0 < count < min(_MOST_NAME_LINES, len(lines) - 1):
        return list(lines)
    names, below = lines[: count + 1], lines[count + 1 : count + 1 + _MOST_NAME_LINES]
    if any(_has_figures(read(line)) for line in names) or not any(_has_figures(read(line)) for line in below):
        return list(lines)
    return [merge_rows(lines[: count + 1]), *lines[count + 1 :]]


def _has_figures(cells: Sequence[str]) -> bool:
    """Whether a line has numbers other than years, which also name columns."""
    return any(is_number(cell) and not is_year(cell) for cell in cells)


def _tight_pitch(lines: Sequence[Row], size: float, read: ReadRow) -> float:
    """The largest pitch within a row, if rows are set farther apart than that; else 0."""
    pairs = list(itertools.pairwise(lines))
    pitches = sorted(below.first_base - above.last_base for above, below in pairs)
    steps = [(below / max(above, _LEAST_PITCH), above) for above, below in itertools.pairwise(pitches)]
    step, tight = max(steps, default=(1.0, 0.0))
    if step < _DISTINCT or tight > LINE_PITCH * size:
        return 0.0
    followers = [(above, line) for above, line in pairs if line.first_base - above.last_base <= tight]
    full = sum(len(line.filled) >= max(2, _MIN_FULL * len(line.cells)) for _, line in followers)
    stacked = any(_has_number_below_number(above, line, read) for above, line in followers)
    return 0.0 if stacked or full > _MAX_FULL * len(followers) else tight


def _has_number_below_number(above: Row, line: Row, read: ReadRow) -> bool:
    """Whether a column has a number in both lines, which are then different rows: numbers never continue."""
    return any(is_number(one) and is_number(two) for one, two in zip(read(above), read(line), strict=True))


def _continues(above: Row, line: Row, read: ReadRow) -> bool:
    """Whether a line at the usual pitch continues cells of the row above."""
    if not line.filled or line.spans:
        return False
    cells, before = read(line), read(above)
    if 0 in line.filled:  # a new row, unless the row above is only the beginning of a first cell
        return above.filled == [0] and cells[0][:1].islower() and before[0][-1:] not in ".:"
    few = len(line.filled) <= max(1, len(line.cells) // 2) and len(line.filled) < len(above.filled)
    words = all(before[n] and not is_number(before[n]) and not is_number(cells[n]) for n in line.filled)
    return few and words
