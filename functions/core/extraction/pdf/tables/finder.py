"""Finds the tables of a PDF page: a cheap check first, then grids of ruling lines, then words in columns.

PDFium measures lines and characters, pdfplumber's functions find the boxes that lines enclose, and the texts of cells
come from the stored text of the page.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from functions.core import models
from functions.core.extraction.pdf.geometry import Frame, Rectangle
from functions.core.extraction.pdf.page_objects import sample_angles
from functions.core.extraction.pdf.tables import classifier, grids, prefilter, ruled, ruling_lines, unruled
from functions.core.extraction.pdf.tables.glyphs import (
    Glyph,
    Piece,
    find_blocks,
    find_leaders,
    find_words,
    is_visible,
    join_words,
    measure_font_size,
    read_cell,
    read_glyphs,
    sort_by_place,
)
from functions.core.extraction.pdf.tables.grids import Grid, GridRow
from functions.core.extraction.pdf.tables.rows import Row, is_number, is_year
from functions.core.extraction.pdf.tables.ruling_lines import Rule
from functions.core.extraction.pdf.tables.symbols import find_currencies, join_symbols
from functions.core.text.data_rows import is_data

if TYPE_CHECKING:
    import pypdfium2

MIN_OWN_SHARE = 0.8
"""The share of visible characters, from a table's first to its last in the text, that must be in its cells."""

_MIN_GLYPHS = 8
"""The fewest characters of a ruled table; with fewer a grid is a drawing or an empty form."""
_RULES_NEEDED, _NO_RULES_NEEDED = 2, 3
"""How many neighbouring lines need wide gaps for unruled tables to be sought, with and without stacked rules."""
_MIN_FULL_ROWS, _MIN_FILL = 0.3, 0.3
"""The shares of a grid's rows with several cells (at least two rows), and of its cells that are not empty."""
_MUCH_MORE = 1.1
"""How many times as many characters a table found by place must have as those that it replaces."""
_LONGEST_LABEL = 120
"""Characters: a longer cell over several rows is a text beside them, and is not repeated in each."""
_MIN_VALUES = 0.5
"""A row is of the body if more than this share of its cells are numbers."""
_MIN_NAMED = 0.5
"""The share of columns that one of the first two rows of a grid must name."""


@dataclass(slots=True)
class _Draft:
    """A table whose cells are lists of offsets in the page text; `borders` are in points.

    `spans` are cells over several columns: the row, the first column and the one after the last. `continued` are the
    rows and columns of cells that began in a row above.
    """

    rows: list[list[list[int]]]
    borders: tuple[float, ...]
    header_rows: int = 1
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    continued: list[tuple[int, int]] = field(default_factory=list)
    has_numbers: bool = False
    """Whether all columns but the first have little else than numbers; only known of tables without a grid."""

    @property
    def places(self) -> Iterator[int]:
        return (at for row in self.rows for cell in row for at in cell)


def find_tables(
    page: pypdfium2.PdfPage,
    text_page: pypdfium2.PdfTextPage,
    text: str,
    indices: Callable[[], Sequence[int | None]],
    runs: Sequence[Rectangle] | None = None,
) -> tuple[models.Table, ...]:
    """The tables of a page in the order of its text.

    `text` is the stored page text; `indices` returns PDFium's character index for each of its characters, and is called
    only for a page that may have a table. `runs` are PDFium's bounds of what the file draws at once, in PDFium's order,
    if they are read already.

    A row covers the text from its first to its last character; rows whose characters alternate in the text share one
    stretch. A table is left out if less than `MIN_OWN_SHARE` of the text that it covers is its own. In header rows the
    text of a cell over several columns is repeated in each, so that every column has its whole name; in other rows it
    is in the first column only. A first cell over several rows is repeated in each, so that each says what it counts.
    Borders come from the ruling lines or else from the alignment of columns; the right one is missing where nothing
    marks it.
    """
    if not text.strip():
        return ()
    frame = Frame.of_text(page, sample_angles(text_page))
    rules = ruling_lines.read_rules(page, frame)
    enclosed = grids.find_grids(rules)
    stacks = ruling_lines.stack_rules(rules)
    needed = _RULES_NEEDED if stacks else _NO_RULES_NEEDED
    places = list(frame.place_all(prefilter.read_runs(text_page) if runs is None else runs))
    has_columns = prefilter.has_columns(text_page, text, frame, needed, places)
    has_scattered_rows = prefilter.has_scattered_rows(places)
    if not enclosed and not has_columns and not has_scattered_rows:
        return ()
    found = _Page.read(text_page, text, indices(), frame)
    tabled, charts = _draft_grids(enclosed, found)
    drafts = [draft for _, draft in tabled]
    if drafts:
        stacks = ruling_lines.stack_rules([rule for rule in rules if not any(grid.holds(rule) for grid, _ in tabled)])
    taken = charts.union(*(draft.places for draft in drafts))
    unruled_drafts = list(_draft_unruled(found, stacks, taken)) if has_columns else []
    if has_scattered_rows or (has_columns and prefilter.goes_back(places)):
        by_place = _draft_unruled(found, stacks, taken, by_place=True)
        if not has_scattered_rows:  # each row is written as one, so that other text in columns is left out
            by_place = (draft for draft in by_place if len(set(_find_stretches(draft.rows))) == len(draft.rows))
        unruled_drafts = list(_prefer_larger(unruled_drafts, by_place))
    drafts += unruled_drafts
    taken = {at for draft in drafts for at in draft.places}
    tables = [table for draft in drafts if (table := _build_table(draft, text, taken)) is not None]
    return tuple(_drop_overlapping(sorted(tables, key=lambda table: table.start)))


