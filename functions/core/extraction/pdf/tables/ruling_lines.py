"""Reads the ruling lines of a PDF page: drawn lines, thin boxes and the sides of boxes, of which tables are made."""

from __future__ import annotations

import ctypes
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from functions.core.extraction.pdf.geometry import Box, Frame, Matrix, Rectangle
from functions.core.extraction.pdf.page_objects import (
    ADDRESS,
    LineReader,
    cells_in,
    list_form,
    list_objects,
    plain_call,
)

if TYPE_CHECKING:
    import pypdfium2

SNAP = 3.0
"""Points: lines up to this far apart are one line, and lines whose ends miss each other by less meet."""

_MAX_PATHS, _MAX_RULES = 6_000, 4_000
"""A page with more of either is one large drawing, and has no ruled tables."""
_MAX_DEPTH = 5
"""How deep form objects are followed into form objects."""
_MAX_SEGMENTS = 2_000
"""A path with more segments is a drawing, and none of its lines are rules."""
_THICKEST = 4.0
"""Points: a thicker box is an area and no line."""
_SHORTEST = 6.0
"""Points: a shorter line is too short for the side of a cell."""
_WHOLE_PAGE = 0.9
"""The share of both the page's width and its height from which on a path is the background or the frame of the page."""
_STRIPE = 50.0
"""Points: the height of the stripes of a page in which areas are compared with each other."""
_TOUCHING, _LARGER = 0.5, 1.01
"""Points by which an area may reach over a larger one and still be on it, and how many times as large that is."""
_RECTANGLE_SEGMENTS = 6
"""The most segments of a path that is a rectangle."""
_ROUNDING = 0.01
"""Points: how much a length may differ when it is computed before and after a transformation."""
_PATH, _FORM = 2, 5  # PDFium's types of page objects


class Rule(NamedTuple):
    """A horizontal line at height `at` from left to right, or a vertical one at `at` from top to bottom; in points."""

    is_horizontal: bool
    at: float
    start: float
    end: float


def read_rules(page: pypdfium2.PdfPage, frame: Frame) -> list[Rule]:
    """All horizontal and vertical lines of a page and its form objects; none of a page that is one large drawing."""
    return _RuleReader(frame).read(page)


