"""Cheap signs that lines of a page stand in columns, before any character is looked at."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from functions.core.pdf_geometry import Box, Frame, Rectangle
from functions.core.pdf_table_text import CAP_HEIGHT

if TYPE_CHECKING:
    import pypdfium2

_NEAR_LINES = 8
_HIGHEST = 40.0
_SPARSE, _SPARSE_CAPITALS = 0.78, 0.85
_LINE = re.compile("[^\r\n\u00ad\ufffe]+")


def has_columns(
    text_page: pypdfium2.PdfTextPage, text: str, frame: Frame, needed: int, runs: Sequence[Rectangle] | None = None
) -> bool:
    """Whether `needed` lines of eight that follow each other have wide gaps: between what was drawn at once, or in it.

    True for some pages without a table. Costs about a quarter of what reading the text of the page does.
    """
    lines = _join_lines(_read_runs(text_page) if runs is None else runs, frame)
    if _densest([gapped for _, gapped in lines]) >= needed:
        return True
    texts = [line for line in _LINE.findall(text) if not line.isspace()]
    if len(texts) != len(lines):  # which line of the text is which on the page is not known
        return _densest(_find_sparse(text_page, frame)) >= needed
    sparse = [
        box[2] - box[0] > _SPARSE * len(line) * min(box[3] - box[1], _HIGHEST)
        for (box, _), line in zip(lines, texts, strict=True)
    ]
    return _densest(sparse) >= needed


def _read_runs(text_page: pypdfium2.PdfTextPage) -> list[Box]:
    """PDFium's boxes for what was drawn at once, which mostly is a line, a piece of one, or a word."""
    from pypdfium2 import raw as pdfium

    read, page = pdfium.FPDFText_GetRect, text_page.raw
    left, top, right, bottom = (ctypes.c_double() for _ in range(4))
    runs: list[Box] = []
    for index in range(pdfium.FPDFText_CountRects(page, 0, -1)):
        read(page, index, left, top, right, bottom)
        runs.append((left.value, bottom.value, right.value, top.value))
    return runs


def _join_lines(runs: Sequence[Rectangle], frame: Frame) -> list[tuple[Box, bool]]:
    """The lines of a page in the order of the file, and whether they have a wide gap."""
    boxes = iter(frame.place_all(runs))
    first = next(boxes, None)
    if first is None:
        return []
    lines: list[tuple[Box, bool]] = []
    (west, north, east, south), gapped = first, False  # the last line so far
    for left, top, right, bottom in boxes:
        height = min(max(south - north, bottom - top), _HIGHEST)
        gap = left - east
        if gap > -height and top < south - 0.2 * height and bottom > north + 0.2 * height:
            west, north, east, south = min(west, left), min(north, top), max(east, right), max(south, bottom)
            gapped = gapped or gap > height
            continue
        goes_up = gap > height and north > bottom > north - 8 * height  # the next cell of a row
        lines.append(((west, north, east, south), gapped or goes_up))
        (west, north, east, south), gapped = (left, top, right, bottom), False
    return [*lines, ((west, north, east, south), gapped)]


def _find_sparse(text_page: pypdfium2.PdfTextPage, frame: Frame) -> list[bool]:
    """Which lines of the text are much wider than as many characters are."""
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
        height = min(max(first[3] - first[1], last[3] - last[1]), _HIGHEST) / CAP_HEIGHT
        sparse.append(last[2] - first[0] > _SPARSE_CAPITALS * len(line) * height)
    return sparse


def _densest(marks: Sequence[bool]) -> int:
    """The most marks among eight lines that follow each other."""
    if not any(marks):
        return 0
    return max(sum(marks[n : n + _NEAR_LINES]) for n in range(len(marks)))
