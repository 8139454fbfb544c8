"""Finds the grids of boxes that ruling lines form, and the text in each box.

Places and other lengths are in points.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from functions.core.extraction.pdf.geometry import Box
from functions.core.extraction.pdf.tables.boxes import find_boxes
from functions.core.extraction.pdf.tables.glyphs import Glyph
from functions.core.extraction.pdf.tables.ruling_lines import SNAP, Rule

_INSIDE = 1.0
"""Points: how far a grid may reach over another that it is inside."""
_MAX_OPEN = 0.25
"""The largest share of a grid that may lie open; with more, what the lines enclose is no rectangle."""


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

    @property
    def area(self) -> float:
        left, top, right, bottom = self.box
        return (right - left) * (bottom - top)

    def is_inside(self, other: Grid) -> bool:
        (left, top, right, bottom), (x0, y0, x1, y1) = self.box, other.box
        return (
            self is not other
            and left >= x0 - _INSIDE
            and top >= y0 - _INSIDE
            and right <= x1 + _INSIDE
            and bottom <= y1 + _INSIDE
        )

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
    continued: list[int] = field(default_factory=list)
    """The columns whose cell began in a row above."""


def find_grids(rules: Sequence[Rule]) -> list[Grid]:
    """The grids of at least two columns that `rules` form, from the top of the page down."""
    if sum(rule.is_horizontal for rule in rules) < 2 or sum(not rule.is_horizontal for rule in rules) < 2:
        return []
    grids = [_as_grid(boxes) for boxes in find_boxes(rules)]
    return [
        replace(grid, has_inner_grid=any(other.is_inside(grid) for other in grids))
        for grid in grids
        if len(grid.xs) > 2
    ]


def fill_grid(grid: Grid, glyphs: Sequence[Glyph]) -> tuple[Grid, list[GridRow]]:
    """The rows of a grid with the characters whose centres are in each cell, and the grid that is left.

    Rows and columns without text of their own are left out, such as the space between the lines of a double rule.
    """
    where = {(row, column): cell for cell in grid.cells for row in range(*cell.rows) for column in range(*cell.columns)}
    places: dict[GridCell, list[int]] = {cell: [] for cell in grid.cells}
    left, upper, right, lower = grid.box
    for at, x0, top, x1, bottom in glyphs:
        x, y = (x0 + x1) / 2, (top + bottom) / 2
        if left <= x < right and upper <= y < lower:
            cell = where.get((bisect_right(grid.ys, y) - 1, bisect_right(grid.xs, x) - 1))
            if cell is not None:
                places[cell].append(at)
    filled = [cell for cell, found in places.items() if found]
    xs, columns = _close_gaps(grid.xs, [cell.columns for cell in filled])
    ys, lines = _close_gaps(grid.ys, [cell.rows for cell in filled])
    rows = [GridRow([[] for _ in xs[1:]], []) for _ in ys[1:]]
    for cell in filled:
        first, last = (columns[border] for border in cell.columns)
        top, end = (lines[border] for border in cell.rows)
        rows[top].cells[first] = places[cell]
        if last - first > 1:
            rows[top].spans.append((first, last))
        for row in rows[top + 1 : end]:
            row.continued.append(first)
    return replace(grid, xs=xs, ys=ys), rows


def _close_gaps(borders: Sequence[float], spans: Sequence[tuple[int, int]]) -> tuple[tuple[float, ...], list[int]]:
    """The fewest stripes between borders in which each span keeps at least one, and the new number of each border."""
    kept: list[int] = []
    numbers = [0]
    for stripe in range(len(borders) - 1):
        if any(last == stripe + 1 and not (kept and kept[-1] >= first) for first, last in spans):
            kept.append(stripe)
        numbers.append(len(kept))
    return (*(borders[stripe] for stripe in kept), borders[-1]), numbers


def _as_grid(boxes: Sequence[Box]) -> Grid:
    xs = sorted({box[0] for box in boxes} | {max(box[2] for box in boxes)})
    ys = sorted({box[1] for box in boxes} | {max(box[3] for box in boxes)})

    def span(places: Sequence[float], start: float, end: float) -> tuple[int, int]:
        first = places.index(start)
        return first, max(first + 1, sum(place < end - SNAP / 2 for place in places))

    cells = [GridCell(span(ys, box[1], box[3]), span(xs, box[0], box[2])) for box in boxes]
    cells += _find_open_corners(cells, len(ys) - 1, len(xs) - 1)
    return Grid(tuple(xs), tuple(ys), tuple(sorted(cells, key=lambda cell: (cell.rows, cell.columns))))


def _find_open_corners(cells: Sequence[GridCell], rows: int, columns: int) -> list[GridCell]:
    """Cells where no box is: the corners of a table without outer lines, whose lines all end at other lines."""
    covered = {(row, column) for cell in cells for row in range(*cell.rows) for column in range(*cell.columns)}
    free = [place for place in itertools.product(range(rows), range(columns)) if place not in covered]
    if len(free) > _MAX_OPEN * rows * columns:
        return []
    return [GridCell((row, row + 1), (column, column + 1)) for row, column in free]
