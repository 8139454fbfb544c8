"""Finds tables without a grid: runs of lines that are arranged in columns, with their rows, header and borders.

Lengths in em are multiples of the font size, other lengths are in points.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from functions.core.extraction.pdf.tables import classifier
from functions.core.extraction.pdf.tables.columns import (
    find_alignment,
    find_borders,
    find_columns,
    place_band,
    place_head,
    settle_names,
    spans_of,
)
from functions.core.extraction.pdf.tables.glyphs import WIDE_GAP, Band
from functions.core.extraction.pdf.tables.row_runs import Run, find_rules, find_runs, names_most
from functions.core.extraction.pdf.tables.rows import LINE_PITCH, ReadRow, Row, is_running_text, join_rows, merge_rows
from functions.core.extraction.pdf.tables.ruling_lines import Rule

_SET_OFF, _SET_OFF_EM = 1.6, 2.0
"""A first or last row is set off, as a caption or a note, by more than so many medians of pitch and so many em."""
_REGULAR_PITCHES = 3
"""The fewest pitches whose median shows how rows are usually set."""
_EDGE_ROWS, _LAST_ROWS = 3, 2
"""How many rows at the beginning and at the end of a run may be dropped because one of them is set off."""
_RULE_TOLERANCE = 2.0
"""Points: how far text may reach over a rule, which is drawn close to it, and still be on its own side."""
_MOST_HEADER_ROWS = 3
"""The most rows above the first rule that can be a header."""
_OUTSIDE_RATIO = 4
"""Up to one row in four beyond the outer rules is a caption or a note; more are rows of a table that goes on."""


@dataclass(slots=True)
class UnruledTable:
    """A table found by its columns: rows from the top down, the columns' borders in points from left to right."""

    rows: list[Row]
    header_rows: int
    borders: tuple[float, ...]
    has_numbers: bool
    """Whether all columns but the first have little else than numbers below the header."""


def find_unruled_tables(
    blocks: Iterable[list[Band]], stacks: Sequence[Sequence[Rule]], size: float, read: ReadRow
) -> Iterator[UnruledTable]:
    """The tables among blocks of bands; `stacks` are horizontal rules, which separate rows and are evidence of a table.

    `size` is the font size of the page in points.
    """

    def is_text(band: Band) -> bool:
        return is_running_text(read(_place_alone(band, size)))

    for block in blocks:
        for run in find_runs(block, size, is_text):
            run.rules = find_rules(run, stacks)
            table = _build_table(run, read)
            if table is not None:
                yield table


def _build_table(run: Run, read: ReadRow) -> UnruledTable | None:
    _drop_surroundings(run, read)
    columns = find_columns(run.regular, run.size)
    if len(columns) < 2 or len(run.bands) < 2:
        return None
    lines = [place_band(band, columns, run.size) for band in run.bands]
    if len(lines) > 2 and _is_row_of_titles(*lines[:2]) and run.pitches[0] > LINE_PITCH * run.size:
        run.heads = [*run.heads, run.bands[0]]
        del lines[0]
    lines[0] = settle_names(lines[0], columns, lines[1])
    rows = join_rows(lines, run.size, run.rules, read)
    if run.lead and read(rows[0])[0][:1].islower():
        rows[0] = place_band(run.lead, columns, run.size).merge(rows[0])
    for band in reversed(run.heads):
        tight = rows[0].first_base - band.last_base <= LINE_PITCH * run.size
        head = place_head(band, columns, rows[0] if tight else None)
        rows = [head, *rows] if head.spans else [head.merge(rows[0]), *rows[1:]]
    header_rows, rows = _find_header(rows, run.rules)
    rows = _trim(rows, header_rows, run.rules)
    if len(rows) <= header_rows:
        return None
    places = [find_alignment(rows, n) for n in range(len(columns))]
    aligned = sum(place is not None for place in places)
    texts = [read(row) for row in rows]
    inside = any(rows[0].first_base < rule.at < rows[-1].last_base for rule in run.rules)
    if not classifier.is_table(texts, header_rows, aligned=aligned, ruled=inside and len(run.rules) > 1):
        return None
    has_numbers = classifier.has_number_columns(texts[header_rows:])
    return UnruledTable(rows, header_rows, find_borders(columns, places, run.rules), has_numbers)


def _drop_surroundings(run: Run, read: ReadRow) -> None:
    """Drops bands that are set off at either end of a run, unless they name the columns, and prose above it."""
    count = len(run.pitches)
    if count >= _REGULAR_PITCHES:
        far = max(_SET_OFF * statistics.median(run.pitches), _SET_OFF_EM * run.size)
        apart = [n for n in range(count) if _is_apart(run, n, far)]
        names = next((n for n in range(min(_EDGE_ROWS, count)) if names_most(run.bands[n], run.spans)), _EDGE_ROWS)
        first = max((n + 1 for n in apart if n < names), default=0)
        last = min((n + 1 for n in apart if n >= max(first, count - _LAST_ROWS)), default=count + 1)
        run.cut(first, last)
    while len(run.bands) > 2 and is_running_text(read(_place_alone(run.bands[0], run.size))):
        run.cut(1, len(run.bands))


def _place_alone(band: Band, size: float) -> Row:
    """The pieces of a band in columns made of this band alone."""
    spans = spans_of(band.pieces, WIDE_GAP * size)
    return Row([[piece for piece in band.pieces if x0 <= piece.middle <= x1] for x0, x1 in spans])


def _is_apart(run: Run, n: int, far: float) -> bool:
    """Whether there is more space than `far` points, and no rule, below band `n`."""
    above, below = run.bands[n].last_base, run.bands[n + 1].first_base
    return run.pitches[n] > far and not any(above < rule.at < below for rule in run.rules)


def _find_header(rows: list[Row], rules: Sequence[Rule]) -> tuple[int, list[Row]]:
    """The number of header rows, which are above the first rule, and all rows; names of several lines are joined."""
    for rule in rules[:2]:
        above = [row for row in rows if max(piece.bottom for piece in row.pieces) <= rule.at + _RULE_TOLERANCE]
        if 1 < len(above) < min(_MOST_HEADER_ROWS + 1, len(rows)):
            heads = [above[0], merge_rows(above[1:])] if above[0].spans else [merge_rows(above)]
            return len(heads), heads + rows[len(above) :]
        if above:
            break
    names_columns = len(rows) > 2 and len(rows[1].filled) > 1
    titles = names_columns and (rows[0].spans or _is_row_of_titles(rows[0], rows[1]))
    return 2 if titles else 1, rows


def _is_row_of_titles(first: Row, second: Row) -> bool:
    """Whether the first row has titles of groups of columns, and no first cell, while the second row names columns."""
    return 0 not in first.filled and len(first.filled) < len(first.cells) - 1 and len(second.filled) > len(first.filled)


def _trim(rows: list[Row], header_rows: int, rules: Sequence[Rule]) -> list[Row]:
    """Drops captions and notes: rows beyond the outer rules, and first and last rows with one cell."""
    if rules:
        above = sum(row.last_base < rules[0].at + _RULE_TOLERANCE for row in rows)
        below = sum(row.first_base > rules[-1].at + _RULE_TOLERANCE for row in rows)
        few = max(1, len(rows) // _OUTSIDE_RATIO)
        rows = rows[above if header_rows < above <= few else 0 : len(rows) - (below if 1 < below <= few else 0)]
    while rows and len(rows[0].filled) < 2 and not rows[0].spans:
        rows = rows[1:]
    while rows and len(rows[-1].filled) < 2:
        rows = rows[:-1]
    return rows