@dataclass(frozen=True, slots=True)
class _Page:
    """The characters and words of a page; `size` is the median font size in points."""

    text: str
    glyphs: list[Glyph]
    words: list[Piece]
    size: float

    @classmethod
    def read(
        cls,
        text_page: pypdfium2.PdfTextPage,
        text: str,
        indices: Sequence[int | None],
        frame: Frame,
    ) -> _Page:
        glyphs = read_glyphs(text_page, text, indices, frame)
        words = find_words(text_page, text, glyphs, indices, frame)
        return cls(text, glyphs, words, measure_font_size(words))

    def places(self, pieces: Sequence[Piece]) -> list[int]:
        ordered = sorted(pieces, key=lambda piece: piece.start)
        spans = (range(piece.start, piece.end) for piece in ordered)
        return [at for span in spans for at in span if is_visible(self.text[at])]

    def read_row(self, row: Row) -> list[str]:
        return [read_cell(self.text, self.places(cell)) for cell in row.cells]


def _draft_grids(enclosed: Sequence[Grid], page: _Page) -> tuple[list[tuple[Grid, _Draft]], set[int]]:
    """The outermost grids that are tables, each with its table, and the text of charts: lines run through its words."""
    tabled: list[tuple[Grid, _Draft]] = []
    charts: set[int] = set()
    for grid in sorted(enclosed, key=lambda grid: grid.area, reverse=True):
        if any(grid.is_inside(outer) for outer, _ in tabled):
            continue
        filled, rows = grids.fill_grid(grid, page.glyphs)
        if ruled.cuts_words(rows, page.words):
            charts |= {at for row in rows for cell in row.cells for at in cell}
        elif draft := _draft_grid(filled, rows, page):
            tabled.append((grid, draft))
    return tabled, charts


def _draft_grid(grid: Grid, filled: list[GridRow], page: _Page) -> _Draft | None:
    """The table in a grid, None if it is a drawing, a frame around text or a title."""
    filled = [ruled.divide_boxes(row, grid.xs, page.words) if row.spans else row for row in filled]
    if sum(len(cell) for row in filled for cell in row.cells) < _MIN_GLYPHS:
        return None
    borders, rows = ruled.split_columns(grid, filled, page.words, page.glyphs)
    rows = [line for row in rows for line in ruled.split_lines(row, borders, page.words, page.read_row)]
    rows = [row for row in rows if any(row.cells)]
    for end in (0, -1):  # the title of the table and the notes below it
        while rows and rows[end].spans == [(0, len(borders) - 1)]:
            del rows[end]
    columns = [n for n in range(len(borders) - 1) if any(row.cells[n] for row in rows)]
    if len(columns) < 2 or len(rows) < 2:
        return None
    kept = [0, *itertools.accumulate(n in columns for n in range(len(borders) - 1))]
    spans = [(number, kept[first], kept[last]) for number, row in enumerate(rows) for first, last in row.spans]
    spans = [(number, first, last) for number, first, last in spans if last - first > 1]
    draft = _Draft([[row.cells[n] for n in columns] for row in rows], (*(borders[n] for n in columns), borders[-1]))
    draft.spans = spans
    draft.continued = [(number, kept[n]) for number, row in enumerate(rows) for n in row.continued if n in columns]
    draft.header_rows = 2 if any(number == 0 for number, *_ in spans) and len(rows) > 2 else 1
    return draft if _is_filled(draft) else None


def _is_filled(draft: _Draft) -> bool:
    """Whether a grid has rows and column names; drawings also have crossing lines and a few letters."""
    counts, width = [sum(map(bool, row)) for row in draft.rows], len(draft.rows[0])
    full_rows = sum(count > 1 for count in counts)
    if full_rows < max(2, _MIN_FULL_ROWS * len(counts)) or sum(counts) < _MIN_FILL * len(counts) * width:
        return False
    named = [counts[n] + sum(last - first - 1 for row, first, last in draft.spans if row == n) for n in (0, 1)]
    return max(named) >= _MIN_NAMED * width


