"""Puts the pieces of a page in reading order, columns one after the other, where the file has another order.

A piece is a part of a line without a wide gap. Pieces come in the order of the file, which is right on nearly every
page and then kept. Two kinds of disorder are corrected: columns whose lines alternate, because the file was written
line by line across them, and columns written one by one but from right to left. Boxes are in points, y down, where
lines are horizontal; an em is nearly the size of the font.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from functions.core.extraction.pdf.geometry import Box
from functions.core.extraction.pdf.line_pieces import (
    FULL,
    MIN_COLUMN,
    MIN_FULL,
    MIN_FULL_OF_OTHER,
    MIN_ROWS,
    WIDE_GAP,
    Piece,
    are_columns,
    is_prose,
    join_pieces,
    measure_em,
    measure_width,
)

_GUTTER = 0.5
"""Em: the least width that a gap between columns keeps beside all of their lines."""
_MARGIN = 1.2
"""Em: running heads and page numbers are set off from the columns by more."""
_MIN_BLOCK = 5
"""The fewest lines of a column that is moved as a whole."""
_MAX_PIECES = 1000
"""A page of more pieces is a drawing or a large table, and comparing them would take long."""
_QUICK_CLIMB = 3
"""Heights: in the quick check, a run this far above the one before it may begin another column."""
_RULE_GAP = 2.0
"""Points: rules in one line with a smaller gap between them are one."""
_THICKEST_RULE = 1.0
"""Points: a higher rectangle is no horizontal rule."""
_SAME_LINE = 0.5
"""Em: pieces whose middles are less than this apart in height are in one line."""
_CLIMB = 2
"""Em: a piece left of the one before it, and this far above it, begins another column."""
_LARGEST_PITCH = 3
"""Em: the space below a line from which on the next line is not of the same column."""
_EQUALLY_WIDE = 1.2
"""Two columns of one text: the wider is at most so many times as wide as the other."""
_EQUALLY_HIGH = 2.5
"""Em: the tops of two columns of one text are at most this far apart."""
_MIN_LINE = MIN_COLUMN / 2
"""Em: the least width of both pieces where columns may begin; last lines of paragraphs are narrower than columns."""
_LINES_AT_BORDER = 3
"""The last lines of a column from which its left border is taken, because lines above may be of something else."""
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_STOP_AT_LINE_END = re.compile(r"[.!?:;…]\W*$")

Lines = list[list[int]]
"""The numbers of the pieces of each line."""


class _Gutter(NamedTuple):
    """A gap between columns, in points across the page, and the number of lines that were seen on both sides of it."""

    left: float
    right: float
    rows: int = 1

    def narrow(self, piece: Piece) -> _Gutter:
        """The part of the gap that `piece`, on one of its sides, leaves free."""
        if piece.left + piece.right < self.left + self.right:
            return _Gutter(max(self.left, piece.right), self.right, self.rows)
        return _Gutter(self.left, min(self.right, piece.left), self.rows)

    def is_open(self, em: float) -> bool:
        return self.right - self.left >= _GUTTER * em

    def is_crossed(self, rule: Box, em: float) -> bool:
        return rule[0] < self.left - em and rule[2] > self.right + em


def may_be_disordered(runs: Sequence[Box]) -> bool:
    """Whether the order of these runs of text could be wrong: a quick check, which is also true for most tables."""
    rows = lines = 0
    margins = (0.0, 0.0, 0.0)
    left = top = right = bottom = 0.0
    for run in runs:
        last_top, last_right, last_bottom = top, right, bottom
        left, top, right, bottom = run
        if top >= last_bottom:
            lines, margins = lines + 1, (*margins[1:], left)
        elif bottom < last_top - _QUICK_CLIMB * (bottom - top):
            if lines >= _MIN_BLOCK and right < min(margins):
                return True
            lines, margins = 1, (left, left, left)
        elif left - last_right > WIDE_GAP * (bottom - top):
            rows += 1
            if rows == MIN_ROWS:
                return True
    return False


def join_rules(rules: Iterable[Box]) -> list[Box]:
    """The horizontal rules, of which those in one line without a gap between them become one."""
    joined: list[Box] = []
    horizontal = (rule for rule in rules if rule[3] - rule[1] < _THICKEST_RULE)
    for left, _, right, at in sorted(horizontal, key=lambda rule: (round(rule[3]), rule[0])):
        if joined and round(joined[-1][3]) == round(at) and left <= joined[-1][2] + _RULE_GAP:
            start, _, end, _ = joined.pop()
            joined.append((start, at, max(end, right), at))
        elif right > left:
            joined.append((left, at, right, at))
    return joined


def find_order(pieces: Sequence[Piece], rules: Sequence[Box] = ()) -> list[int] | None:
    """The pieces' numbers in reading order; None if they are in it already or another order is not certain.

    `rules` are horizontal lines drawn on the page; columns end where a rule crosses the gutter between them.
    """
    if len(pieces) > _MAX_PIECES or any(_RIGHT_TO_LEFT.search(piece.text) for piece in pieces):
        return None
    em = measure_em(pieces)
    order = list(range(len(pieces)))
    for start, end, gutters in _find_columns(pieces, em, rules):
        columns = _divide(pieces, range(start, end), gutters, em)
        prose = [is_prose(_join(pieces, lines), em) for lines in columns]
        outer = [gutter for gutter, sides in zip(gutters, itertools.pairwise(prose), strict=True) if any(sides)]
        if len(outer) < len(gutters):  # the other gutters are those of a table within a column
            columns = _divide(pieces, range(start, end), outer, em)
        if are_columns([_join(pieces, lines) for lines in columns], em):
            order[start:end] = [number for lines in columns for line in lines for number in line]
    order = _put_left_first(pieces, order, em)
    return order if order != list(range(len(pieces))) else None


def _find_columns(pieces: Sequence[Piece], em: float, rules: Sequence[Box]) -> Iterator[tuple[int, int, list[_Gutter]]]:
    """Stretches [first, after the last) of pieces in columns, written line by line, with the gutters between them."""
    done = 0
    for start in _find_beginnings(pieces, em):
        end, gutters = _follow_gutters(pieces, start, em, rules) if start >= done else (start, [])
        if not gutters:
            continue
        while start > done and _continues(pieces[start - 1], pieces[start], gutters, em, rules):
            start -= 1
        first, last = _drop_margins(pieces, start, end, em)
        yield first, last, gutters
        done = end


def _find_beginnings(pieces: Sequence[Piece], em: float) -> list[int]:
    """The pieces with another piece beside them, at which two columns could begin; none on most pages."""
    pairs = [
        number
        for number, (piece, beside) in enumerate(itertools.pairwise(pieces))
        if min(piece.width, beside.width) > _MIN_LINE * em and beside.is_beside(piece, em)
    ]
    if len(pairs) < MIN_ROWS:
        return []
    gaps = {number: pieces[number].gap_to(pieces[number + 1]) for number in pairs}
    found, known = set[int](), set[int]()
    for pair in pairs:
        if pair in known:
            continue
        border = gaps[pair][0] + _GUTTER * em
        rows = [number for number, (left, right) in gaps.items() if left < border < right]
        known.add(pair)
        if len(rows) >= MIN_ROWS:
            known.update(rows)
            both = [pieces[number + side] for number in rows for side in (0, 1)]
            sides = [piece for piece in both if piece.right < border], [piece for piece in both if piece.left > border]
            fills = [_measure_evenness(side) for side in sides if any(piece.width > MIN_COLUMN * em for piece in side)]
            if len(fills) == 2 and max(fills) >= MIN_FULL and min(fills) >= MIN_FULL_OF_OTHER:
                found.update(rows)
    return sorted(found)


def _measure_evenness(pieces: Sequence[Piece]) -> float:
    """The share of pieces that are nearly as wide as the widest one."""
    widest = max(piece.width for piece in pieces)
    return sum(piece.width >= FULL * widest for piece in pieces) / len(pieces)


def _follow_gutters(pieces: Sequence[Piece], start: int, em: float, rules: Sequence[Box]) -> tuple[int, list[_Gutter]]:
    """The piece after the last that gutters beginning at piece `start` reach, and those seen beside enough lines."""
    gutters: list[_Gutter] = []
    end = start + 1
    while end < len(pieces):
        above, piece = pieces[end - 1], pieces[end]
        if piece.is_beside(above, em):
            gutters = _count_gap(gutters, pieces, start, end, em)
        known = [gutter for gutter in gutters if gutter.rows >= MIN_ROWS]
        if not gutters or not _continues(above, piece, known, em, rules):
            break
        gutters = [gutter.narrow(piece) for gutter in gutters if _continues(above, piece, [gutter], em, rules)]
        end += 1
    return end, sorted(gutter for gutter in gutters if gutter.rows >= MIN_ROWS)


def _continues(above: Piece, piece: Piece, gutters: Sequence[_Gutter], em: float, rules: Sequence[Box]) -> bool:
    """Whether `piece` follows `above` in columns separated by these gutters: not higher up and across no gutter."""
    return piece.middle >= above.middle - em and not any(
        not gutter.narrow(piece).is_open(em)
        or not gutter.narrow(above).is_open(em)
        or any(above.middle < rule[3] < piece.middle and gutter.is_crossed(rule, em) for rule in rules)
        for gutter in gutters
    )


def _count_gap(gutters: list[_Gutter], pieces: Sequence[Piece], start: int, end: int, em: float) -> list[_Gutter]:
    """Adds one line to the gutters that contain the gap before piece `end`, or else adds that gap as a gutter."""
    gap = _Gutter(*pieces[end - 1].gap_to(pieces[end]))
    counted = [
        gutter._replace(rows=gutter.rows + 1)
        if _Gutter(max(gap.left, gutter.left), min(gap.right, gutter.right)).is_open(em)
        else gutter
        for gutter in gutters
    ]
    if counted != gutters:
        return counted
    for piece in pieces[start:end]:
        gap = gap.narrow(piece)
    return [*gutters, gap] if gap.is_open(em) else gutters


def _drop_margins(pieces: Sequence[Piece], start: int, end: int, em: float) -> tuple[int, int]:
    """The stretch without up to two pieces at either end that are set off, as running heads and page numbers are."""
    heads = [cut for cut in (start + 1, start + 2) if _are_set_off(pieces[start:cut], pieces[cut:end], em)]
    feet = [cut for cut in (end - 1, end - 2) if _are_set_off(pieces[start:cut], pieces[cut:end], em)]
    return (heads or [start])[-1], (feet or [end])[-1]


def _are_set_off(upper: Sequence[Piece], lower: Sequence[Piece], em: float) -> bool:
    if not upper or not lower:
        return False
    return min(piece.top for piece in lower) - max(piece.bottom for piece in upper) > _MARGIN * em


def _divide(pieces: Sequence[Piece], numbers: Iterable[int], gutters: Sequence[_Gutter], em: float) -> list[Lines]:
    """The lines of each column in the order of the file, with the pieces of each line from left to right."""
    columns: list[Lines] = [[] for _ in range(len(gutters) + 1)]
    for number in numbers:
        piece = pieces[number]
        lines = columns[sum(gutter.left + gutter.right < piece.left + piece.right for gutter in gutters)]
        if lines and abs(pieces[lines[-1][-1]].middle - piece.middle) < _SAME_LINE * em:
            lines[-1].append(number)
            lines[-1].sort(key=lambda other: pieces[other].left)
        else:
            lines.append([number])
    return columns


def _join(pieces: Sequence[Piece], lines: Lines) -> list[Piece]:
    return [join_pieces(pieces[number] for number in line) for line in lines]


def _put_left_first(pieces: Sequence[Piece], order: list[int], em: float) -> list[int]:
    """Swaps columns written one by one but the right one first, only if they certainly are columns."""
    at = 1
    while at < len(order):
        above, piece = pieces[order[at - 1]], pieces[order[at]]
        if piece.right < above.left and piece.bottom < above.top - _CLIMB * em:
            first, end = _find_neighbours(pieces, order, at, em)
            left, right = order[at:end], order[first:at]
            if _are_one_text(pieces, left, right, em) and not _is_mixed(pieces, left) and not _is_mixed(pieces, right):
                order = [*order[:first], *left, *right, *order[end:]]
                at = max(0, first - 1)  # another column may be to the left of this one
        at += 1
    return order


def _find_neighbours(pieces: Sequence[Piece], order: Sequence[int], at: int, em: float) -> tuple[int, int]:
    """The beginning of the column that ends before `at`, and the end of the column that begins there."""
    border = min(pieces[number].left for number in order[max(0, at - _LINES_AT_BORDER) : at]) - _GUTTER * em
    end = at + 1
    while end < len(order) and _follows_below(pieces[order[end - 1]], pieces[order[end]], em):
        if pieces[order[end]].right > border:
            break
        end += 1
    border = max(pieces[number].right for number in order[at:end]) + _GUTTER * em
    first = at - 1
    while first > 0 and _follows_below(pieces[order[first - 1]], pieces[order[first]], em):
        if pieces[order[first - 1]].left < border:
            break
        first -= 1
    return first, end


def _follows_below(above: Piece, piece: Piece, em: float) -> bool:
    return piece.middle >= above.middle - _SAME_LINE * em and piece.top - above.bottom < _LARGEST_PITCH * em


def _are_one_text(pieces: Sequence[Piece], left: Sequence[int], right: Sequence[int], em: float) -> bool:
    """Whether two blocks are columns of one text: prose, equally wide, equally high up, and not continued leftwards.

    A sentence that runs on from the end of the right block to the beginning of the left one proves the file's order.
    """
    columns = [_join(pieces, _divide(pieces, numbers, (), em)[0]) for numbers in (left, right)]
    if min(map(len, columns)) < _MIN_BLOCK or not all(is_prose(lines, em) for lines in columns):
        return False
    widths = [measure_width(lines) for lines in columns]
    tops = [min(line.top for line in lines) for lines in columns]
    runs_on = columns[0][0].text[:1].islower() and not _STOP_AT_LINE_END.search(columns[1][-1].text)
    alike = max(widths) <= _EQUALLY_WIDE * min(widths) and abs(tops[0] - tops[1]) <= _EQUALLY_HIGH * em
    return alike and not runs_on


def _is_mixed(pieces: Sequence[Piece], block: Sequence[int]) -> bool:
    """Whether the bounds of a block contain a piece that is not part of it."""
    bounds = join_pieces(pieces[number] for number in block)
    return any(piece.overlaps(bounds) for number, piece in enumerate(pieces) if number not in block)
