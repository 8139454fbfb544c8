"""Puts the pieces of a page in reading order where the file has them in another: columns one after the other.

Pieces (parts of lines without a wide gap) come in the order of the file, which is right on nearly every page and then
kept. Two things are put right: columns whose lines interleave, because the file was written line by line across them,
and columns written one by one, but from right to left.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from functions.core.pdf_geometry import Box
from functions.core.text_columns import (
    FULL,
    MIN_COLUMN,
    MIN_FULL,
    MIN_ROWS,
    WIDE_GAP,
    Piece,
    are_columns,
    is_prose,
    join_pieces,
    measure_em,
    measure_width,
)

_GUTTER, _MARGIN = 0.5, 1.2
_MIN_BLOCK, _MAX_PIECES = 5, 1000
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_SENTENCE_END = re.compile(r"[.!?:;…]\W*$")

Lines = list[list[int]]
"""The numbers of the pieces of each line."""


class _Gutter(NamedTuple):
    """A gap between columns, and beside how many lines it was seen."""

    left: float
    right: float
    rows: int = 1

    def narrow(self, piece: Piece) -> _Gutter:
        if piece.left + piece.right < self.left + self.right:
            return _Gutter(max(self.left, piece.right), self.right, self.rows)
        return _Gutter(self.left, min(self.right, piece.left), self.rows)

    def is_open(self, em: float) -> bool:
        return self.right - self.left >= _GUTTER * em

    def is_crossed(self, rule: Box, em: float) -> bool:
        return rule[0] < self.left - em and rule[2] > self.right + em


def may_be_disordered(runs: Sequence[Box]) -> bool:
    """Whether, at a glance, the order of these runs of text could be wrong; true for most tables, too."""
    rows = lines = 0
    margins = (0.0, 0.0, 0.0)
    left = top = right = bottom = 0.0
    for run in runs:
        last_top, last_right, last_bottom = top, right, bottom
        left, top, right, bottom = run
        if top >= last_bottom:
            lines, margins = lines + 1, (*margins[1:], left)
        elif bottom < last_top - 3 * (bottom - top):
            if lines >= _MIN_BLOCK and right < min(margins):
                return True
            lines, margins = 1, (left, left, left)
        elif left - last_right > WIDE_GAP * (bottom - top):
            rows += 1
            if rows == MIN_ROWS:
                return True
    return False


def join_rules(rules: Iterable[Box]) -> list[Box]:
    """The level ones of these rules, those in one line and without a gap between as one."""
    joined: list[Box] = []
    level = (rule for rule in rules if rule[3] - rule[1] < 1)
    for left, _, right, at in sorted(level, key=lambda rule: (round(rule[3]), rule[0])):
        if joined and round(joined[-1][3]) == round(at) and left <= joined[-1][2] + 2:
            start, _, end, _ = joined.pop()
            joined.append((start, at, max(end, right), at))
        elif right > left:
            joined.append((left, at, right, at))
    return joined


def find_order(pieces: Sequence[Piece], rules: Sequence[Box] = ()) -> list[int] | None:
    """The pieces' numbers in reading order, or None where they stand in it or nothing is certain.

    `rules` are level lines drawn on the page; columns end where one crosses the gutter between them.
    """
    if len(pieces) > _MAX_PIECES or any(_RIGHT_TO_LEFT.search(piece.text) for piece in pieces):
        return None
    em = measure_em(pieces)
    order = list(range(len(pieces)))
    for start, end, gutters in _find_columns(pieces, em, rules):
        columns = _divide(pieces, range(start, end), gutters, em)
        prose = [is_prose(_join(pieces, lines), em) for lines in columns]
        outer = [gutter for gutter, sides in zip(gutters, itertools.pairwise(prose), strict=True) if any(sides)]
        if len(outer) < len(gutters):  # those left out are of a table within a column
            columns = _divide(pieces, range(start, end), outer, em)
        if are_columns([_join(pieces, lines) for lines in columns], em):
            order[start:end] = [number for lines in columns for line in lines for number in line]
    order = _put_left_first(pieces, order, em)
    return order if order != list(range(len(pieces))) else None


def _find_columns(pieces: Sequence[Piece], em: float, rules: Sequence[Box]) -> Iterator[tuple[int, int, list[_Gutter]]]:
    """Stretches of pieces, written from top to bottom, that stand on either side of gutters."""
    done = 0
    for start in _find_beginnings(pieces, em):
        end, gutters = _follow_gutters(pieces, start, em, rules) if start >= done else (start, [])
        if not gutters:
            continue
        while start > done and _continues(pieces[start - 1], pieces[start], gutters, em, rules):
            start -= 1
        first, last = _leave_margins(pieces, start, end, em)
        yield first, last, gutters
        done = end


def _find_beginnings(pieces: Sequence[Piece], em: float) -> list[int]:
    """The pieces that have another beside them, where lines of two columns could begin; none on most pages."""
    pairs = [
        number
        for number, (piece, beside) in enumerate(itertools.pairwise(pieces))
        if min(piece.width, beside.width) > MIN_COLUMN / 2 * em and beside.is_beside(piece, em)
    ]
    if len(pairs) < MIN_ROWS:
        return []
    gaps = {number: pieces[number].gap_to(pieces[number + 1]) for number in pairs}
    found, seen = set[int](), set[int]()
    for pair in pairs:
        if pair in seen:
            continue
        border = gaps[pair][0] + _GUTTER * em
        rows = [number for number, (left, right) in gaps.items() if left < border < right]
        seen.add(pair)
        if len(rows) >= MIN_ROWS:
            seen.update(rows)
            both = [pieces[number + side] for number in rows for side in (0, 1)]
            sides = [piece for piece in both if piece.right < border], [piece for piece in both if piece.left > border]
            fills = [_measure_evenness(side) for side in sides if any(piece.width > MIN_COLUMN * em for piece in side)]
            if len(fills) == 2 and max(fills) >= MIN_FULL and min(fills) >= MIN_FULL / 3:
                found.update(rows)
    return sorted(found)


def _measure_evenness(pieces: Sequence[Piece]) -> float:
    """The share of pieces nearly as wide as the widest."""
    widest = max(piece.width for piece in pieces)
    return sum(piece.width >= FULL * widest for piece in pieces) / len(pieces)


def _follow_gutters(pieces: Sequence[Piece], start: int, em: float, rules: Sequence[Box]) -> tuple[int, list[_Gutter]]:
    """How far down the gutters that begin beside piece `start` reach; none that was seen beside too few lines."""
    gutters: list[_Gutter] = []
    end = start + 1
    while end < len(pieces):
        above, piece = pieces[end - 1], pieces[end]
        if piece.is_beside(above, em):
            gutters = _note_gap(gutters, pieces, start, end, em)
        known = [gutter for gutter in gutters if gutter.rows >= MIN_ROWS]
        if not gutters or not _continues(above, piece, known, em, rules):
            break
        gutters = [gutter.narrow(piece) for gutter in gutters if _continues(above, piece, [gutter], em, rules)]
        end += 1
    return end, sorted(gutter for gutter in gutters if gutter.rows >= MIN_ROWS)


def _continues(above: Piece, piece: Piece, gutters: Sequence[_Gutter], em: float, rules: Sequence[Box]) -> bool:
    """Whether `piece` comes after `above` in columns apart by these gutters: not higher up, and across none of them."""
    return piece.middle >= above.middle - em and not any(
        not gutter.narrow(piece).is_open(em)
        or not gutter.narrow(above).is_open(em)
        or any(above.middle < rule[3] < piece.middle and gutter.is_crossed(rule, em) for rule in rules)
        for gutter in gutters
    )


def _note_gap(gutters: list[_Gutter], pieces: Sequence[Piece], start: int, end: int, em: float) -> list[_Gutter]:
    """Counts the gap before piece `end` for the gutters it is part of, or adds a new one."""
    gap = _Gutter(*pieces[end - 1].gap_to(pieces[end]))
    noted = [
        gutter._replace(rows=gutter.rows + 1)
        if _Gutter(max(gap.left, gutter.left), min(gap.right, gutter.right)).is_open(em)
        else gutter
        for gutter in gutters
    ]
    if noted != gutters:
        return noted
    for piece in pieces[start:end]:
        gap = gap.narrow(piece)
    return [*gutters, gap] if gap.is_open(em) else gutters


def _leave_margins(pieces: Sequence[Piece], start: int, end: int, em: float) -> tuple[int, int]:
    """Without up to two pieces at either end that stand apart, as running heads and page numbers do."""
    heads = [cut for cut in (start + 1, start + 2) if _stand_apart(pieces[start:cut], pieces[cut:end], em)]
    feet = [cut for cut in (end - 1, end - 2) if _stand_apart(pieces[start:cut], pieces[cut:end], em)]
    return (heads or [start])[-1], (feet or [end])[-1]


def _stand_apart(upper: Sequence[Piece], lower: Sequence[Piece], em: float) -> bool:
    if not upper or not lower:
        return False
    return min(piece.top for piece in lower) - max(piece.bottom for piece in upper) > _MARGIN * em


def _divide(pieces: Sequence[Piece], numbers: Iterable[int], gutters: Sequence[_Gutter], em: float) -> list[Lines]:
    """The lines of each column; pieces come in the order of the file, but those of a line from left to right."""
    columns: list[Lines] = [[] for _ in range(len(gutters) + 1)]
    for number in numbers:
        piece = pieces[number]
        lines = columns[sum(gutter.left + gutter.right < piece.left + piece.right for gutter in gutters)]
        if lines and abs(pieces[lines[-1][-1]].middle - piece.middle) < 0.5 * em:
            lines[-1].append(number)
            lines[-1].sort(key=lambda other: pieces[other].left)
        else:
            lines.append([number])
    return columns


def _join(pieces: Sequence[Piece], lines: Lines) -> list[Piece]:
    return [join_pieces(pieces[number] for number in line) for line in lines]


def _put_left_first(pieces: Sequence[Piece], order: list[int], em: float) -> list[int]:
    """Swaps columns written one by one, but the right one first, where there is no doubt that they are columns."""
    at = 1
    while at < len(order):
        above, piece = pieces[order[at - 1]], pieces[order[at]]
        if piece.right < above.left and piece.bottom < above.top - 2 * em:
            first, end = _surround(pieces, order, at, em)
            left, right = order[at:end], order[first:at]
            if _are_twins(pieces, left, right, em) and not _is_mixed(pieces, left) and not _is_mixed(pieces, right):
                order = [*order[:first], *left, *right, *order[end:]]
                at = max(0, first - 1)  # there may be one more to the left of this one
        at += 1
    return order


def _surround(pieces: Sequence[Piece], order: Sequence[int], at: int, em: float) -> tuple[int, int]:
    """Where the column that ends before `at` begins, and where the one that begins there ends."""
    border = min(pieces[number].left for number in order[max(0, at - 3) : at]) - _GUTTER * em
    end = at + 1
    while end < len(order) and _goes_down(pieces[order[end - 1]], pieces[order[end]], em):
        if pieces[order[end]].right > border:
            break
        end += 1
    border = max(pieces[number].right for number in order[at:end]) + _GUTTER * em
    first = at - 1
    while first > 0 and _goes_down(pieces[order[first - 1]], pieces[order[first]], em):
        if pieces[order[first - 1]].left < border:
            break
        first -= 1
    return first, end


def _goes_down(above: Piece, piece: Piece, em: float) -> bool:
    return piece.middle >= above.middle - 0.5 * em and piece.top - above.bottom < 3 * em


def _are_twins(pieces: Sequence[Piece], left: Sequence[int], right: Sequence[int], em: float) -> bool:
    """Whether two blocks are columns of one text: prose, equally wide, equally high up, and no sentence against it."""
    columns = [_join(pieces, _divide(pieces, numbers, (), em)[0]) for numbers in (left, right)]
    if min(map(len, columns)) < _MIN_BLOCK or not all(is_prose(lines, em) for lines in columns):
        return False
    widths = [measure_width(lines) for lines in columns]
    tops = [min(line.top for line in lines) for lines in columns]
    runs_on = columns[0][0].text[:1].islower() and not _SENTENCE_END.search(columns[1][-1].text)
    return max(widths) <= 1.2 * min(widths) and abs(tops[0] - tops[1]) <= 2.5 * em and not runs_on


def _is_mixed(pieces: Sequence[Piece], block: Sequence[int]) -> bool:
    """Whether a piece of something else stands within the bounds of a block."""
    bounds = join_pieces(pieces[number] for number in block)
    return any(piece.overlaps(bounds) for number, piece in enumerate(pieces) if number not in block)
