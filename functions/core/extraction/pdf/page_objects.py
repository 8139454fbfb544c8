"""Calls PDFium quickly, and reads the objects that a page draws. Callers hold the lock of PDFium."""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from functions.core.extraction.pdf.geometry import Matrix, Point, Rectangle, stands_on

if TYPE_CHECKING:
    import pypdfium2

    from functions.core.extraction.pdf.geometry import Rectangle

_MAX_OBJECTS, _MAX_SEGMENTS = 3000, 500
"""How many objects of a page, and segments of a path, are looked at to find rules; drawings have many thousands."""
_RECTANGLE_SEGMENTS = 6
"""The most segments of a path that is a single line or rectangle, which its bounds describe."""
_ANGLE_SAMPLES = 32
"""The least number of characters whose angles show how a longer text is turned."""
_TWO_FLOATS, _FOUR_FLOATS = struct.Struct("2f"), struct.Struct("4f")

_LINE_TO, _CURVE_TO = 0, 1  # PDFium's types of segments; the third, 2, moves to the start of a figure

ADDRESS, NUMBER = ctypes.c_void_p, ctypes.c_int

Answer = TypeVar("Answer")


@functools.cache
def plain_call(name: str, *arguments: Any, result: Any = NUMBER) -> Callable[..., Any]:
    """A function of PDFium that takes and returns plain addresses.

    Arguments after the typed `arguments` are passed as they are: numbers as C's `int`, buffers as their `cells_in`.
    Such a call costs half as much as one with typed pointers, and is used where an ordinary page needs hundreds. It
    keeps the interpreter's lock, because these functions return sooner than the lock could be handed over.
    """
    from pypdfium2 import raw as pdfium

    where = ctypes.cast(getattr(pdfium, name), ctypes.c_void_p).value
    assert where is not None
    return ctypes.PYFUNCTYPE(result, *arguments)(where)


def address_of(pointer: Any) -> int:
    """The address that a typed pointer holds."""
    return ctypes.addressof(pointer.contents)


def pointer_to(item: int) -> Any:
    """The typed pointer to the page object at an address."""
    from pypdfium2 import raw as pdfium

    return ctypes.cast(item, pdfium.FPDF_PAGEOBJECT)


def cells_in(array: ctypes.Array[Any], order: Sequence[int] = (0, 1, 2, 3)) -> list[Any]:
    """Pointers to the elements of a buffer, in this order, for PDFium to write to."""
    return [ctypes.byref(array, number * ctypes.sizeof(array._type_)) for number in order]


def find_stretches(count: int, read: Callable[[int], Answer]) -> Iterator[tuple[int, int, Answer]]:
    """Stretches (first, last, answer) of the numbers below `count` for which `read` returns the same answer.

    It must return the same for all numbers between two with equal answers, so that those need not be read. Stretches
    come in order, and may share an end.
    """
    waiting = [(0, count - 1, read(0), read(count - 1))] if count > 0 else []
    while waiting:
        low, high, first, last = waiting.pop()
        if first == last:
            yield low, high, first
        elif high - low == 1:
            yield low, low, first
            yield high, high, last
        else:
            middle = (low + high) // 2
            between = read(middle)
            waiting += [(middle, high, between, last), (low, middle, first, between)]