def _draft_unruled(
    page: _Page, stacks: Sequence[Sequence[Rule]], taken: set[int], *, by_place: bool = False
) -> Iterator[_Draft]:
    """The tables without a grid among the words that are not in other tables already.

    Their rows are sought in the order of the text or, because some files write tables column by column, `by_place`.
    """
    words = [word for word in page.words if word.start not in taken]
    pieces = join_words(words, page.size, find_currencies(page.text, words))
    blocks = find_blocks(sort_by_place(pieces, page.size) if by_place else pieces, page.size)
    for table in unruled.find_unruled_tables(blocks, stacks, page.size, page.read_row):
        rows = [[page.places(cell) for cell in row.cells] for row in table.rows]
        spans = [(number, *span) for number, row in enumerate(table.rows) for span in row.spans]
        yield _Draft(rows, table.borders, table.header_rows, spans, has_numbers=table.has_numbers)


def _prefer_larger(in_order: Sequence[_Draft], by_place: Iterable[_Draft]) -> Iterator[_Draft]:
    """The tables found in the order of the text, but those found by place where they hold all of that and much more.

    The text beside a table may be the next column of the page, so only tables of numbers are believed.
    """
    own = [set(draft.places) for draft in in_order]
    replaced: set[int] = set()
    for draft in by_place:
        places = set(draft.places)
        parts = [n for n, other in enumerate(own) if other & places]
        covered = set().union(*(own[n] for n in parts))
        if covered <= places and len(places) > _MUCH_MORE * len(covered) and draft.has_numbers:
            replaced.update(parts)
            yield draft
    yield from (draft for n, draft in enumerate(in_order) if n not in replaced)


def _build_table(draft: _Draft, text: str, taken: set[int]) -> models.Table | None:
    """The table as it is stored; None if it has no words, or if too much of the text it covers is not its own.

    Text of other tables, which is among those `taken`, does not count: rows of tables side by side may alternate.
    """
    own = set(draft.places)
    start, end = min(own), max(own) + 1
    leaders = find_leaders(text[start:end])
    visible = {at for at in range(start, end) if is_visible(text[at]) and at - start not in leaders}
    if len(own & visible) < MIN_OWN_SHARE * len(visible - (taken - own)):
        return None
    cells = [[read_cell(text, cell) for cell in row] for row in draft.rows]
    if not classifier.has_readable_cells(cells):
        return None
    header_rows = 1 if draft.header_rows > 1 and _holds_values(cells[1]) else draft.header_rows
    for number, first, last in draft.spans:
        if number < header_rows:
            cells[number][first:last] = [cells[number][first]] * (last - first)
    for number, column in sorted(draft.continued):
        if number > header_rows and _is_label(cells[number - 1], column) and not cells[number][column]:
            cells[number][column] = cells[number - 1][column]
    cells, borders = join_symbols(cells, header_rows, draft.borders)
    stretches = _find_stretches(draft.rows)
    rows = tuple(models.TableRow(*stretch, tuple(row)) for stretch, row in zip(stretches, cells, strict=True))
    return models.Table(rows, header_rows, tuple(float(round(border)) for border in borders))


def _holds_values(row: Sequence[str]) -> bool:
    """Whether a row below titles of columns is one of the body: it has a label, and most cells after it are numbers."""
    values = [cell for cell in row[1:] if cell]
    is_labelled = any(map(str.isalpha, row[0]))
    numbers = sum(is_number(cell) and not is_year(cell) for cell in values)
    return is_data(row) or (is_labelled and numbers > _MIN_VALUES * len(values))


def _is_label(row: Sequence[str], column: int) -> bool:
    """Whether a cell and all before it name the row, rather than give a value of several rows."""
    return all(cell and len(cell) <= _LONGEST_LABEL and not is_number(cell) for cell in row[: column + 1]) or (
        column == 0 and 0 < len(row[0]) <= _LONGEST_LABEL
    )


def _find_stretches(rows: Sequence[Sequence[Sequence[int]]]) -> list[models.Offsets]:
    """The stretch of text that each row covers; rows that overlap there share the stretch of both."""
    own = [(min(map(min, filter(None, row))), max(map(max, filter(None, row))) + 1) for row in rows]
    merged: list[models.Offsets] = []
    for start, end in sorted(own):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    starts = [start for start, _ in merged]
    return [merged[bisect_right(starts, start) - 1] for start, _ in own]


def _drop_overlapping(tables: Sequence[models.Table]) -> Iterator[models.Table]:
    """The tables without those of which a row overlaps, in the text, a row of an earlier one."""
    kept: list[models.TableRow] = []
    for table in tables:
        near = [row for row in kept if row.end > table.start]
        if not any(row.start < other.end and other.start < row.end for row in table.rows for other in near):
            yield table
            kept += table.rows