def stack_rules(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Horizontal rules that begin and end at the same places, from the top down; stacks of at least two rules."""
    return stack_equal([rule for rule in rules if rule.is_horizontal])


def stack_equal(rules: Iterable[Rule]) -> list[list[Rule]]:
    """Parallel rules that begin and end at the same places, in order; stacks of at least two rules."""
    stacks: list[list[Rule]] = []
    near: dict[tuple[int, int], list[int]] = defaultdict(list)  # the stacks whose first rule begins and ends nearby
    for rule in sorted(rules, key=lambda rule: rule.at):
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


class _Area(NamedTuple):
    """A filled path without an outline, and the rules that its sides make."""

    colour: bytes
    box: Box
    is_rectangle: bool
    rules: Sequence[Rule]


def _drop_unseen(areas: Sequence[_Area]) -> Iterator[_Area]:
    """The areas without those on a larger one of the same colour: a shaded cell may have shaded lines of text."""
    near: dict[tuple[bytes, int], list[Box]] = defaultdict(list)
    for colour, box, is_rectangle, _ in areas:
        if is_rectangle and min(box[2] - box[0], box[3] - box[1]) > _THICKEST:
            for stripe in range(int(box[1] // _STRIPE), int(box[3] // _STRIPE) + 1):
                near[colour, stripe].append(box)
    for area in areas:
        left, top, right, bottom = area.box
        size = (right - left) * (bottom - top)
        if not any(
            x0 - _TOUCHING <= left
            and right <= x1 + _TOUCHING
            and y0 - _TOUCHING <= top
            and bottom <= y1 + _TOUCHING
            and (x1 - x0) * (y1 - y0) > size * _LARGER
            for x0, y0, x1, y1 in near[area.colour, int(top // _STRIPE)]
        ):
            yield area


class _RuleReader:
    """Reads the objects of a page one after the other, through the same buffers for PDFium's answers."""

    def __init__(self, frame: Frame) -> None:
        self._frame, (self._width, self._height) = frame, frame.size
        self._sides, self._modes, self._places = (ctypes.c_float * 4)(), (ctypes.c_int * 2)(), (ctypes.c_float * 6)()
        self._at_sides, self._at_modes = cells_in(self._sides), cells_in(self._modes, (0, 1))
        self._get_type = plain_call("FPDFPageObj_GetType", ADDRESS)
        self._get_bounds = plain_call("FPDFPageObj_GetBounds", ADDRESS)
        self._get_matrix = plain_call("FPDFPageObj_GetMatrix", ADDRESS)
        self._colour = (ctypes.c_uint * 4)()
        self._at_colour = cells_in(self._colour)
        self._get_fill = plain_call("FPDFPageObj_GetFillColor", ADDRESS)
        self._get_mode = plain_call("FPDFPath_GetDrawMode", ADDRESS)
        self._count_segments = plain_call("FPDFPath_CountSegments", ADDRESS)
        self._lines = LineReader()
        self._last_key: tuple[bytes, Matrix | None] = b"", None
        self._last_matrix = Matrix()

    def read(self, page: pypdfium2.PdfPage) -> list[Rule]:
        rules: list[Rule] = []
        areas: list[_Area] = []
        for number, (path, form) in enumerate(self._list_paths(list_objects(page))):
            found = self._read_path(path, form)
            if found and self._modes[0] and not self._modes[1]:
                areas.append(self._as_area(path, form, found))
            else:
                rules += found
            if number > _MAX_PATHS or len(rules) + len(areas) > _MAX_RULES:
                return []
        rules += itertools.chain.from_iterable(area.rules for area in _drop_unseen(areas))
        return rules if len(rules) <= _MAX_RULES else []

    def _as_area(self, path: int, form: Matrix | None, rules: Sequence[Rule]) -> _Area:
        """The filled path whose bounds and modes were read last."""
        self._get_fill(path, *self._at_colour)
        left, bottom, right, top = self._sides if form is None else form.place_rectangle((*self._sides,))
        is_rectangle = self._count_segments(path) <= _RECTANGLE_SEGMENTS
        return _Area(bytes(self._colour), self._frame.place((left, bottom, right, top)), is_rectangle, rules)

    def _list_paths(
        self, items: Iterable[int], form: Matrix | None = None, depth: int = 0
    ) -> Iterator[tuple[int, Matrix | None]]:
        """Path objects, each with the matrix of the form object around it."""
        get_type = self._get_type
        for item in items:
            kind = get_type(item)
            if kind == _PATH:
                yield item, form
            elif kind == _FORM and depth < _MAX_DEPTH:
                yield from self._list_paths(list_form(item), self._read_matrix(item, form), depth + 1)

    def _read_matrix(self, item: int, form: Matrix | None) -> Matrix:
        """The transformation from the space of an object, in a form or on the page itself, to page space."""
        self._get_matrix(item, ctypes.byref(self._places))
        key = bytes(self._places), form
        if key != self._last_key:  # most objects have the matrix of the object before
            own = Matrix(*self._places)
            self._last_key, self._last_matrix = key, own if form is None else own.within(form)
        return self._last_matrix

    def _read_path(self, path: int, form: Matrix | None) -> Sequence[Rule]:
        if not self._get_bounds(path, *self._at_sides):
            return ()
        left, bottom, right, top = self._sides if form is None else form.place_rectangle((*self._sides,))
        if right - left < _SHORTEST - _ROUNDING and top - bottom < _SHORTEST - _ROUNDING:
            return ()
        self._get_mode(path, *self._at_modes)
        if not any(self._modes):
            return ()
        box = self._frame.place((left, bottom, right, top))
        width, height = box[2] - box[0], box[3] - box[1]
        if min(width, height) <= _THICKEST:
            rule = _as_rule(box)
            return () if rule is None else (rule,)
        if width < _WHOLE_PAGE * self._width or height < _WHOLE_PAGE * self._height:
            place = self._frame.place
            return [rule for box in self._list_thin_boxes(path, form) if (rule := _as_rule(place(box))) is not None]
        return ()

    def _list_thin_boxes(self, path: int, form: Matrix | None) -> Iterator[Rectangle]:
        """The bounds, in page space, of straight lines of a path that may be rules; none of a large drawing."""
        count, thickest, shortest = self._count_segments(path), _THICKEST + _ROUNDING, _SHORTEST - _ROUNDING
        if count > _MAX_SEGMENTS:
            return
        for (x0, y0), (x1, y1) in self._lines.read(path, self._read_matrix(path, form), count, closing=True):
            left, right = (x0, x1) if x0 < x1 else (x1, x0)
            bottom, top = (y0, y1) if y0 < y1 else (y1, y0)
            width, height = right - left, top - bottom
            if (width < thickest or height < thickest) and (width > shortest or height > shortest):
                yield left, bottom, right, top


def _as_rule(box: Box) -> Rule | None:
    """A long, thin box as a rule; otherwise None."""
    left, top, right, bottom = box
    if right - left >= _SHORTEST and bottom - top <= _THICKEST:
        return Rule(True, (top + bottom) / 2, left, right)
    if bottom - top >= _SHORTEST and right - left <= _THICKEST:
        return Rule(False, (left + right) / 2, top, bottom)
    return None
