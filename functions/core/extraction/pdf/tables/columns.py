"""Finds columns of words, where successive lines leave the same gaps free, and divides lines into them.

Lengths in em are multiples of the font size, places and other lengths are in points.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal

from functions.core.extraction.pdf.tables.glyphs import WIDE_GAP, Band, Piece, join_pieces
from functions.core.extraction.pdf.tables.rows import Row
from functions.core.extraction.pdf.tables.ruling_lines import Rule

Span = tuple[float, float]
"""Left and right end of something."""

Alignment = tuple[Literal["left", "right", "middle"], float]
"""The side on which the cells of a column are aligned, and its place."""

MIN_COLUMN_GAP = 0.5
"""Em: the least gap that all lines together leave between columns; in most single lines it is wider."""

_ALIGNED = 1.5
"""Points: places up to this far apart are aligned."""
_HANGING = 4.5
"""Points: how far a closing parenthesis or a mark may hang over the right edge of a column of figures."""
_MIN_WIDE = 0.5
"""The least share of lines, of those with words on both sides, in which the gap between two columns is wide."""
_MIN_FILLED_LINES, _MIN_FILLED = 2, 0.12
"""How many lines, and which share of them, must fill a column; less is a few words that stray into a gap."""
_FEWEST_LINES = 4
"""Of fewer lines none is left out to find the columns, and no column counts as empty."""
_RICHER_RATIO = 5
"""The columns found are enough if at most one line in five has words in more."""
_OVERLONG_RATIO, _MAX_OVERLONG = 5, 6
"""At most one line in five, and no more than six, may have overlong cells that reach over the gaps."""
_CENTRED = 0.2
"""The share of a group's width by which the middle of its title may be off the middle of the group."""
_MIDDLE_STEP = 3.0
"""Points: the steps in which a title's distances from groups of columns are compared; of equals the narrowest wins."""
_MIN_ALIGNED = 0.7
"""The share of cells, beyond the first, that must be aligned for the whole column to be; at least two are."""


def find_columns(bands: Sequence[Band], size: float) -> list[Span]:
    """The columns of most bands; titles over several columns and a few long cells may reach over the gaps.

    `size` is that of the font in points, here and below.
    """
    columns = _columns_of(bands, size)
    counts = sorted(len(spans_of(band.pieces, WIDE_GAP * size)) for band in bands)
    if len(bands) < _FEWEST_LINES or len(columns) >= counts[-1 - len(counts) // _RICHER_RATIO]:
        return columns
    widest = sorted(range(len(bands)), key=lambda n: (len(bands[n].pieces), -max(p.x1 - p.x0 for p in bands[n].pieces)))
    most = min(len(bands) // _OVERLONG_RATIO, _MAX_OVERLONG)
    left_out = [widest[:count] for count in range(1, most + 1)]
    for numbers in [[0], *left_out]:
        found = _columns_of([band for n, band in enumerate(bands) if n not in numbers], size)
        columns = found if len(found) > len(columns) else columns
    return columns


def merge_spans(spans: Iterable[Span], gap: float) -> list[Span]:
    """The spans from left to right; those less than `gap` apart become one."""
    merged: list[Span] = []
    for x0, x1 in sorted(spans):
        if merged and x0 - merged[-1][1] < gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], x1))
        else:
            merged.append((x0, x1))
    return merged


def spans_of(pieces: Iterable[Piece], gap: float) -> list[Span]:
    """The spans that pieces cover; pieces less than `gap` apart share one."""
    return merge_spans(((piece.x0, piece.x1) for piece in pieces), gap)


def _columns_of(bands: Sequence[Band], size: float) -> list[Span]:
    """The columns of these bands, without gaps that are seldom wide and columns that are seldom filled."""
    columns = spans_of((piece for band in bands for piece in band.pieces), MIN_COLUMN_GAP * size)
    while len(columns) > 1:
        weak = next((n for n in range(len(columns) - 1) if not _separates(columns, n, bands, size)), None)
        if weak is None:
            weak = _find_gap_beside_empty(columns, bands)
        if weak is None:
            break
        columns[weak : weak + 2] = [(columns[weak][0], columns[weak + 1][1])]
    return columns


