"""Joins runs of text into pieces of lines, and tells columns of running text from columns of a table.

An em is the height of larger pieces, those with ascenders and descenders, which is nearly the size of the font.
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from functions.core.extraction.pdf.geometry import Box, join_boxes

WIDE_GAP = 0.7
"""Em: a gap in a line from this width on may separate two columns."""
MIN_COLUMN = 7.0
"""Em: a narrower column is a margin note or a column of a table."""
MIN_ROWS = 4
"""The fewest lines that prove a column or a gap between columns."""
FULL = 0.75
"""The share of its column's width from which on a line is full."""
MIN_FULL = 0.6
"""The least share of full lines in running text."""
MIN_FULL_OF_OTHER = MIN_FULL / 3
"""The share of full lines of a column that has a table in it, beside one of running text."""
_WORD_GAP = 0.15
"""Em: a narrower gap is between letters, not words."""
_WORD_GAPS_PER_LINE = 3
"""With fewer gaps a line on average, the gaps are not those between words."""
_WIDER_THAN_WORDS = 1.8
"""Medians of the gaps between words: a gap between columns is wider."""
_WIDEST_GAP = 1.6
"""Em: a gap from this width on may separate columns, however far apart the words are."""
_MOSTLY_FULL = 0.8
"""The share of full lines from which on they are running text even if all begin with capitals."""
_MIN_CHARACTERS = 15
"""The least mean number of characters in a line of running text."""
_MAX_DIGITS = 0.25
"""The largest share of digits in the characters of running text."""
_MIN_LOWER = 0.3
"""The least share of lines of running text that do not begin with a capital, unless they are mostly full."""
_MANY_LINES = 10
"""If the shortest of equally wide columns has so many lines, one of them may be less full, as with a table in it."""
_ALIKE = 1.1
"""Columns are equally wide if the widest is at most this many times as wide as the narrowest."""
_SAME_LINE = 0.8
"""Em: pieces are side by side if their middles are less than this apart in height."""
_BREAK = 1.3
"""A gap between lines is a break if their middles are more than this many median pitches apart."""
_MIN_SHARED_BREAKS = 2
"""The fewest breaks through all columns that can separate rows of a table."""


class Piece(NamedTuple):
    """A part of a horizontal line, in points, y down; `text` is empty while only its place is known."""

    left: float
    top: float
    right: float
    bottom: float
    text: str = ""

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def width(self) -> float:
        return self.right - self.left

    def is_beside(self, other: Piece, em: float) -> bool:
        """Whether both are side by side, with a gap as wide as between columns."""
        left, right = self.gap_to(other)
        return right - left > WIDE_GAP * em and abs(self.middle - other.middle) < _SAME_LINE * em

    def gap_to(self, other: Piece) -> tuple[float, float]:
        """The left and right end of the gap between both."""
        return min(self.right, other.right), max(self.left, other.left)

    def overlaps(self, other: Piece) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def join(self, other: Piece) -> Piece:
        return Piece(
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
            " ".join(filter(None, (self.text, other.text))),
        )


def continues_line(box: Box, other: Box, gap: float) -> bool:
    """Whether `other` is in the same line as `box` and at most `gap` points to the right of it."""
    _, y0, x1, y1 = box
    left, top, _, bottom = other
    return -gap < left - x1 <= gap and y0 - gap < (top + bottom) / 2 < y1 + gap


def join_pieces(pieces: Iterable[Piece]) -> Piece:
    return functools.reduce(Piece.join, pieces)


def measure_em(places: Sequence[Box | Piece]) -> float:
    """The upper quartile of heights, in points."""
    heights = sorted(place[3] - place[1] for place in places)
    return heights[len(heights) * 3 // 4] if heights else 0.0


def measure_wide_gap(gaps: Sequence[float], lines: int, em: float) -> float:
    """The least width, in points, of a gap between columns, given the gaps within so many lines.

    It is larger where words are set far apart; few gaps a line are not those between words.
    """
    if len(gaps) < _WORD_GAPS_PER_LINE * lines:
        return WIDE_GAP * em
    return max(WIDE_GAP * em, min(_WIDEST_GAP * em, _WIDER_THAN_WORDS * statistics.median(gaps)))


def join_runs(runs: Sequence[Box]) -> list[Piece]:
    """Joins runs of text that are side by side without a wide gap into pieces of lines."""
    em = measure_em(runs)
    beside = [run[0] - last[2] for last, run in itertools.pairwise(runs) if run[1] < last[3] and last[1] < run[3]]
    gap = measure_wide_gap([gap for gap in beside if gap > _WORD_GAP * em], len(runs) - len(beside), em)
    joined: list[Box] = []
    for run in runs:  # on many pages every character is a run of its own
        if joined and continues_line(joined[-1], run, gap) and run[1] < (joined[-1][1] + joined[-1][3]) / 2 < run[3]:
            joined[-1] = join_boxes(joined[-1], run)
        else:
            joined.append(run)
    return [*itertools.starmap(Piece, joined)]


def measure_width(lines: Sequence[Piece]) -> float:
    return max(line.right for line in lines) - min(line.left for line in lines)


def measure_fill(lines: Sequence[Piece]) -> float:
    """The share of lines that are full."""
    width = measure_width(lines)
    return sum(line.width >= FULL * width for line in lines) / len(lines)


def is_prose(lines: Sequence[Piece], em: float) -> bool:
    """Whether the lines of one column are running text; cells of a table are shorter, and few are full."""
    if len(lines) < MIN_ROWS or measure_width(lines) < MIN_COLUMN * em:
        return False
    full, text = measure_fill(lines), "".join(line.text for line in lines)
    if full < MIN_FULL or not text:
        return full >= MIN_FULL
    lower = sum(line.text[:1].isalpha() and not line.text[:1].isupper() for line in lines) / len(lines)
    return (
        len(text) >= _MIN_CHARACTERS * len(lines)
        and sum(character.isdigit() for character in text) <= _MAX_DIGITS * len(text)
        and (full >= _MOSTLY_FULL or lower >= _MIN_LOWER)
    )


def are_columns(columns: Sequence[Sequence[Piece]], em: float) -> bool:
    """Whether columns, each given as its lines, are one running text, perhaps with a table within a column."""
    prose = [is_prose(lines, em) for lines in columns]
    if not all(prose):
        widths, fills = [measure_width(lines) for lines in columns], [measure_fill(lines) for lines in columns]
        alike = max(widths) <= _ALIKE * min(widths) and min(map(len, columns)) >= _MANY_LINES
        if not any(prose) or not alike or max(fills) < _MOSTLY_FULL or min(fills) < MIN_FULL_OF_OTHER:
            return False
    return not _are_rows(columns)


def _are_rows(columns: Sequence[Sequence[Piece]]) -> bool:
    """Whether every few lines the same white space runs through all columns, as between the rows of a table."""
    shared, *others = [[*_find_breaks(lines)] for lines in columns]
    for breaks in others:
        shared = [(top, bottom) for top, bottom in shared if any(top < end and start < bottom for start, end in breaks)]
    return len(shared) >= _MIN_SHARED_BREAKS and len(columns[0]) < MIN_ROWS * (len(shared) + 1)


def _find_breaks(lines: Sequence[Piece]) -> Iterator[tuple[float, float]]:
    """The top and bottom of each gap between lines that is larger than most."""
    pitches = [line.middle - above.middle for above, line in itertools.pairwise(lines)]
    usual = statistics.median(pitches) if pitches else 0.0
    for pitch, (above, line) in zip(pitches, itertools.pairwise(lines), strict=True):
        if pitch > _BREAK * usual:
            yield above.bottom, line.top
