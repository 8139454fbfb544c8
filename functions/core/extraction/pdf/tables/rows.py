"""Rows of a table out of lines of text that are already divided into columns."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from functions.core.extraction.pdf.tables.glyphs import Piece
from functions.core.extraction.pdf.tables.ruling_lines import Rule

LINE_PITCH = 1.32
"""The largest usual distance of lines that follow each other, by the size of their font."""

_NUMBER = re.compile(
    r"[(\[+\-−–±~≈<>≤≥#]*\s*(?:[$€£¥]|[A-Z]{1,3}\$)?\s*[-−]?\d[\d\s.,'’:/×x-]*\s*[%‰€$£)\]*†‡°a-z]{0,4}"
)
_LONGEST_NUMBER = 40
_CAPTION = re.compile(r"(?:table|tableau|figure|fig\.|tab\.)\s*(?:n[°o]\s*)?[\dIVX]+", re.I)
_DISTINCT = 1.12


@dataclass(slots=True)
class Row:
    """The pieces of one row by column; `spans` are cells over several columns: the first, and the one after."""

    cells: list[list[Piece]]
    spans: list[tuple[int, int]] = field(default_factory=list)

    @property
    def filled(self) -> list[int]:
        """The columns with something in them."""
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
"""Gives the texts of a row's cells."""


def is_number(cell: str) -> bool:
    """Whether a cell says how much, when or which, rather than what."""
    return len(cell) <= _LONGEST_NUMBER and bool(_NUMBER.fullmatch(cell))


def is_running_text(cells: Sequence[str]) -> bool:
    """Whether pieces of a line are of a text or a caption: cells seldom begin small, or end a sentence."""
    if len(cells) == 1:
        return bool(_CAPTION.match(cells[0])) or (cells[0].endswith(".") and len(cells[0].split()) > 4)
    small = sum(cell[:1].islower() for cell in cells)
    return small > 0.5 * len(cells) and sum(len(cell.split()) for cell in cells) > 3


def merge_rows(rows: Sequence[Row]) -> Row:
    merged = rows[0]
    for row in rows[1:]:
        merged = merged.merge(row)
    return merged


def join_rows(lines: Sequence[Row], size: float, rules: Sequence[Rule], read: ReadRow) -> list[Row]:
    """Rows out of lines: what stands between two rules, what is set tighter than rows are, and what goes on.

    `size` is that of the font, `rules` are the level ones from the top down.
    """
    if len(lines) < 2:
        return list(lines)
    between = _rows_between(lines, rules)
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


def _rows_between(lines: Sequence[Row], rules: Sequence[Rule]) -> list[Row] | None:
    """The rows where nearly each has a rule above or below it; None where rules are drawn for something else."""

    def place(line: Row) -> int:
        middle = statistics.mean((piece.top + piece.bottom) / 2 for piece in line.pieces)
        return sum(rule.at < middle for rule in rules)

    groups = [list(group) for _, group in itertools.groupby(lines, key=place)]
    single = sum(len(group) == 1 for group in groups)
    if len(groups) < 3 or len(groups) < 0.4 * len(lines) or (single < 0.4 * len(groups) and len(groups) < 4):
        return None
    return [merge_rows(group) for group in groups]


def _join_names(lines: Sequence[Row], size: float, read: ReadRow) -> list[Row]:
    """The first lines as one, where they are words set tighter than the rows below, which have numbers."""
    pitches = [below.first_base - above.last_base for above, below in itertools.pairwise(lines)]
    tight = min(0.88 * statistics.median(pitches), LINE_PITCH * size)
    count = next((n for n, pitch in enumerate(pitches) if pitch > tight), 0)
    if not 0 < count < min(4, len(lines) - 1):
        return list(lines)
    *names, first = [any(map(is_number, read(line))) for line in lines[: count + 2]]
    if any(names) or not first:
        return list(lines)
    return [merge_rows(lines[: count + 1]), *lines[count + 1 :]]


def _tight_pitch(lines: Sequence[Row], size: float, read: ReadRow) -> float:
    """The largest distance of lines of one row, where rows are set farther apart; else 0."""
    pairs = list(itertools.pairwise(lines))
    pitches = sorted(below.first_base - above.last_base for above, below in pairs)
    steps = [(below / max(above, 1.0), above) for above, below in itertools.pairwise(pitches)]
    step, tight = max(steps, default=(1.0, 0.0))
    if step < _DISTINCT or tight > LINE_PITCH * size:
        return 0.0
    followers = [(above, line) for above, line in pairs if line.first_base - above.last_base <= tight]
    full = sum(len(line.filled) >= max(2, 0.8 * len(line.cells)) for _, line in followers)
    twice = any(_both_numbers(above, line, read) for above, line in followers)
    return 0.0 if twice or full > 0.3 * len(followers) else tight


def _both_numbers(above: Row, line: Row, read: ReadRow) -> bool:
    """Whether there is a number below a number: those never run on."""
    return any(is_number(one) and is_number(two) for one, two in zip(read(above), read(line), strict=True))


def _continues(above: Row, line: Row, read: ReadRow) -> bool:
    """Whether a line set like all others goes on with cells of the row above."""
    if not line.filled or line.spans:
        return False
    cells, before = read(line), read(above)
    if 0 in line.filled:  # a new row, unless all that stands above is the beginning of its first cell
        return above.filled == [0] and cells[0][:1].islower() and before[0][-1:] not in ".:"
    few = len(line.filled) <= max(1, len(line.cells) // 2) and len(line.filled) < len(above.filled)
    words = all(before[n] and not is_number(before[n]) and not is_number(cells[n]) for n in line.filled)
    return few and words
