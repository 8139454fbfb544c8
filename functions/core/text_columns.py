"""Pieces of lines on a page, and whether what stands side by side are columns of running text or a table."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from functions.core.pdf_geometry import Box, join_boxes

# Lengths in ems; an em is the height of larger pieces (those with ascenders and descenders), nearly the font's size.
WIDE_GAP = 0.7
MIN_COLUMN = 7.0
MIN_ROWS = 4
FULL, MIN_FULL = 0.75, 0.6
_WIDEST_GAP, _WORD_GAP = 1.6, 0.15
_MOSTLY_FULL = 0.8
_MIN_CHARACTERS, _MAX_DIGITS, _MIN_LOWER = 15, 0.25, 0.3
_MANY_LINES = 10


class Piece(NamedTuple):
    """A part of a line; `text` is empty while only its place is known."""

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
        """Whether both stand side by side, with a gap as between columns."""
        left, right = self.gap_to(other)
        return right - left > WIDE_GAP * em and abs(self.middle - other.middle) < 0.8 * em

    def gap_to(self, other: Piece) -> tuple[float, float]:
        """Where the gap between both begins and ends."""
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


def goes_on(box: Box, other: Box, gap: float) -> bool:
    """Whether `other` is of the same line and less than `gap` away."""
    _, y0, x1, y1 = box
    left, top, _, bottom = other
    return -gap < left - x1 <= gap and y0 - gap < (top + bottom) / 2 < y1 + gap


def join_pieces(pieces: Iterable[Piece]) -> Piece:
    return functools.reduce(Piece.join, pieces)


def measure_em(places: Sequence[Box | Piece]) -> float:
    heights = sorted(place[3] - place[1] for place in places)
    return heights[len(heights) * 3 // 4] if heights else 0.0


def wide_gap(words: Sequence[float], lines: int, em: float) -> float:
    """From which width on a gap may be one between columns; `words` are the gaps within so many lines.

    Words, too, can be far apart. Where there are few gaps a line, they are not between words.
    """
    if len(words) < 3 * lines:
        return WIDE_GAP * em
    return max(WIDE_GAP * em, min(_WIDEST_GAP * em, 1.8 * statistics.median(words)))


def join_runs(runs: Sequence[Box]) -> list[Piece]:
    """Pieces of lines out of runs of text: runs side by side without a wide gap are one piece."""
    em = measure_em(runs)
    beside = [run[0] - last[2] for last, run in itertools.pairwise(runs) if run[1] < last[3] and last[1] < run[3]]
    gap = wide_gap([gap for gap in beside if gap > _WORD_GAP * em], len(runs) - len(beside), em)
    joined: list[Box] = []
    for run in runs:  # many pages have a run a character
        if joined and goes_on(joined[-1], run, gap) and run[1] < (joined[-1][1] + joined[-1][3]) / 2 < run[3]:
            joined[-1] = join_boxes(joined[-1], run)
        else:
            joined.append(run)
    return [*itertools.starmap(Piece, joined)]


def measure_width(lines: Sequence[Piece]) -> float:
    return max(line.right for line in lines) - min(line.left for line in lines)


def measure_fill(lines: Sequence[Piece]) -> float:
    """The share of lines that fill their column."""
    width = measure_width(lines)
    return sum(line.width >= FULL * width for line in lines) / len(lines)


def is_prose(lines: Sequence[Piece], em: float) -> bool:
    """Whether the lines of one column are running text; cells of a table are shorter, and few fill their column."""
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
    """Whether these lines, column by column, are of one running text, perhaps with a table within a column."""
    prose = [is_prose(lines, em) for lines in columns]
    if not all(prose):
        widths, fills = [measure_width(lines) for lines in columns], [measure_fill(lines) for lines in columns]
        alike = max(widths) <= 1.1 * min(widths) and min(map(len, columns)) >= _MANY_LINES
        if not any(prose) or not alike or max(fills) < _MOSTLY_FULL or min(fills) < MIN_FULL / 3:
            return False
    return not _are_rows(columns)


def _are_rows(columns: Sequence[Sequence[Piece]]) -> bool:
    """Whether white space runs through all columns every few lines, as between the rows of a table."""
    shared, *others = [[*_breaks(lines)] for lines in columns]
    for breaks in others:
        shared = [(top, bottom) for top, bottom in shared if any(top < end and start < bottom for start, end in breaks)]
    return len(shared) >= 2 and len(columns[0]) < MIN_ROWS * (len(shared) + 1)


def _breaks(lines: Sequence[Piece]) -> Iterator[tuple[float, float]]:
    """Top and bottom of each gap between lines that is larger than most."""
    pitches = [line.middle - above.middle for above, line in itertools.pairwise(lines)]
    usual = statistics.median(pitches) if pitches else 0.0
    for pitch, (above, line) in zip(pitches, itertools.pairwise(lines), strict=True):
        if pitch > 1.3 * usual:
            yield above.bottom, line.top
