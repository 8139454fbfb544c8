"""Columns of words: where lines leave the same gaps free, and what of a line is in which column."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal

from functions.core.extraction.pdf.tables.glyphs import WIDE, Band, Piece, join_pieces
from functions.core.extraction.pdf.tables.rows import Row
from functions.core.extraction.pdf.tables.ruling_lines import Rule

Span = tuple[float, float]
"""Where something begins and ends across the page."""

Alignment = tuple[Literal["left", "right", "middle"], float]
"""Which side of the cells of a column is at one place, and where."""

GAP = 0.5
"""The least gap between columns, by the size of the font; in most lines it is wider."""

_ALIGNED = 1.5
_MAX_OVERLONG = 6
_NEAR = 3.0


def find_columns(bands: Sequence[Band], size: float) -> list[Span]:
    """Where words stand in most bands; names above columns, and a few long cells, may reach over the gaps."""
    columns = _columns_of(bands, size)
    counts = sorted(len(spans_of(band.pieces, WIDE * size)) for band in bands)
    if len(bands) < 4 or len(columns) >= counts[-1 - len(counts) // 5]:
        return columns
    widest = sorted(range(len(bands)), key=lambda n: (len(bands[n].pieces), -max(p.x1 - p.x0 for p in bands[n].pieces)))
    left_out = [widest[:count] for count in range(1, min(len(bands) // 5, _MAX_OVERLONG) + 1)]
    for numbers in [[0], *left_out]:
        found = _columns_of([band for n, band in enumerate(bands) if n not in numbers], size)
        columns = found if len(found) > len(columns) else columns
    return columns


def merge_spans(spans: Iterable[Span], gap: float) -> list[Span]:
    """The spans from left to right, with those less than `gap` apart as one."""
    merged: list[Span] = []
    for x0, x1 in sorted(spans):
        if merged and x0 - merged[-1][1] < gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], x1))
        else:
            merged.append((x0, x1))
    return merged


def spans_of(pieces: Iterable[Piece], gap: float) -> list[Span]:
    """Where pieces stand across the page, with everything less than `gap` apart as one."""
    return merge_spans(((piece.x0, piece.x1) for piece in pieces), gap)


def _columns_of(bands: Sequence[Band], size: float) -> list[Span]:
    """The columns of these bands; gaps that are seldom wide, and columns that are seldom filled, are none."""
    columns = spans_of((piece for band in bands for piece in band.pieces), GAP * size)
    while len(columns) > 1:
        weak = next((n for n in range(len(columns) - 1) if not _is_gap(columns, n, bands, size)), None)
        if weak is None:
            weak = _gap_of_empty(columns, bands)
        if weak is None:
            break
        columns[weak : weak + 2] = [(columns[weak][0], columns[weak + 1][1])]
    return columns


def _is_gap(columns: Sequence[Span], n: int, bands: Sequence[Band], size: float) -> bool:
    middle = (columns[n][1] + columns[n + 1][0]) / 2
    wide = seen = 0
    for band in bands:
        left = max((piece.x1 for piece in band.pieces if piece.x1 <= middle), default=None)
        right = min((piece.x0 for piece in band.pieces if piece.x0 >= middle), default=None)
        if left is not None and right is not None:
            seen += 1
            wide += right - left >= WIDE * size
    return wide >= max(0.5 * seen, 1)


def _gap_of_empty(columns: Sequence[Span], bands: Sequence[Band]) -> int | None:
    """The gap to close beside a column that hardly any band fills."""
    for n, (x0, x1) in enumerate(columns):
        filled = sum(any(piece.x0 < x1 and piece.x1 > x0 for piece in band.pieces) for band in bands)
        if filled < max(2, 0.12 * len(bands)) and len(bands) > 3:
            left = x0 - columns[n - 1][1] if n else float("inf")
            right = columns[n + 1][0] - x1 if n + 1 < len(columns) else float("inf")
            return n - 1 if left <= right else n
    return None


def is_at(place: float, other: float) -> bool:
    return abs(place - other) <= _ALIGNED


def touched_columns(piece: Piece, columns: Sequence[Span]) -> list[int]:
    """The columns a piece stands in, or the nearest."""
    found = [n for n, (x0, x1) in enumerate(columns) if piece.x1 > x0 and piece.x0 < x1]
    if found:
        return found
    return [min(range(len(columns)), key=lambda n: max(columns[n][0] - piece.middle, piece.middle - columns[n][1]))]


def place_band(band: Band, columns: Sequence[Span], size: float) -> Row:
    """The words of a band by column; a piece that bridges a gap stays whole, and spans."""
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
    """Whether words of several columns stand apart, or are lined up there; a title over columns is neither."""
    return len(parts) > 1 and all(
        two[0].x0 - one[-1].x1 >= GAP * size or is_at(two[0].x0, columns[m][0]) or is_at(one[-1].x1, columns[n][1])
        for (n, one), (m, two) in itertools.pairwise(parts)
    )


def place_head(band: Band, columns: Sequence[Span], below: Row | None) -> Row:
    """Titles over columns; or, where they line up with the row right below, the first line of its names."""
    row = Row([[] for _ in columns])
    ordered = sorted(band.pieces, key=lambda piece: piece.x0)
    groups = _equal_groups(ordered, columns) if below is None else None
    low = 1
    for number, piece in enumerate(ordered):
        touched = touched_columns(piece, columns)
        first, last = touched[0], touched[-1] + 1
        spans = [columns[first], *((p.x0, p.x1) for p in below.cells[first])] if below else []
        if groups:
            first, last = groups[number]
        elif last - first > 1 or not _is_over(piece, spans):
            high = touched_columns(ordered[number + 1], columns)[0] if number + 1 < len(ordered) else len(columns)
            first, last = _covered(piece, columns, low, max(high, last))
        row.cells[first].append(piece)
        if last - first > 1:
            row.spans.append((first, last))
        low = last
    return row


def _equal_groups(pieces: Sequence[Piece], columns: Sequence[Span]) -> list[tuple[int, int]] | None:
    """The last columns in as many groups of one size as there are titles, each over the middle of its group."""
    if len(pieces) < 2:
        return None
    for size in range((len(columns) - 1) // len(pieces), 1, -1):
        start = len(columns) - size * len(pieces)
        groups = [(start + size * n, start + size * (n + 1)) for n in range(len(pieces))]
        if all(
            _is_amid(piece, columns[first][0], columns[last - 1][1])
            for piece, (first, last) in zip(pieces, groups, strict=True)
        ):
            return groups
    return None


def _is_amid(piece: Piece, x0: float, x1: float) -> bool:
    return abs(piece.middle - (x0 + x1) / 2) <= 0.2 * (x1 - x0)


def _is_over(piece: Piece, spans: Sequence[Span]) -> bool:
    return any(is_at(piece.x0, x0) or is_at(piece.x1, x1) or is_at(piece.middle, (x0 + x1) / 2) for x0, x1 in spans)


def _covered(piece: Piece, columns: Sequence[Span], low: int, high: int) -> tuple[int, int]:
    """The range of several of the columns [low, high) whose middle is nearest to that of the piece."""
    touched = touched_columns(piece, columns)
    ranges = [
        (first, last)
        for first in range(low, touched[0] + 1)
        for last in range(max(first + 2, touched[-1] + 1), high + 1)
    ]

    def distance(covered: tuple[int, int]) -> tuple[int, int]:
        first, last = covered
        middle = (columns[first][0] + columns[last - 1][1]) / 2
        return round(abs(middle - piece.middle) / _NEAR), last - first

    return min(ranges, key=distance, default=(touched[0], touched[-1] + 1))


def find_alignment(rows: Sequence[Row], column: int) -> Alignment | None:
    """Where most cells of a column begin, end, or have their middle; None when nowhere."""
    boxes = [
        (min(piece.x0 for piece in row.cells[column]), max(piece.x1 for piece in row.cells[column]))
        for row in rows
        if row.cells[column] and not any(first <= column < last for first, last in row.spans)
    ]
    needed = max(2, 1 + 0.7 * (len(boxes) - 1))
    sides: dict[Literal["left", "right", "middle"], list[float]] = {
        "left": [x0 for x0, _ in boxes],
        "right": [x1 for _, x1 in boxes],
        "middle": [(x0 + x1) / 2 for x0, x1 in boxes],
    }
    for side, places in sides.items():
        for place in places:
            near = [other for other in places if is_at(other, place)]
            if len(near) >= needed:
                return side, statistics.median(near)
    return None


def find_borders(
    columns: Sequence[Span], places: Sequence[Alignment | None], rules: Sequence[Rule]
) -> tuple[float, ...]:
    """Where columns begin and end, at places that depend little on how long the words are on this page.

    The last is missing where neither a rule nor aligned words mark it.
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
