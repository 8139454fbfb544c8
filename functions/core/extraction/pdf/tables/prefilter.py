"""Checks cheaply, before any character is measured, whether lines of a page may be arranged in columns.

Heights are those of lines as drawn; lengths in heights are multiples of them.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from functions.core.extraction.pdf.geometry import Box, Frame, Rectangle
from functions.core.extraction.pdf.tables.glyphs import CAP_HEIGHT

if TYPE_CHECKING:
    import pypdfium2

_NEIGHBOURS = 8
"""How many successive lines are looked at together: tables have a wide gap in several of them."""
_TALLEST_LINE = 40.0
"""Points: lines are taken for no taller, so that a run with a huge box does not hide gaps."""
_SPARSE = 0.78
"""Heights per character: a line that is wider has a wide gap in it."""
_SPARSE_TO_SIZE = 0.85
"""Em per character: the same, with the font size as the heights of capitals give it."""
_SAME_LINE = 0.2
"""Heights: runs that share more than this, from top to bottom, are of one line."""
_HIGHEST_NEXT_CELL = 8.0
"""Heights: how far above the line before it a run may begin as the next cell of a row rather than the next column."""
_FULL_LINES = 2
"""How many of eight successive lines with several wide gaps each are enough: names above a row of figures."""
_SAME_MIDDLE = 0.5
"""Heights: runs whose middles are this near to each other are on one line of the page."""
_SCATTERED_LINES = 4
"""How many of eight successive lines must have runs far apart for a table that is not written row by row."""
_MAX_COVERED = 0.65
"""The largest share of such a line that its runs cover."""
_NEAR_IN_FILE = 3
"""Runs up to so many places apart in the file are written as one row."""
_LINE = re.compile("[^\r\n\u00ad\ufffe]+")


def has_columns(text_page: pypdfium2.PdfTextPage, text: str, frame: Frame, needed: int, runs: Sequence[Box]) -> bool:
    """Whether `needed` of eight successive lines have wide gaps, or two have several: between runs or within one.

    `runs` are the boxes of what the file draws at once. True for some pages without a table. Costs about a quarter of
    what reading the text of the page does.
    """
    lines = _join_lines(runs)
    if _count_densest([gaps > 0 for _, gaps in lines]) >= needed:
        return True
    if _count_densest([gaps > 1 for _, gaps in lines]) >= _FULL_LINES:
        return True
    texts = [line for line in _LINE.findall(text) if not line.isspace()]
    if len(texts) != len(lines):  # the lines of the text cannot be matched with those on the page
        return _count_densest(_find_sparse(text_page, frame)) >= needed
    sparse = [
        box[2] - box[0] > _SPARSE * len(line) * min(box[3] - box[1], _TALLEST_LINE)
        for (box, _), line in zip(lines, texts, strict=True)
    ]
    return _count_densest(sparse) >= needed


def has_scattered_rows(runs: Sequence[Box]) -> bool:
    """Whether several neighbouring lines of the page have runs far apart, on the page as in the order of the file.

    So are the cells of tables that are written column by column. The columns of a page leave less room between them.
    """
    if not any(low < top and left > right for (_, top, right, _), (left, _, _, low) in itertools.pairwise(runs)):
        return False  # nothing is written right of something below it
    lines: list[list[tuple[float, float, int]]] = []
    last = float("-inf")
    for middle, number, (left, top, right, bottom) in sorted(
        ((box[1] + box[3]) / 2, number, box) for number, box in enumerate(runs)
    ):
        if middle - last > _SAME_MIDDLE * (bottom - top):
            lines.append([])
            last = middle
        lines[-1].append((left, right, number))
    return _count_densest([len(line) > 1 and _is_scattered(sorted(line)) for line in lines]) >= _SCATTERED_LINES


def goes_back(runs: Sequence[Box]) -> bool:
    """Whether a line is written after lines below it, as the names above a finished table may be.

    The next column of a page also begins higher, but farther right.
    """
    return any(two[3] < one[1] and two[0] < one[2] for one, two in itertools.pairwise(runs))


def _is_scattered(line: Sequence[tuple[float, float, int]]) -> bool:
    width = max(right for _, right, _ in line) - line[0][0]
    covered = sum(right - left for left, right, _ in line)
    jumps = any(not 0 < two[2] - one[2] <= _NEAR_IN_FILE for one, two in itertools.pairwise(line))
    return jumps and covered < _MAX_COVERED * width


def read_runs(text_page: pypdfium2.PdfTextPage) -> list[Rectangle]:
    """PDFium's bounds of what the file draws at once: mostly a line, a piece of one or a word."""
    from pypdfium2 import raw as pdfium

    read, page = pdfium.FPDFText_GetRect, text_page.raw
    left, top, right, bottom = (ctypes.c_double() for _ in range(4))
    runs: list[Rectangle] = []
    for index in range(pdfium.FPDFText_CountRects(page, 0, -1)):
        read(page, index, left, top, right, bottom)
        runs.append((left.value, bottom.value, right.value, top.value))
    return runs


def _join_lines(runs: Sequence[Box]) -> list[tuple[Box, int]]:
    """The lines of a page in the order of the file, each with the number of its wide gaps."""
    boxes = iter(runs)
    first = next(boxes, None)
    if first is None:
        return []
    lines: list[tuple[Box, int]] = []
    (west, north, east, south), gaps = first, 0  # the last line so far
    for left, top, right, bottom in boxes:
        height = min(max(south - north, bottom - top), _TALLEST_LINE)
        gap = left - east
        if gap > -height and top < south - _SAME_LINE * height and bottom > north + _SAME_LINE * height:
            west, north, east, south = min(west, left), min(north, top), max(east, right), max(south, bottom)
            gaps += gap > height
            continue
        is_next_cell = gap > height and north > bottom > north - _HIGHEST_NEXT_CELL * height
        lines.append(((west, north, east, south), gaps + is_next_cell))
        (west, north, east, south), gaps = (left, top, right, bottom), 0
    return [*lines, ((west, north, east, south), gaps)]


def _find_sparse(text_page: pypdfium2.PdfTextPage, frame: Frame) -> list[bool]:
    """For each line of the text, whether it is much wider than its characters need."""
    from pypdfium2 import raw as pdfium

    left, right, bottom, top = (ctypes.c_double() for _ in range(4))

    def box(index: int) -> Box:
        pdfium.FPDFText_GetCharBox(text_page.raw, index, left, right, bottom, top)
        return frame.place((left.value, bottom.value, right.value, top.value))

    sparse: list[bool] = []
    for match in _LINE.finditer(text_page.get_text_range(errors="surrogatepass")):
        line = match.group().rstrip()
        if " " not in line.strip():
            sparse.append(False)
            continue
        first, last = box(match.start()), box(match.start() + len(line) - 1)
        height = min(max(first[3] - first[1], last[3] - last[1]), _TALLEST_LINE) / CAP_HEIGHT
        sparse.append(last[2] - first[0] > _SPARSE_TO_SIZE * len(line) * height)
    return sparse


def _count_densest(marks: Sequence[bool]) -> int:
    """The most marks among eight successive lines."""
    if not any(marks):
        return 0
    return max(sum(marks[n : n + _NEIGHBOURS]) for n in range(len(marks)))
