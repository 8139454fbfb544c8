"""What a PDF page draws, object by object. Every function here is called under the lock of PDFium."""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from functions.core.pdf_geometry import Matrix, Point, Rectangle, stands_on

if TYPE_CHECKING:
    import pypdfium2

_MAX_OBJECTS, _MAX_SEGMENTS = 3000, 500
_RECTANGLE = 6
_ANGLE_SAMPLES = 32
_TWO_FLOATS, _FOUR_FLOATS = struct.Struct("2f"), struct.Struct("4f")

_LINE_TO, _CURVE_TO = 0, 1  # PDFium's types of segments; the third, 2, begins a figure

ADDRESS, NUMBER = ctypes.c_void_p, ctypes.c_int

Answer = TypeVar("Answer")


@functools.cache
def plain_call(name: str, *arguments: Any, result: Any = NUMBER) -> Callable[..., Any]:
    """A function of PDFium that takes and gives plain addresses.

    What follows the typed `arguments` is passed as it is: numbers as C's `int`, `cells_in` a buffer. Such a call costs
    half of one with typed pointers; it is used where an ordinary page needs hundreds. It keeps the interpreter's lock,
    because what is called here answers sooner than that is given away.
    """
    from pypdfium2 import raw as pdfium

    where = ctypes.cast(getattr(pdfium, name), ctypes.c_void_p).value
    assert where is not None
    return ctypes.PYFUNCTYPE(result, *arguments)(where)


def address_of(pointer: Any) -> int:
    """Where a typed pointer points to."""
    return ctypes.addressof(pointer.contents)


def pointer_to(item: int) -> Any:
    """The page object at an address, as typed calls take it."""
    from pypdfium2 import raw as pdfium

    return ctypes.cast(item, pdfium.FPDF_PAGEOBJECT)


def cells_in(array: ctypes.Array[Any], order: Sequence[int] = (0, 1, 2, 3)) -> list[Any]:
    """The elements of a buffer, in this order, for PDFium to write into."""
    return [ctypes.byref(array, number * ctypes.sizeof(array._type_)) for number in order]


def find_stretches(count: int, ask: Callable[[int], Answer]) -> Iterator[tuple[int, int, Answer]]:
    """Stretches (first, last, answer) of the numbers below `count` for which the answers are the same.

    Where the answers at two places are equal they have to be so everywhere between, which spares asking there.
    Stretches come in order, and may share an end.
    """
    waiting = [(0, count - 1, ask(0), ask(count - 1))] if count > 0 else []
    while waiting:
        low, high, first, last = waiting.pop()
        if first == last:
            yield low, high, first
        elif high - low == 1:
            yield low, low, first
            yield high, high, last
        else:
            middle = (low + high) // 2
            between = ask(middle)
            waiting += [(middle, high, between, last), (low, middle, first, between)]


def sample_angles(text_page: pypdfium2.PdfTextPage) -> list[float]:
    """Angles of characters from all over the text of a page: radians from 0, negative where PDFium knows none."""
    get_angle = plain_call("FPDFText_GetCharAngle", ADDRESS, result=ctypes.c_float)
    handle, count = address_of(text_page.raw), text_page.count_chars()
    return [get_angle(handle, index) for index in range(0, count, max(1, count // _ANGLE_SAMPLES))]


def list_objects(page: pypdfium2.PdfPage) -> list[int]:
    """The addresses of what stands on the page itself, in the order in which it is drawn."""
    from pypdfium2 import raw as pdfium

    handle, get_object = address_of(page.raw), plain_call("FPDFPage_GetObject", ADDRESS, result=ADDRESS)
    return [get_object(handle, number) for number in range(pdfium.FPDFPage_CountObjects(page.raw))]


def list_form(form: int) -> list[int]:
    """The addresses of what stands in a form."""
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
    """The bounds of an object, in points of what it stands in or, given its place, of the page."""
    bounds = next(read_all_bounds([item]))
    return bounds if outer is None else outer.place_rectangle(bounds)


def read_all_bounds(items: Iterable[int]) -> Iterator[Rectangle]:
    """The bounds of objects, in points of what they stand in."""
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
    """Straight lines and the edges of filled areas and pictures, as rectangles without width or without height.

    A picture that any of the `runs` of text stands on is a background and left out.
    """
    from pypdfium2 import raw as pdfium

    rules: list[Rectangle] = []
    for item in itertools.islice(list_objects(page), _MAX_OBJECTS):
        kind = read_type(item)
        if kind == pdfium.FPDF_PAGEOBJ_PATH and count_segments(item) > _RECTANGLE:
            rules += _read_segments(item)
        elif kind != pdfium.FPDF_PAGEOBJ_TEXT:
            left, bottom, right, top = bounds = read_bounds(item)
            if kind == pdfium.FPDF_PAGEOBJ_PATH or not any(stands_on(run, bounds) for run in runs):
                rules += [(left, bottom, right, bottom), (left, top, right, top)]
                rules += [(left, bottom, left, top), (right, bottom, right, top)]
    return rules


def _read_segments(path: int) -> Iterator[Rectangle]:
    """The straight lines of a path, as the rectangles around them."""
    count = min(_MAX_SEGMENTS, count_segments(path))
    for start, end in LineReader().read(path, read_matrix(path), count, closing=False):
        yield min(start[0], end[0]), min(start[1], end[1]), max(start[0], end[0]), max(start[1], end[1])


class LineReader:
    """Reads straight lines of paths; holds the cells that PDFium writes into."""

    def __init__(self) -> None:
        self._get_segment = plain_call("FPDFPath_GetPathSegment", ADDRESS, result=ADDRESS)
        self._get_point = plain_call("FPDFPathSegment_GetPoint", ADDRESS)
        self._get_type = plain_call("FPDFPathSegment_GetType", ADDRESS)
        self._get_close = plain_call("FPDFPathSegment_GetClose", ADDRESS)
        self._point = (ctypes.c_float * 2)()
        self._cells = cells_in(self._point, (0, 1))

    def read(self, path: int, matrix: Matrix, count: int, *, closing: bool) -> Iterator[tuple[Point, Point]]:
        """The straight lines among the first `count` segments of a path; `closing` also those that close a figure."""
        get_segment, get_type, get_close = self._get_segment, self._get_type, self._get_close
        get_point, (x, y), point, unpack = self._get_point, self._cells, self._point, _TWO_FLOATS.unpack
        a, b, c, d, e, f = matrix
        first = last = (0.0, 0.0)
        curve = 0  # where a curve ends is asked only if a line begins there
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