def _separates(columns: Sequence[Span], n: int, bands: Sequence[Band], size: float) -> bool:
    """Whether the gap after column `n` is wide in most bands that have words on both of its sides."""
    middle = (columns[n][1] + columns[n + 1][0]) / 2
    wide = count = 0
    for band in bands:
        left = max((piece.x1 for piece in band.pieces if piece.x1 <= middle), default=None)
        right = min((piece.x0 for piece in band.pieces if piece.x0 >= middle), default=None)
        if left is not None and right is not None:
            count += 1
            wide += right - left >= WIDE_GAP * size
    return wide >= max(_MIN_WIDE * count, 1)


def _find_gap_beside_empty(columns: Sequence[Span], bands: Sequence[Band]) -> int | None:
    """The narrower gap beside a mostly empty column, by the number of the column before it."""
    for n, (x0, x1) in enumerate(columns):
        filled = sum(any(piece.x0 < x1 and piece.x1 > x0 for piece in band.pieces) for band in bands)
        if filled < max(_MIN_FILLED_LINES, _MIN_FILLED * len(bands)) and len(bands) >= _FEWEST_LINES:
            left = x0 - columns[n - 1][1] if n else float("inf")
            right = columns[n + 1][0] - x1 if n + 1 < len(columns) else float("inf")
            return n - 1 if left <= right else n
    return None


def are_aligned(place: float, other: float) -> bool:
    return abs(place - other) <= _ALIGNED


def touched_columns(piece: Piece, columns: Sequence[Span]) -> list[int]:
    """The columns that a piece overlaps, else the nearest one."""
    found = [n for n, (x0, x1) in enumerate(columns) if piece.x1 > x0 and piece.x0 < x1]
    if found:
        return found
    return [min(range(len(columns)), key=lambda n: max(columns[n][0] - piece.middle, piece.middle - columns[n][1]))]


def place_band(band: Band, columns: Sequence[Span], size: float) -> Row:
    """The words of a band by column; a piece that reaches over a gap stays whole and becomes a spanning cell."""
    row = Row([[] for _ in columns])
    for piece in band.pieces:
        touched = touched_columns(piece, columns)
        parts = [(n, [word for word in piece.words if touched_columns(word, columns)[0] == n]) for n in touched]
        parts = [(n, words) for n, words in parts if words]
        if len(touched) > 1 and not _are_apart(parts, columns, size):
            row.cells[touched[0]].append(piece)
            row.spans.append((touched[0], touched[-1] + 1))
            continue
        for n, words in parts if len(touched) > 1 else [(touched[0], piece.words)]:
            row.cells[n].append(join_pieces(words))
    return row


def _are_apart(parts: Sequence[tuple[int, Sequence[Piece]]], columns: Sequence[Span], size: float) -> bool:
    """Whether words in several columns are cells of their own: set apart or aligned there, unlike a spanning title."""
    return len(parts) > 1 and all(
        two[0].x0 - one[-1].x1 >= MIN_COLUMN_GAP * size
        or are_aligned(two[0].x0, columns[m][0])
        or are_aligned(one[-1].x1, columns[n][1])
        for (n, one), (m, two) in itertools.pairwise(parts)
    )


def place_head(band: Band, columns: Sequence[Span], below: Row | None) -> Row:
    """The row of a band above the table: titles over groups of columns, or the first line of the columns' names.

    `below` is the row right below it, None where there is space between; names are aligned with it.
    """
    row = Row([[] for _ in columns])
    ordered = sorted(band.pieces, key=lambda piece: piece.x0)
    groups = _equal_groups(ordered, columns) if below is None else _find_own_columns(ordered, columns, below)
    low = 1
    for number, piece in enumerate(ordered):
        touched = touched_columns(piece, columns)
        first, last = touched[0], touched[-1] + 1
        spans = [columns[first], *((p.x0, p.x1) for p in below.cells[first])] if below else []
        if groups:
            first, last = groups[number]
        elif last - first > 1 or not _is_aligned(piece, spans):
            high = touched_columns(ordered[number + 1], columns)[0] if number + 1 < len(ordered) else len(columns)
            first, last = _find_covered(piece, columns, low, max(high, last))
        row.cells[first].append(piece)
        if last - first > 1:
            row.spans.append((first, last))
        low = last
    return row


