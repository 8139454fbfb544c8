"""Finds text objects of a PDF page that a reader may not see, and the pictures on the page.

Only whole objects are examined, not their characters, so that an ordinary page costs little.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from functions.core.extraction.pdf.geometry import Matrix, stands_on
from functions.core.extraction.pdf.page_objects import (
    ADDRESS,
    cells_in,
    list_form,
    list_objects,
    plain_call,
    read_all_bounds,
    read_bounds,
    read_matrix,
)

if TYPE_CHECKING:
    import pypdfium2

    from functions.core.extraction.pdf.geometry import Rectangle

MIN_SIZE = 2.0
"""Points: smaller text cannot be read."""
MIN_CONTRAST = 24
"""Of 255, in the colour channel that differs most; colours that differ by less cannot be told apart."""
_MAX_DEPTH, _MAX_PATHS, _MAX_AREAS = 6, 1000, 100
"""How many forms within forms, paths and filled areas are examined; more are those of drawings."""
_WITHOUT_INK, _CLIP_ONLY, _OUTLINED = 3, 7, (1, 5)
"""PDF text render modes; the colour seen is that of the outline for `_OUTLINED`, of the inside for all others."""
_FOUR_INTEGERS = struct.Struct("4I")

Colour = tuple[int, int, int, int]
"""Red, green, blue and opacity, 0…255."""
Doubt = Literal["no ink", "faint", "pale", "tiny"]
"""Why text may not be seen; "pale" text may have the colour of its background."""


class Drawing:
    """The text objects of a page that may be hidden, by address, and the bounds of its pictures."""

    def __init__(self, page: pypdfium2.PdfPage) -> None:
        from pypdfium2 import raw as pdfium

        self.pdfium = pdfium
        self.doubts: dict[int, Doubt] = {}
        self.pictures: list[Rectangle] = []
        self._sides, self._size, self._places = (ctypes.c_uint * 4)(), ctypes.c_float(), (ctypes.c_float * 6)()
        self._read(list_objects(page), None, 0)

    def select(self, *doubts: Doubt) -> set[int]:
        """The addresses of the text objects that may be hidden for one of these reasons."""
        return {address for address, doubt in self.doubts.items() if doubt in doubts}

    def _read(self, items: Iterable[int], outer: Matrix | None, depth: int) -> None:
        """Examines `items`, which are on the page itself or in a form with the matrix `outer`."""
        get_mode = plain_call("FPDFTextObj_GetTextRenderMode", ADDRESS)
        get_fill = plain_call("FPDFPageObj_GetFillColor", ADDRESS)
        get_size = plain_call("FPDFTextObj_GetFontSize", ADDRESS)
        get_matrix = plain_call("FPDFPageObj_GetMatrix", ADDRESS)
        sides, cells, places = self._sides, cells_in(self._sides), self._places
        at_size, at_places = ctypes.byref(self._size), ctypes.byref(places)
        least = MIN_SIZE / (outer.scale or 1e-9) if outer else MIN_SIZE
        others: list[int] = []
        texts: dict[Colour, list[int]] = defaultdict(list)
        known: dict[tuple[int, Colour | None], Doubt | None] = {}
        size, unpack, hypot = self._size, _FOUR_INTEGERS.unpack, math.hypot
        for item in items:
            mode = get_mode(item)
            if mode < 0:
                others.append(item)
                continue
            colour = unpack(sides) if get_fill(item, *cells) else None
            style = mode, self._read_stroke(item) if mode in _OUTLINED else colour
            if style not in known:
                known[style] = _find_doubt(*style)
            doubt = known[style]
            if doubt is None:
                get_size(item, at_size)
                get_matrix(item, at_places)
                if abs(size.value) * hypot(places[2], places[3]) < least:
                    doubt = "tiny"
                elif colour:
                    texts[colour].append(item)
            if doubt:
                self.doubts[item] = doubt
        self._read_others(others, texts, outer, depth)

    def _read_stroke(self, item: int) -> Colour | None:
        get_stroke = plain_call("FPDFPageObj_GetStrokeColor", ADDRESS)
        return _FOUR_INTEGERS.unpack(self._sides) if get_stroke(item, *cells_in(self._sides)) else None

    def _read_others(
        self, items: Sequence[int], texts: Mapping[Colour, Sequence[int]], outer: Matrix | None, depth: int
    ) -> None:
        paths: list[int] = []
        get_type = plain_call("FPDFPageObj_GetType", ADDRESS)
        for item in items:
            kind = get_type(item)
            if kind == self.pdfium.FPDF_PAGEOBJ_PATH:
                paths.append(item)
            elif kind == self.pdfium.FPDF_PAGEOBJ_IMAGE:
                self.pictures.append(read_bounds(item, outer))
            elif kind == self.pdfium.FPDF_PAGEOBJ_FORM and depth < _MAX_DEPTH:
                place = read_matrix(item)
                self._read(list_form(item), place.within(outer) if outer else place, depth + 1)
        areas = list(itertools.islice(self._find_areas(paths[:_MAX_PATHS], texts), _MAX_AREAS)) if texts else []
        for colour, drawn in texts.items():
            under = [area for filled, area in areas if _are_alike(colour, filled)]
            if not under:
                continue
            for item, box in zip(drawn, read_all_bounds(drawn), strict=True):
                if any(stands_on(box, area) for area in under):
                    self.doubts[item] = "pale"

    def _find_areas(self, paths: Iterable[int], texts: Iterable[Colour]) -> Iterator[tuple[Colour, Rectangle]]:
        """Areas filled with the colour of one of the `texts`, with that colour."""
        get_fill = plain_call("FPDFPageObj_GetFillColor", ADDRESS)
        get_mode = plain_call("FPDFPath_GetDrawMode", ADDRESS)
        sides, cells = self._sides, cells_in(self._sides)
        filled, stroked = ctypes.c_int(), ctypes.c_int()
        at_filled, at_stroked = ctypes.byref(filled), ctypes.byref(stroked)
        alike: dict[Colour, bool] = {}
        for path in paths:
            if not get_fill(path, *cells):
                continue
            colour = _FOUR_INTEGERS.unpack(sides)
            if colour not in alike:
                alike[colour] = any(_are_alike(colour, other) for other in texts)
            if alike[colour]:
                get_mode(path, at_filled, at_stroked)
                if filled.value:
                    area = read_bounds(path)
                    if min(area[2] - area[0], area[3] - area[1]) > MIN_SIZE:
                        yield colour, area


def _find_doubt(mode: int, colour: Colour | None) -> Doubt | None:
    """Why text of this render mode and colour may not be seen; None if it can be, whatever is behind it."""
    if mode == _WITHOUT_INK:
        return "no ink"
    if colour is None or mode == _CLIP_ONLY:
        return None
    if colour[3] < MIN_CONTRAST:
        return "faint"
    return "pale" if min(colour[:3]) > 255 - MIN_CONTRAST else None


def _are_alike(one: Colour, other: Colour) -> bool:
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) < MIN_CONTRAST
