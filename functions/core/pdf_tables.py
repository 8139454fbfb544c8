"""Finds the tables of a PDF page: cheap signs first, then grids of ruling lines, then words in columns.

Where things stand comes from PDFium, the boxes that lines make from pdfplumber's functions, and the texts of cells
from the stored text of the page.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from functions.core import (
    models,
    pdf_objects,
    pdf_table_evidence,
    pdf_table_gate,
    pdf_table_grids,
    pdf_table_rules,
    pdf_table_sheets,
    pdf_table_text,
)
from functions.core.pdf_geometry import Frame, Rectangle
from functions.core.pdf_table_grids import Grid
from functions.core.pdf_table_rows import Row
from functions.core.pdf_table_rules import Rule
from functions.core.pdf_table_text import Piece

if TYPE_CHECKING:
    import pypdfium2

MIN_OWN_SHARE = 0.8
"""The least share of a table's cells in the visible characters of the text it stretches over."""

_MIN_GLYPHS = 8


@dataclass(slots=True)
class _Draft:
    """A table as places in the page text: rows of cells of offsets.

    `spans` are cells over several columns: the row, the first column, and the one after the last.
    """

    rows: list[list[list[int]]]
    borders: tuple[float, ...]
    header_rows: int = 1
    spans: list[tuple[int, int, int]] = field(default_factory=list)


def find_tables(
    page: pypdfium2.PdfPage,
    text_page: pypdfium2.PdfTextPage,
    text: str,
    indices: Callable[[], Sequence[int | None]],
    runs: Sequence[Rectangle] | None = None,
) -> tuple[models.Table, ...]:
    """The tables of a page in the order of its text.

    `text` is the stored page text; `indices` gives PDFium's character index for each of its characters, and is called
    only on a page that looks as if it had a table. `runs` are the boxes (left, bottom, right, top) of what the file
    draws at once, in PDFium's order, where they are read already.

    A row stretches from the first to the last of its characters in the text; rows that the text goes through crosswise
    share one stretch. A table whose stretch of text is not mostly its own is left out. In header rows a cell over
    several columns is repeated in each, so that every column has its whole name; in other rows its text stands in the
    first. Borders depend on the lines or, without, on the alignment of columns; the right one is missing where nothing
    marks it.
    """
    if not text.strip():
        return ()
    frame = Frame.of_text(page, pdf_objects.sample_angles(text_page))
    rules = pdf_table_rules.read_rules(page, frame)
    grids = pdf_table_grids.find_grids(rules)
    stacks = pdf_table_rules.stack_rules(rules)
    needed = 2 if stacks else 3
    has_columns = pdf_table_gate.has_columns(text_page, text, frame, needed, runs)
    if not grids and not has_columns:
        return ()
    found = _Page.read(text_page, text, indices(), frame)
    drafts: list[_Draft] = []
    for grid in grids:
        draft = _draft_grid(grid, found)
        if draft is not None:
            drafts.append(draft)
            rules = [rule for rule in rules if not grid.holds(rule)]
    if has_columns:
        taken = {at for draft in drafts for row in draft.rows for cell in row for at in cell}
        drafts += _draft_sheets(found, pdf_table_rules.stack_rules(rules) if drafts else stacks, taken)
    tables = [table for draft in drafts if (table := _finish(draft, text)) is not None]
    return tuple(_apart(sorted(tables, key=lambda table: table.start)))


@dataclass(frozen=True, slots=True)
class _Page:
    """The characters and words of a page; `size` is that of most of them, in points."""

    text: str
    glyphs: list[pdf_table_text.Glyph]
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
        glyphs = pdf_table_text.read_glyphs(text_page, text, indices, frame)
        words = pdf_table_text.find_words(text_page, text, glyphs, indices, frame)
        return cls(text, glyphs, words, pdf_table_text.font_size(words))

    def places(self, pieces: Sequence[Piece]) -> list[int]:
        ordered = sorted(pieces, key=lambda piece: piece.start)
        spans = (range(piece.start, piece.end) for piece in ordered)
        return [at for span in spans for at in span if pdf_table_text.is_visible(self.text[at])]

    def read_row(self, row: Row) -> list[str]:
        return [pdf_table_text.read_cell(self.text, self.places(cell)) for cell in row.cells]