def _equal_groups(pieces: Sequence[Piece], columns: Sequence[Span]) -> list[tuple[int, int]] | None:
    """The last columns in groups of equal size, one for each title, if every title is over the middle of its group."""
    if len(pieces) < 2:
        return None
    for size in range((len(columns) - 1) // len(pieces), 1, -1):
        start = len(columns) - size * len(pieces)
        groups = [(start + size * n, start + size * (n + 1)) for n in range(len(pieces))]
        if all(
            _is_centred(piece, columns[first][0], columns[last - 1][1])
            for piece, (first, last) in zip(pieces, groups, strict=True)
        ):
            return groups
    return None


def settle_names(row: Row, columns: Sequence[Span], below: Row) -> Row:
    """The row with names that reach over a neighbouring column in the columns with which they are aligned."""
    pieces = sorted(row.pieces, key=lambda piece: piece.x0)
    own = _find_own_columns(pieces, columns, below) if row.spans else None
    if own is None:
        return row
    settled = Row([[] for _ in columns])
    for piece, (column, _) in zip(pieces, own, strict=True):
        settled.cells[column].append(piece)
    return settled


def _find_own_columns(pieces: Sequence[Piece], columns: Sequence[Span], below: Row) -> list[tuple[int, int]] | None:
    """The neighbouring columns with which several pieces are aligned one by one, although they reach over others."""
    found = []
    for piece in pieces:
        aligned = [
            n
            for n in touched_columns(piece, columns)
            if _is_aligned(piece, [columns[n], *((cell.x0, cell.x1) for cell in below.cells[n])])
        ]
        found += [(n, n + 1) for n in aligned[:1]]
    neighbours = all(one[1] == two[0] for one, two in itertools.pairwise(found))
    return found if len(found) == len(pieces) > 1 and neighbours else None


def _is_centred(piece: Piece, x0: float, x1: float) -> bool:
    return abs(piece.middle - (x0 + x1) / 2) <= _CENTRED * (x1 - x0)


def _is_aligned(piece: Piece, spans: Sequence[Span]) -> bool:
    return any(
        are_aligned(piece.x0, x0) or are_aligned(piece.x1, x1) or are_aligned(piece.middle, (x0 + x1) / 2)
        for x0, x1 in spans
    )


def _find_covered(piece: Piece, columns: Sequence[Span], low: int, high: int) -> tuple[int, int]:
    """The two or more of the columns [low, high) whose common middle is nearest to that of the piece."""
    touched = touched_columns(piece, columns)
    ranges = [
        (first, last)
        for first in range(low, touched[0] + 1)
        for last in range(max(first + 2, touched[-1] + 1), high + 1)
    ]

    def distance(covered: tuple[int, int]) -> tuple[int, int]:
        first, last = covered
        middle = (columns[first][0] + columns[last - 1][1]) / 2
        return round(abs(middle - piece.middle) / _MIDDLE_STEP), last - first

    return min(ranges, key=distance, default=(touched[0], touched[-1] + 1))


def find_alignment(rows: Sequence[Row], column: int) -> Alignment | None:
    """The place where most cells of a column begin, end or have their middle; None without one."""
    boxes = [
        (min(piece.x0 for piece in row.cells[column]), max(piece.x1 for piece in row.cells[column]))
        for row in rows
        if row.cells[column] and not any(first <= column < last for first, last in row.spans)
    ]
    needed = max(2, 1 + _MIN_ALIGNED * (len(boxes) - 1))
    sides: dict[Literal["left", "right", "middle"], list[float]] = {
        "left": [x0 for x0, _ in boxes],
        "right": [x1 for _, x1 in boxes],
        "middle": [(x0 + x1) / 2 for x0, x1 in boxes],
    }
    for side, places in sides.items():
        hanging = _HANGING if side == "right" else 0.0
        for place in places:
            near = [other for other in places if are_aligned(other, place)]
            if len(near) + sum(_ALIGNED < other - place <= hanging for other in places) >= needed:
                return side, statistics.median(near)
    return None


def find_borders(
    columns: Sequence[Span], places: Sequence[Alignment | None], rules: Sequence[Rule]
) -> tuple[float, ...]:
    """The places where columns begin, and where the last one ends, as independent of the words on them as possible.

    The end of the last column is missing where neither a rule nor aligned words mark it.
    """
    borders = [rules[0].start if rules else columns[0][0]]
    for (left, right), (before, after) in zip(itertools.pairwise(columns), itertools.pairwise(places), strict=True):
        if after and after[0] == "left":
            borders.append(after[1])
        elif before and before[0] == "right":
            borders.append(before[1])
        else:
            borders.append((left[1] + right[0]) / 2)
    last = places[-1]
    if rules:
        borders.append(rules[0].end)
    elif last and last[0] == "right":
        borders.append(last[1])
    return tuple(borders)
