"""Finds ruled tables: the boxes that lines enclose, and the rows and columns of text in them.

Lengths in em are multiples of the font size, places and other lengths are in points.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from functions.core.extraction.pdf.geometry import Box
from functions.core.extraction.pdf.tables.boxes import find_boxes
from functions.core.extraction.pdf.tables.columns import find_columns
from functions.core.extraction.pdf.tables.glyphs import (
    Band,
    Glyph,
    Piece,
    find_blocks,
    join_pieces,
    join_words,
    measure_font_size,
)
from functions.core.extraction.pdf.tables.rows import ReadRow, Row, is_number, join_rows
from functions.core.extraction.pdf.tables.ruling_lines import SNAP, Rule

_SAME_LINE = 0.5
"""Em: base lines are rounded to multiples of this to tell lines apart."""
_WORD_GAP = 0.5
"""Em: the least white that a border between two columns needs in each line."""
_INSIDE = 1.0
"""Points: how far a grid may reach over another that it is inside."""
_MIN_FILLED, _MIN_WIDTH = 0.6, 1.2
"""A column between two rules is divided only into columns that fill this share of its lines and are so many em wide."""
_FEWEST_WORDS = 4
"""A row of boxes with fewer words is not divided into lines."""
_MIN_CELLS = 0.5
"""The share of a row's filled boxes that a line must fill to be a row of its own; at least two boxes."""
_MIN_ROWS = 0.7
"""The share of lines that must be such rows for all lines to be rows."""
_SURELY_ROWS = 4
"""So many lines are rows even if some have no first cell; a figure over a margin of error makes fewer."""
_MIN_NUMBERS, _MIN_EARLY = 0.5, 0.6
"""Lines are rows if this share of them has numbers below numbers, or of their cells ends well before the border."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """A box of a ruled table, which covers rows and columns [first, after the last)."""

    rows: tuple[int, int]
    columns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Grid:
    """The boxes of one ruled table; columns begin at `xs` and rows at `ys`, whose last items are where the last end."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    cells: tuple[GridCell, ...]
    has_inner_grid: bool = False
    """Whether one of its boxes contains another grid."""

    @property
    def box(self) -> Box:
        return self.xs[0], self.ys[0], self.xs[-1], self.ys[-1]

    def holds(self, rule: Rule) -> bool:
        """Whether a rule lies within this grid."""
        left, top, right, bottom = self.box
        (first, last), (low, high) = (
            ((left, right), (top, bottom)) if rule.is_horizontal else ((top, bottom), (left, right))
        )
        return rule.start >= first - SNAP and rule.end <= last + SNAP and low - SNAP <= rule.at <= high + SNAP


@dataclass(slots=True)
class GridRow:
    """A row as offsets in the page text, by column; `spans` are cells over several columns [first, after the last)."""

    cells: list[list[int]]
    spans: list[tuple[int, int]]


def find_grids(rules: Sequence[Rule]) -> list[Grid]:
    """The grids of at least two columns that `rules` form, from the top of the page down; none inside another."""
    if sum(rule.is_horizontal for rule in rules) < 2 or sum(not rule.is_horizontal for rule in rules) < 2:
        return []
    grids = [_as_grid(boxes) for boxes in find_boxes(rules)]
    return [
        replace(grid, has_inner_grid=any(_is_inside(other, grid) for other in grids))
        for grid in grids
        if len(grid.xs) > 2 and not any(_is_inside(grid, other) for other in grids)
    ]