def sample_angles(text_page: pypdfium2.PdfTextPage) -> list[float]:
    """Angles of characters from all over the text of a page: radians from 0, negative where PDFium knows none."""
    get_angle = plain_call("FPDFText_GetCharAngle", ADDRESS, result=ctypes.c_float)
    handle, count = address_of(text_page.raw), text_page.count_chars()
    return [get_angle(handle, index) for index in range(0, count, max(1, count // _ANGLE_SAMPLES))]


def list_objects(page: pypdfium2.PdfPage) -> list[int]:
    """The addresses of the objects on the page itself, in drawing order; those inside forms are not listed."""
    from pypdfium2 import raw as pdfium

    handle, get_object = address_of(page.raw), plain_call("FPDFPage_GetObject", ADDRESS, result=ADDRESS)
    return [get_object(handle, number) for number in range(pdfium.FPDFPage_CountObjects(page.raw))]


def list_form(form: int) -> list[int]:
    """The addresses of the objects in a form object, in drawing order."""
    from pypdfium2 import raw as pdfium

    get_object = plain_call("FPDFFormObj_GetObject", ADDRESS, ctypes.c_ulong, result=ADDRESS)
    return [get_object(form, number) for number in range(pdfium.FPDFFormObj_CountObjects(pointer_to(form)))]


def read_type(item: int) -> int:
    kind: int = plain_call("FPDFPageObj_GetType", ADDRESS)(item)
    return kind


def read_matrix(item: int) -> Matrix:
    places = (ctypes.c_float * 6)()
    plain_call("FPDFPageObj_GetMatrix", ADDRESS)(item, ctypes.byref(places))
    return Matrix(*places)


def read_bounds(item: int, outer: Matrix | None = None) -> Rectangle:
    """The bounds of an object in the space around it, or in page space given the matrix of the form `outer`."""
    bounds = next(read_all_bounds([item]))
    return bounds if outer is None else outer.place_rectangle(bounds)


def read_all_bounds(items: Iterable[int]) -> Iterator[Rectangle]:
    """The bounds of objects in the space around them: of the page, or of the form that they are in."""
    sides, get_bounds, unpack = (
        (ctypes.c_float * 4)(),
        plain_call("FPDFPageObj_GetBounds", ADDRESS),
        _FOUR_FLOATS.unpack,
    )
    cells = cells_in(sides)
    for item in items:
        get_bounds(item, *cells)
        yield unpack(sides)


def find_rules(page: pypdfium2.PdfPage, runs: Sequence[Rectangle]) -> list[Rectangle]:
    """Straight lines and the edges of areas and pictures, as rectangles without width or without height.

    A picture behind any of the `runs` of text is a background, whose edges are left out.
    """
    from pypdfium2 import raw as pdfium

    rules: list[Rectangle] = []
    for item in itertools.islice(list_objects(page), _MAX_OBJECTS):
        kind = read_type(item)
        if kind == pdfium.FPDF_PAGEOBJ_PATH and count_segments(item) > _RECTANGLE_SEGMENTS:
            rules += _read_segments(item)
        elif kind != pdfium.FPDF_PAGEOBJ_TEXT:
            left, bottom, right, top = bounds = read_bounds(item)
            if kind == pdfium.FPDF_PAGEOBJ_PATH or not any(stands_on(run, bounds) for run in runs):
                rules += [(left, bottom, right, bottom), (left, top, right, top)]
                rules += [(left, bottom, left, top), (right, bottom, right, top)]
    return rules


def _read_segments(path: int) -> Iterator[Rectangle]:
    """The bounds of the straight lines of a path."""
    count = min(_MAX_SEGMENTS, count_segments(path))
    for start, end in LineReader().read(path, read_matrix(path), count, closing=False):
        yield min(start[0], end[0]), min(start[1], end[1]), max(start[0], end[0]), max(start[1], end[1])


class LineReader:
    """Reads the straight lines of paths, through the same buffers for PDFium's answers."""

    def __init__(self) -> None:
        self._get_segment = plain_call("FPDFPath_GetPathSegment", ADDRESS, result=ADDRESS)
        self._get_point = plain_call("FPDFPathSegment_GetPoint", ADDRESS)
        self._get_type = plain_call("FPDFPathSegment_GetType", ADDRESS)
        self._get_close = plain_call("FPDFPathSegment_GetClose", ADDRESS)
        self._point = (ctypes.c_float * 2)()
        self._cells = cells_in(self._point, (0, 1))

    def read(self, path: int, matrix: Matrix, count: int, *, closing: bool) -> Iterator[tuple[Point, Point]]:
        """The straight lines among the first `count` segments of a path; `closing` adds those that close figures."""
        get_segment, get_type, get_close = self._get_segment, self._get_type, self._get_close
        get_point, (x, y), point, unpack = self._get_point, self._cells, self._point, _TWO_FLOATS.unpack
        a, b, c, d, e, f = matrix
        first = last = (0.0, 0.0)
        curve = 0  # the end of a curve is read only if a line begins there
        for number in range(count):
            segment = get_segment(path, number)
            kind = get_type(segment)
            closes = closing and get_close(segment)
            if kind == _CURVE_TO:
                curve = segment
            if curve and (closes or kind == _LINE_TO):
                get_point(curve, x, y)
                across, up = unpack(point)
                last = a * across + c * up + e, b * across + d * up + f
            if kind != _CURVE_TO:
                get_point(segment, x, y)
                across, up = unpack(point)
                place = a * across + c * up + e, b * across + d * up + f
                if kind == _LINE_TO:
                    yield last, place
                else:
                    first = place
                last, curve = place, 0
            if closes:
                yield last, first
                last, curve = first, 0


def count_segments(path: int) -> int:
    count: int = plain_call("FPDFPath_CountSegments", ADDRESS)(path)
    return count
