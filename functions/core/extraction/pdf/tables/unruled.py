"""Tables without a grid: runs of lines that stand in columns, with their rows, header and borders."""

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
    spans_of,
)
from functions.core.extraction.pdf.tables.glyphs import WIDE, Band
from functions.core.extraction.pdf.tables.row_runs import Run, find_rules, find_runs
from functions.core.extraction.pdf.tables.rows import LINE_PITCH, ReadRow, Row, is_running_text, join_rows, merge_rows
from functions.core.extraction.pdf.tables.ruling_lines import Rule


@dataclass(slots=True)
class Sheet:
    """A table found by its columns: rows from the top down, the columns' borders from left to right."""

    rows: list[Row]
    header_rows: int
    borders: tuple[float, ...]


def find_sheets(
    blocks: Iterable[list[Band]], stacks: Sequence[Sequence[Rule]], size: float, read: ReadRow
) -> Iterator[Sheet]:
    """The tables among bands of text; `stacks` are level rules, which tell rows apart and make a small table sure."""

    def is_text(band: Band) -> bool:
        return is_running_text(read(_place_alone(band, size)))

    for block in blocks:
        for run in find_runs(block, size, is_text):
            run.rules = find_rules(run, stacks)
            sheet = _build(run, read)
            if sheet is not None:
                yield sheet


def _build(run: Run, read: ReadRow) -> Sheet | None:
    _leave_surroundings(run, read)
    columns = find_columns(run.regular, run.size)
    if len(columns) < 2 or len(run.bands) < 2:
        return None
    lines = [place_band(band, columns, run.size) for band in run.bands]
    if len(lines) > 2 and _is_row_of_titles(*lines[:2]) and run.pitches[0] > LINE_PITCH * run.size:
        run.heads = [*run.heads, run.bands[0]]
        del lines[0]
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
    return Sheet(rows, header_rows, find_borders(columns, places, run.rules))


def _leave_surroundings(run: Run, read: ReadRow) -> None:
    """Leaves out what stands apart at both ends of a run, and lines of a text above it."""
    count = len(run.pitches)
    if count > 2:
        far = max(1.6 * statistics.median(run.pitches), 2 * run.size)
        apart = [n for n in range(count) if _is_apart(run, n, far)]
        first = max((n + 1 for n in apart if n < 3), default=0)
        last = min((n + 1 for n in apart if n >= max(first, count - 2)), default=count + 1)
        run.cut(first, last)
    while len(run.bands) > 2 and is_running_text(read(_place_alone(run.bands[0], run.size))):
        run.cut(1, len(run.bands))


def _place_alone(band: Band, size: float) -> Row:
    """The pieces of a band by the columns of its own."""
    spans = spans_of(band.pieces, WIDE * size)
    return Row([[piece for piece in band.pieces if x0 <= piece.middle <= x1] for x0, x1 in spans])


def _is_apart(run: Run, n: int, far: float) -> bool:
    """Whether much space, and no rule, is below band `n`."""
    above, below = run.bands[n].last_base, run.bands[n + 1].first_base
    return run.pitches[n] > far and not any(above < rule.at < below for rule in run.rules)


def _find_header(rows: list[Row], rules: Sequence[Rule]) -> tuple[int, list[Row]]:
    """How many rows name the columns, and the rows with those of one name joined: what stands above the first rule."""
    for rule in rules[:2]:
        above = [row for row in rows if max(piece.bottom for piece in row.pieces) <= rule.at + 2]
        if 1 < len(above) < min(4, len(rows)):
            heads = [above[0], merge_rows(above[1:])] if above[0].spans else [merge_rows(above)]
            return len(heads), heads + rows[len(above) :]
        if above:
            break
    titles = len(rows) > 2 and (rows[0].spans or _is_row_of_titles(rows[0], rows[1]))
    return 2 if titles else 1, rows


def _is_row_of_titles(first: Row, second: Row) -> bool:
    """Whether the first row, without a first cell, has titles of groups of columns, which the second names."""
    return 0 not in first.filled and len(first.filled) < len(first.cells) - 1 and len(second.filled) > len(first.filled)


def _trim(rows: list[Row], header_rows: int, rules: Sequence[Rule]) -> list[Row]:
    """Without captions and notes: rows beyond the outer rules, and first and last rows with one cell."""
    if rules:
        above = sum(row.last_base < rules[0].at + 2 for row in rows)
        below = sum(row.first_base > rules[-1].at + 2 for row in rows)
        few = max(1, len(rows) // 4)  # more are rows of a table that goes on on the next page
        rows = rows[above if header_rows < above <= few else 0 : len(rows) - (below if 1 < below <= few else 0)]
    while rows and len(rows[0].filled) < 2 and not rows[0].spans:
        rows = rows[1:]
    while rows and len(rows[-1].filled) < 2:
        rows = rows[:-1]
    return rows
