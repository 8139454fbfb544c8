"""Ruling lines of a PDF page: the drawn lines, thin boxes and borders of boxes that tables are made of."""

from __future__ import annotations

import ctypes
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from functions.core import pdf_objects
from functions.core.pdf_geometry import Box, Frame, Matrix, Rectangle
from functions.core.pdf_objects import ADDRESS, cells_in, plain_call

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
_PATH, _FORM = 2, 5  # PDFium's types of page objects
_INEXACT = 0.01
"""So far may the same length be from itself, seen from one place or another."""


class Rule(NamedTuple):
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
    near: dict[tuple[int, int], list[int]] = defaultdict(list)  # the numbers of the stacks hereabouts
    for rule in sorted((rule for rule in rules if rule.level), key=lambda rule: rule.at):
        _, at, start, end = rule
        across, along = int(start // SNAP), int(end // SNAP)
        for number in near[across, along]:
            _, _, first, last = stacks[number][0]
            if abs(first - start) <= SNAP and abs(last - end) <= SNAP:
                if at - stacks[number][-1].at > SNAP:
                    stacks[number].append(rule)
                break
        else:
            for place in itertools.product(range(across - 1, across + 2), range(along - 1, along + 2)):
                near[place].append(len(stacks))
            stacks.append([rule])
    return [stack for stack in stacks if len(stack) > 1]


class _Reader:
    """Walks over the objects of a page; holds the cells that PDFium writes into."""

    def __init__(self, frame: Frame) -> None:
        self._frame, (self._width, self._height) = frame, frame.size
        self._sides, self._modes, self._places = (ctypes.c_float * 4)(), (ctypes.c_int * 2)(), (ctypes.c_float * 6)()
        self._at_sides, self._at_modes = cells_in(self._sides), cells_in(self._modes, (0, 1))
        self._get_type = plain_call("FPDFPageObj_GetType", ADDRESS)
        self._get_bounds = plain_call("FPDFPageObj_GetBounds", ADDRESS)
        self._get_matrix = plain_call("FPDFPageObj_GetMatrix", ADDRESS)
        self._get_mode = plain_call("FPDFPath_GetDrawMode", ADDRESS)
        self._count_segments = plain_call("FPDFPath_CountSegments", ADDRESS)
        self._lines = pdf_objects.LineReader()
        self._last_seen: tuple[bytes, Matrix | None] = b"", None
        self._last_place = Matrix()

    def read(self, page: pypdfium2.PdfPage) -> list[Rule]:
        rules: list[Rule] = []
        for number, (path, form) in enumerate(self._paths(pdf_objects.list_objects(page))):
            rules += self._rules_of(path, form)
            if number > _MAX_PATHS or len(rules) > _MAX_RULES:
                return []
        return rules

    def _paths(
        self, items: Iterable[int], form: Matrix | None = None, depth: int = 0
    ) -> Iterator[tuple[int, Matrix | None]]:
        """Path objects with the matrix of the form object they stand in."""
        get_type = self._get_type
        for item in items:
            kind = get_type(item)
            if kind == _PATH:
                yield item, form
            elif kind == _FORM and depth < _MAX_DEPTH:
                yield from self._paths(pdf_objects.list_form(item), self._place(item, form), depth + 1)

    def _place(self, item: int, form: Matrix | None) -> Matrix:
        """How points of an object that stands in a form, or on the page itself, become points of the page."""
        self._get_matrix(item, ctypes.byref(self._places))
        seen = bytes(self._places), form
        if seen != self._last_seen:  # most objects stand where the one before does
            own = Matrix(*self._places)
            self._last_seen, self._last_place = seen, own if form is None else own.within(form)
        return self._last_place

    def _rules_of(self, path: int, form: Matrix | None) -> Sequence[Rule]:
        if not self._get_bounds(path, *self._at_sides):
            return ()
        left, bottom, right, top = self._sides if form is None else form.place_rectangle((*self._sides,))
        if right - left < _SHORTEST - _INEXACT and top - bottom < _SHORTEST - _INEXACT:
            return ()
        self._get_mode(path, *self._at_modes)
        if not any(self._modes):
            return ()
        box = self._frame.place((left, bottom, right, top))
        width, height = box[2] - box[0], box[3] - box[1]
        if min(width, height) <= _THICK:
            rule = _rule_of(box)
            return () if rule is None else (rule,)
        if width < _WHOLE_PAGE * self._width or height < _WHOLE_PAGE * self._height:
            place = self._frame.place
            return [rule for box in self._strokes(path, form) if (rule := _rule_of(place(box))) is not None]
        return ()

    def _strokes(self, path: int, form: Matrix | None) -> Iterator[Rectangle]:
        """The boxes, on the page, around straight lines of a path that may be rules; none of a large drawing."""
        count, thickest, shortest = self._count_segments(path), _THICK + _INEXACT, _SHORTEST - _INEXACT
        if count > _MAX_SEGMENTS:
            return
        for (x0, y0), (x1, y1) in self._lines.read(path, self._place(path, form), count, closing=True):
            left, right = (x0, x1) if x0 < x1 else (x1, x0)
            bottom, top = (y0, y1) if y0 < y1 else (y1, y0)
            width, height = right - left, top - bottom
            if (width < thickest or height < thickest) and (width > shortest or height > shortest):
                yield left, bottom, right, top


def _rule_of(box: Box) -> Rule | None:
    """The rule that a long and thin box is."""
    left, top, right, bottom = box
    if right - left >= _SHORTEST and bottom - top <= _THICK:
        return Rule(True, (top + bottom) / 2, left, right)
    if bottom - top >= _SHORTEST and right - left <= _THICK:
        return Rule(False, (left + right) / 2, top, bottom)
    return None