def _draft_grid(grid: Grid, page: _Page) -> _Draft | None:
    """The table in a grid, None when it is a drawing, a box or a title."""
    filled = pdf_table_grids.fill_grid(grid, page.glyphs)
    if sum(len(cell) for row in filled for cell in row.cells) < _MIN_GLYPHS:
        return None
    borders, rows = pdf_table_grids.split_columns(grid, filled, page.words, page.glyphs)
    rows = [line for row in rows for line in pdf_table_grids.split_lines(row, borders, page.words, page.read_row)]
    rows = [row for row in rows if any(row.cells)]
    for end in (0, -1):  # the title of the table, and the notes below it
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
    draft.header_rows = 2 if any(number == 0 for number, *_ in spans) and len(rows) > 2 else 1
    return draft if _is_filled(draft) else None


def _is_filled(draft: _Draft) -> bool:
    """Whether a grid holds rows and names of columns; drawings, too, have lines that cross, and a few letters."""
    counts, width = [sum(map(bool, row)) for row in draft.rows], len(draft.rows[0])
    if sum(count > 1 for count in counts) < max(2, 0.3 * len(counts)) or sum(counts) < 0.3 * len(counts) * width:
        return False
    named = [counts[n] + sum(last - first - 1 for row, first, last in draft.spans if row == n) for n in (0, 1)]
    return max(named) >= 0.5 * width


def _draft_sheets(page: _Page, stacks: Sequence[Sequence[Rule]], taken: set[int]) -> Iterator[_Draft]:
    """The tables without a grid in what is not taken by others."""
    words = [word for word in page.words if word.start not in taken]
    blocks = pdf_table_text.find_blocks(pdf_table_text.join_words(words, page.size), page.size)
    for sheet in pdf_table_sheets.find_sheets(blocks, stacks, page.size, page.read_row):
        rows = [[page.places(cell) for cell in row.cells] for row in sheet.rows]
        spans = [(number, *span) for number, row in enumerate(sheet.rows) for span in row.spans]
        yield _Draft(rows, sheet.borders, sheet.header_rows, spans)


def _finish(draft: _Draft, text: str) -> models.Table | None:
    """The table as it is stored, or None when its stretch of text holds too much that is not its own."""
    own = {at for row in draft.rows for cell in row for at in cell}
    start, end = min(own), max(own) + 1
    leaders = pdf_table_text.find_leaders(text[start:end])
    visible = {at for at in range(start, end) if pdf_table_text.is_visible(text[at]) and at - start not in leaders}
    if len(own & visible) < MIN_OWN_SHARE * len(visible):
        return None
    cells = [[pdf_table_text.read_cell(text, cell) for cell in row] for row in draft.rows]
    if not pdf_table_evidence.says_something(cells):
        return None
    for number, first, last in draft.spans:
        if number < draft.header_rows:
            cells[number][first:last] = [cells[number][first]] * (last - first)
    stretches = _stretches(draft.rows)
    rows = tuple(models.TableRow(*stretch, tuple(row)) for stretch, row in zip(stretches, cells, strict=True))
    return models.Table(rows, draft.header_rows, tuple(float(round(border)) for border in draft.borders))


def _stretches(rows: Sequence[Sequence[Sequence[int]]]) -> list[models.Offsets]:
    """Where each row begins and ends in the text; rows that overlap there get the stretch of both."""
    own = [(min(map(min, filter(None, row))), max(map(max, filter(None, row))) + 1) for row in rows]
    merged: list[models.Offsets] = []
    for start, end in sorted(own):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    starts = [start for start, _ in merged]
    return [merged[bisect_right(starts, start) - 1] for start, _ in own]


def _apart(tables: Sequence[models.Table]) -> Iterator[models.Table]:
    """Tables that do not share text; the first of two that do."""
    end = 0
    for table in tables:
        if table.start >= end:
            yield table
            end = table.end
