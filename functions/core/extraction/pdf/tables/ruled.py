"""Divides the boxes of ruled tables where they hold several rows or columns of text.

Lengths in em are multiples of the font size, places and other lengths are in points.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence

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
from functions.core.extraction.pdf.tables.grids import Grid, GridRow
from functions.core.extraction.pdf.tables.rows import ReadRow, Row, is_number, join_rows

_SAME_LINE = 0.5
"""Em: base lines are rounded to multiples of this to tell lines apart."""
_WORD_GAP = 0.5
"""Em: the least white that a border between two columns needs in each line."""
_MAX_CUT = 0.1
"""The largest share of words that lines of a table may run through."""
_MIN_FILLED, _MIN_WIDTH = 0.6, 1.2
"""A column between two rules is divided only into columns that fill this share of its lines and are so many em wide."""
_FEWEST_WORDS = 4
"""A row of boxes with fewer words is not divided into lines."""
_MIN_CELLS = 0.5
"""The share of a row's filled boxes that a line must fill to be a row of its own, or of the columns that a box covers
to be divided; at least two."""
_MIN_ROWS = 0.7
"""The share of lines that must be such rows for all lines to be rows."""
_SURELY_ROWS = 4
"""So many lines are rows even if some have no first cell; a figure over a margin of error makes fewer."""
_MIN_NUMBERS, _MIN_EARLY = 0.5, 0.6
"""Lines are rows if this share of them has numbers below numbers, or of their cells ends well before the border."""


def divide_boxes(row: GridRow, borders: Sequence[float], words: Sequence[Piece]) -> GridRow:
    """The row with boxes over several columns divided, if their one line of words leaves wide gaps at the borders.

    Some tables have lines between the columns of their first and last rows only.
    """
    divided = GridRow([*row.cells], [], row.continued)
    for first, last in row.spans:
        parts = _place_pieces(row.cells[first], borders, first, last, words)
        if len(parts) < max(2, _MIN_CELLS * (last - first)):
            divided.spans.append((first, last))
            continue
        divided.cells[first] = []
        for (start, end), part in parts:
            divided.cells[start] = part
            divided.spans += [(start, end)] if end - start > 1 else []
    return divided


def _place_pieces(
    cell: Sequence[int], borders: Sequence[float], first: int, last: int, words: Sequence[Piece]
) -> list[tuple[tuple[int, int], list[int]]]:
    """The pieces of the one line in a box over columns [first, last), each with its columns; none if two share one."""
    places = set(cell)
    own = [word for word in words if word.start in places]
    size = measure_font_size(own)
    lines = [join_words(line, size) for line in _group_lines(own, size)]
    if len(lines) != 1:
        return []
    spans = [
        (bisect_right(borders, piece.x0, first + 1, last) - 1, bisect_right(borders, piece.x1, first + 1, last))
        for piece in lines[0]
    ]
    if any(one[1] > two[0] for one, two in itertools.pairwise(spans)):
        return []
    parts = [
        [at for word in sorted(piece.words) for at in range(word.start, word.end) if at in places] for piece in lines[0]
    ]
    return list(zip(spans, parts, strict=True))


def cuts_words(rows: Sequence[GridRow], words: Sequence[Piece]) -> bool:
    """Whether the lines of a grid run through words, as those of charts do."""
    column_of = {at: n for row in rows for n, cell in enumerate(row.cells) for at in cell}
    ends = [(column_of.get(word.start), column_of.get(word.end - 1)) for word in words]
    own = [(first, last) for first, last in ends if first is not None and last is not None]
    return sum(first != last for first, last in own) > _MAX_CUT * len(own)


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
    split = GridRow([[] for _ in new[1:]], [], [new.index(old[n]) for n in row.continued])
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
    split = [GridRow([[] for _ in row.cells], [], row.continued) for _ in joined]
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