def fill_grid(grid: Grid, glyphs: Sequence[Glyph]) -> list[GridRow]:
    """The rows of a grid with the characters whose centres are in each cell."""
    where = {(row, column): cell for cell in grid.cells for row in range(*cell.rows) for column in range(*cell.columns)}
    places: dict[GridCell, list[int]] = {cell: [] for cell in grid.cells}
    left, upper, right, lower = grid.box
    for at, x0, top, x1, bottom in glyphs:
        x, y = (x0 + x1) / 2, (top + bottom) / 2
        if left <= x < right and upper <= y < lower:
            cell = where.get((bisect_right(grid.ys, y) - 1, bisect_right(grid.xs, x) - 1))
            if cell is not None:
                places[cell].append(at)
    rows = [GridRow([[] for _ in grid.xs[1:]], []) for _ in grid.ys[1:]]
    for cell, found in places.items():
        rows[cell.rows[0]].cells[cell.columns[0]] = found
        if cell.columns[1] - cell.columns[0] > 1:
            rows[cell.rows[0]].spans.append(cell.columns)
    return rows


def _as_grid(boxes: Sequence[Box]) -> Grid:
    xs = sorted({box[0] for box in boxes} | {max(box[2] for box in boxes)})
    ys = sorted({box[1] for box in boxes} | {max(box[3] for box in boxes)})

    def span(places: Sequence[float], start: float, end: float) -> tuple[int, int]:
        first = places.index(start)
        return first, max(first + 1, sum(place < end - SNAP / 2 for place in places))

    cells = (GridCell(span(ys, box[1], box[3]), span(xs, box[0], box[2])) for box in boxes)
    return Grid(tuple(xs), tuple(ys), tuple(sorted(cells, key=lambda cell: (cell.rows, cell.columns))))


def _is_inside(grid: Grid, other: Grid) -> bool:
    (left, top, right, bottom), (x0, y0, x1, y1) = grid.box, other.box
    return (
        grid is not other
        and left >= x0 - _INSIDE
        and top >= y0 - _INSIDE
        and right <= x1 + _INSIDE
        and bottom <= y1 + _INSIDE
    )


def split_columns(
    grid: Grid, rows: list[GridRow], words: Sequence[Piece], glyphs: Sequence[Glyph]
) -> tuple[list[float], list[GridRow]]:
    """The columns' borders and the rows, with columns divided where two rules enclose several columns of words."""
    column_of = {at: n for row in rows for n, cell in enumerate(row.cells) for at in cell}
    spanned = {at for row in rows for first, _ in row.spans for at in row.cells[first]}
    own: list[list[Piece]] = [[] for _ in grid.xs[1:]]
    for word in words:
        if word.start in column_of and word.start not in spanned:
            own[column_of[word.start]].append(word)
    found = [_find_inner_borders(column) for column in own if not grid.has_inner_grid]
    if not any(found):
        return list(grid.xs), rows
    borders = sorted({*grid.xs, *itertools.chain.from_iterable(found)})
    middles = {at: (x0 + x1) / 2 for at, x0, _, x1, _ in glyphs}
    by_start = {word.start: word for word in words}
    return borders, [_split_row(row, grid.xs, borders, by_start, middles) for row in rows]


def _group_lines(words: Sequence[Piece], size: float) -> Iterator[list[Piece]]:
    for _, line in itertools.groupby(words, key=lambda word: round(word.base / (_SAME_LINE * size))):
        yield sorted(line, key=lambda word: word.x0)


def _find_inner_borders(words: Sequence[Piece]) -> list[float]:
    """The borders at which the words of one column divide: most lines leave a gap there, with words on both sides."""
    size = measure_font_size(words)
    bands = [Band(join_words(line, size)) for line in _group_lines(words, size)]
    columns = find_columns(bands, size) if len(bands) > 2 else []
    for x0, x1 in columns:
        filled = sum(any(word.x1 > x0 and word.x0 < x1 for word in band.words) for band in bands)
        if filled < _MIN_FILLED * len(bands) or x1 - x0 < _MIN_WIDTH * size:
            return []
    return [(left[1] + right[0]) / 2 for left, right in itertools.pairwise(columns)]


