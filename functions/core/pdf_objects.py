"""What a PDF page draws, object by object. Every function here is called under the lock of PDFium."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pypdfium2

    from functions.core.text_columns import Rectangle

_MAX_OBJECTS, _MAX_SEGMENTS = 3000, 500
_RECTANGLE = 6


ADDRESS, NUMBER = ctypes.c_void_p, ctypes.c_int


@functools.cache
def plain_call(name: str, *arguments: Any, result: Any = NUMBER) -> Callable[..., Any]:
    """A function of PDFium that takes and gives plain addresses.

    Such a call costs half of one with typed pointers; it is used where an ordinary page needs hundreds.
    """
    from pypdfium2 import raw as pdfium

    where = ctypes.cast(getattr(pdfium, name), ctypes.c_void_p).value
    assert where is not None
    return ctypes.CFUNCTYPE(result, *arguments)(where)


def address_of(pointer: Any) -> int:
    """Where a typed pointer points to."""
    return ctypes.addressof(pointer.contents)


def pointer_to(item: int) -> Any:
    """The page object at an address, as typed calls take it."""
    from pypdfium2 import raw as pdfium

    return ctypes.cast(item, pdfium.FPDF_PAGEOBJECT)


def addresses_in(array: ctypes.Array[Any], order: Sequence[int] = (0, 1, 2, 3)) -> list[int]:
    """Where the elements of a buffer are, in this order."""
    return [ctypes.addressof(array) + number * ctypes.sizeof(array._type_) for number in order]


def find_stretches(count: int, ask: Callable[[int], int]) -> Iterator[tuple[int, int, int]]:
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


class Matrix(NamedTuple):
    """How points of a thing become points of what it stands in: x' = ax + cy + e, y' = bx + dy + f."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def place(self, x: float, y: float) -> tuple[float, float]:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    @property
    def scale(self) -> float:
        return math.sqrt(abs(self.a * self.d - self.b * self.c))

    def within(self, outer: Matrix) -> Matrix:
        """This, and then `outer`."""
        ab = self.a * outer.a + self.b * outer.c, self.a * outer.b + self.b * outer.d
        cd = self.c * outer.a + self.d * outer.c, self.c * outer.b + self.d * outer.d
        return Matrix(*ab, *cd, *outer.place(self.e, self.f))


def list_objects(page: pypdfium2.PdfPage) -> Iterator[int]:
    """The addresses of what stands on the page itself, in the order in which it is drawn."""
    from pypdfium2 import raw as pdfium

    handle, get_object = address_of(page.raw), plain_call("FPDFPage_GetObject", ADDRESS, NUMBER, result=ADDRESS)
    return (get_object(handle, number) for number in range(pdfium.FPDFPage_CountObjects(page.raw)))


def list_form(form: int) -> Iterator[int]:
    """The addresses of what stands in a form."""
    from pypdfium2 import raw as pdfium

    get_object = plain_call("FPDFFormObj_GetObject", ADDRESS, ctypes.c_ulong, result=ADDRESS)
    return (get_object(form, number) for number in range(pdfium.FPDFFormObj_CountObjects(pointer_to(form))))


def read_type(item: int) -> int:
    kind: int = plain_call("FPDFPageObj_GetType", ADDRESS)(item)
    return kind


def read_matrix(item: int) -> Matrix:
    places = (ctypes.c_float * 6)()
    plain_call("FPDFPageObj_GetMatrix", ADDRESS, ADDRESS)(item, ctypes.addressof(places))
    return Matrix(*places)


def read_bounds(item: int, outer: Matrix | None = None) -> Rectangle:
    """The bounds of an object, in points of what it stands in or, given its place, of the page."""
    sides = (ctypes.c_float * 4)()
    plain_call("FPDFPageObj_GetBounds", *[ADDRESS] * 5)(item, *addresses_in(sides))
    left, bottom, right, top = sides
    if outer is None:
        return left, bottom, right, top
    across, up = zip(*(outer.place(x, y) for x in (left, right) for y in (bottom, top)), strict=True)
    return min(across), min(up), max(across), max(up)


def find_rules(page: pypdfium2.PdfPage, runs: Sequence[Rectangle]) -> list[Rectangle]:
    """Straight lines and the edges of filled areas and pictures, as rectangles without width or without height.

    A picture that any of the `runs` of text stands on is a background and left out.
    """
    from pypdfium2 import raw as pdfium

    rules: list[Rectangle] = []
    for item in itertools.islice(list_objects(page), _MAX_OBJECTS):
        kind = read_type(item)
        if kind == pdfium.FPDF_PAGEOBJ_PATH and pdfium.FPDFPath_CountSegments(pointer_to(item)) > _RECTANGLE:
            rules += _read_segments(item)
        elif kind != pdfium.FPDF_PAGEOBJ_TEXT:
            left, bottom, right, top = bounds = read_bounds(item)
            if kind == pdfium.FPDF_PAGEOBJ_PATH or not any(stands_on(run, bounds) for run in runs):
                rules += [(left, bottom, right, bottom), (left, top, right, top)]
                rules += [(left, bottom, left, top), (right, bottom, right, top)]
    return rules


def stands_on(box: Rectangle, ground: Rectangle) -> bool:
    """Whether the middle of `box` is inside `ground`."""
    across, up = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return ground[0] <= across <= ground[2] and ground[1] <= up <= ground[3]


def _read_segments(path: int) -> Iterator[Rectangle]:
    """The straight lines of a path, as the rectangles around them."""
    from pypdfium2 import raw as pdfium

    item, matrix, x, y = pointer_to(path), read_matrix(path), ctypes.c_float(), ctypes.c_float()
    last = (0.0, 0.0)
    for number in range(min(_MAX_SEGMENTS, pdfium.FPDFPath_CountSegments(item))):
        segment = pdfium.FPDFPath_GetPathSegment(item, number)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = matrix.place(x.value, y.value)
        if pdfium.FPDFPathSegment_GetType(segment) == pdfium.FPDF_SEGMENT_LINETO:
            yield min(last[0], point[0]), min(last[1], point[1]), max(last[0], point[0]), max(last[1], point[1])
        last = point
