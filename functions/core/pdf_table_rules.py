"""Ruling lines of a PDF page: the drawn lines, thin boxes and borders of boxes that tables are made of."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from functions.core.pdf_table_text import Box, Frame

if TYPE_CHECKING:
    import pypdfium2

SNAP = 3.0
"""Lines less than so many points apart are one."""

_MAX_PATHS, _MAX_RULES = 6_000, 4_000
_MAX_DEPTH = 5
_MAX_SEGMENTS = 2_000
_THICK = 4.0
_SHORTEST = 6.0
_WHOLE_PAGE = 0.9

Matrix = tuple[float, float, float, float, float, float]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line, level or upright: at `at`, from `start` to `end`."""

    level: bool
    at: float
    start: float
    end: float


def read_rules(page: pypdfium2.PdfPage, frame: Frame) -> list[Rule]:
    """All level and upright lines of a page, those in form objects too; none on a page that is one large drawing."""
    return _Reader(frame).read(page)


def stack_rules(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Level rules of one width below each other, each stack from its top down; only stacks of two and more."""
    stacks: list[list[Rule]] = []
    for rule in sorted((rule for rule in rules if rule.level), key=lambda rule: rule.at):
        for stack in stacks:
            if abs(stack[0].start - rule.start) <= SNAP and abs(stack[0].end - rule.end) <= SNAP:
                if rule.at - stack[-1].at > SNAP:
                    stack.append(rule)
                break
        else:
            stacks.append([rule])
    return [stack for stack in stacks if len(stack) > 1]


class _Reader:
    """Walks over the objects of a page; holds the cells that PDFium writes into."""

    def __init__(self, frame: Frame) -> None:
        from pypdfium2 import raw as pdfium

        self._pdfium: Any = pdfium
        self._frame, (self._width, self._height) = frame, frame.size
        self._sides = [ctypes.c_float() for _ in range(4)]
        self._x, self._y = ctypes.c_float(), ctypes.c_float()
        self._filled, self._stroked = ctypes.c_int(), ctypes.c_int()

    def read(self, page: pypdfium2.PdfPage) -> list[Rule]:
        pdfium, rules = self._pdfium, list[Rule]()
        found = self._paths(page.raw, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject)
        for number, (path, form) in enumerate(found):
            rules += self._rules_of(path, form)
            if number > _MAX_PATHS or len(rules) > _MAX_RULES:
                return []
        return rules

    def _paths(
        self,
        holder: Any,
        count: Callable[..., int],
        get: Callable[..., Any],
        form: Matrix | None = None,
        depth: int = 0,
    ) -> Iterator[tuple[Any, Matrix | None]]:
        """Path objects with the matrix of the form object they stand in."""
        pdfium = self._pdfium
        kind_of, path, group = pdfium.FPDFPageObj_GetType, pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_FORM
        for index in range(count(holder)):
            item = get(holder, index)
            kind = kind_of(item)
            if kind == path:
                yield item, form
            elif kind == group and depth < _MAX_DEPTH:
                inner = _multiply(self._matrix_of(item), form)
                counts, gets = pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject
                yield from self._paths(item, counts, gets, inner, depth + 1)

    def _rules_of(self, path: Any, form: Matrix | None) -> Iterator[Rule]:
        pdfium = self._pdfium
        pdfium.FPDFPath_GetDrawMode(path, self._filled, self._stroked)
        drawn = self._filled.value or self._stroked.value
        if not drawn or not pdfium.FPDFPageObj_GetBounds(path, *self._sides):
            return
        left, bottom, right, top = (side.value for side in self._sides)
        box = self._frame.place(*_transform_box(left, bottom, right, top, form))
        width, height = box[2] - box[0], box[3] - box[1]
        if min(width, height) <= _THICK:
            yield from _rule_of(box)
        elif width < _WHOLE_PAGE * self._width or height < _WHOLE_PAGE * self._height:
            for start, end in self._strokes(path, form):
                yield from _rule_of(self._frame.place(*_box_around(start, end)))

    def _strokes(self, path: Any, form: Matrix | None) -> Iterator[tuple[Point, Point]]:
        """The straight segments of a path in page space, the closing ones too; none of a large drawing."""
        pdfium, matrix = self._pdfium, _multiply(self._matrix_of(path), form)
        count = pdfium.FPDFPath_CountSegments(path)
        first = last = (0.0, 0.0)
        for index in range(count if count <= _MAX_SEGMENTS else 0):
            segment = pdfium.FPDFPath_GetPathSegment(path, index)
            pdfium.FPDFPathSegment_GetPoint(segment, self._x, self._y)
            point = _transform(self._x.value, self._y.value, matrix)
            kind = pdfium.FPDFPathSegment_GetType(segment)
            if kind == pdfium.FPDF_SEGMENT_MOVETO:
                first = point
            elif kind == pdfium.FPDF_SEGMENT_LINETO:
                yield last, point
            last = point
            if pdfium.FPDFPathSegment_GetClose(segment):
                yield last, first
                last = first

    def _matrix_of(self, item: Any) -> Matrix:
        found = self._pdfium.FS_MATRIX()
        self._pdfium.FPDFPageObj_GetMatrix(item, found)
        return found.a, found.b, found.c, found.d, found.e, found.f


def _rule_of(box: Box) -> Iterator[Rule]:
    """The rule that a long and thin box is."""
    left, top, right, bottom = box
    if right - left >= _SHORTEST and bottom - top <= _THICK:
        yield Rule(True, (top + bottom) / 2, left, right)
    elif bottom - top >= _SHORTEST and right - left <= _THICK:
        yield Rule(False, (left + right) / 2, top, bottom)


def _multiply(inner: Matrix, outer: Matrix | None) -> Matrix:
    if outer is None:
        return inner
    a, b, c, d, e, f = inner
    u, v, w, x, y, z = outer
    return a * u + b * w, a * v + b * x, c * u + d * w, c * v + d * x, e * u + f * w + y, e * v + f * x + z


def _transform(x: float, y: float, matrix: Matrix) -> Point:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _transform_box(left: float, bottom: float, right: float, top: float, matrix: Matrix | None) -> Box:
    if matrix is None:
        return left, bottom, right, top
    corners = [_transform(x, y, matrix) for x in (left, right) for y in (bottom, top)]
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _box_around(start: Point, end: Point) -> Box:
    return min(start[0], end[0]), min(start[1], end[1]), max(start[0], end[0]), max(start[1], end[1])