def _split_row(
    row: GridRow, old: Sequence[float], new: Sequence[float], words: dict[int, Piece], middles: dict[int, float]
) -> GridRow:
    """The row in the new columns; a cell whose words reach over a new border spans the columns on both sides."""
    split = GridRow([[] for _ in new[1:]], [])
    ends = dict(row.spans)
    for n, cell in enumerate(row.cells):
        first, last = new.index(old[n]), new.index(old[ends.get(n, n + 1)])
        inner = new[first + 1 : last]
        own = [words[at] for at in cell if at in words]
        if n in ends or any(_reaches_over(own, x) for x in inner):
            split.cells[first] = cell
            split.spans += [(first, last)] if last - first > 1 else []
            continue
        for at in cell:
            split.cells[first + bisect_right(inner, middles[at])].append(at)
    return split


def _reaches_over(words: Sequence[Piece], x: float) -> bool:
    """Whether a line of these words leaves no gap at `x`."""
    size = measure_font_size(words)
    for line in _group_lines(words, size):
        left = max((word.x1 for word in line if word.middle < x), default=None)
        right = min((word.x0 for word in line if word.middle >= x), default=None)
        if left is not None and right is not None and right - left < _WORD_GAP * size:
            return True
        if (left is not None and left > x) or (right is not None and right < x):
            return True
    return False


def split_lines(row: GridRow, borders: Sequence[float], words: Sequence[Piece], read: ReadRow) -> list[GridRow]:
    """The rows in one row of boxes: several where rules are drawn between columns only.

    Its lines are rows if they follow each other in the text, and if the first word of the next line would have fitted
    into most of them: the text of a cell continues on the next line only when its line is full.
    """
    column_of = {at: column for column, cell in enumerate(row.cells) for at in cell}
    own = [word for word in words if word.start in column_of]
    if len(own) < _FEWEST_WORDS or row.spans:
        return [row]
    size = measure_font_size(own)
    groups = itertools.groupby(own, key=lambda word: (column_of[word.start], round(word.base / (_SAME_LINE * size))))
    blocks = find_blocks([join_pieces(list(group)) for _, group in groups], size)
    bands = blocks[0]
    if len(blocks) > 1 or len(bands) < 2:
        return [row]
    lines = [
        Row([[p for p in band.pieces if column_of[p.start] == n] for n in range(len(row.cells))]) for band in bands
    ]
    joined = join_rows(lines, size, (), read)
    wanted = max(2, round(_MIN_CELLS * len([cell for cell in row.cells if cell])))
    full = sum(len(line.filled) >= wanted for line in joined)
    first = min(n for n, cell in enumerate(row.cells) if cell)
    if len(joined) < _SURELY_ROWS and not all(line.cells[first] for line in joined):
        return [row]  # such as figures with their margins of error below
    if len(joined) < 2 or full < _MIN_ROWS * len(joined) or not _are_rows(joined, borders, size, read):
        return [row]
    ends = [max(piece.end for piece in line.pieces) for line in joined]
    split = [GridRow([[] for _ in row.cells], []) for _ in joined]
    for column, cell in enumerate(row.cells):
        for at in cell:
            split[min(bisect_right(ends, at), len(ends) - 1)].cells[column].append(at)
    return split


def _are_rows(lines: Sequence[Row], borders: Sequence[float], size: float, read: ReadRow) -> bool:
    """Whether lines are rows: all have all cells, numbers stand below numbers, or most cells end with room to spare."""
    if len(lines[0].cells) > 2 and all(len(line.filled) == len(line.cells) for line in lines):
        return True
    early = numbers = pairs = 0
    for above, below in itertools.pairwise(lines):
        texts = list(zip(read(above), read(below), strict=True))
        numbers += any(is_number(one) and is_number(two) for one, two in texts)
        for column, (one, two) in enumerate(texts):
            if one and two:
                pairs += 1
                room = borders[column + 1] - max(piece.x1 for piece in above.cells[column])
                first = below.cells[column][0].words[0]
                early += room > first.x1 - first.x0 + size
    return numbers >= _MIN_NUMBERS * (len(lines) - 1) or early >= _MIN_EARLY * max(pairs, 1)
