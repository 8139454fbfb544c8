"""Geometry of PDF pages: page space, pages rotated until their lines are horizontal, and boxes on them."""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pypdfium2

Rectangle = tuple[float, float, float, float]
"""Left, bottom, right, top in page space: points, y up, the page not rotated. PDFium gives bounds in this form."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom on a turned page: points, y down."""

Point = tuple[float, float]

_CLEAR_MAJORITY = 0.6
"""A page is turned for its text only if more than this share of its characters have the same direction."""


class Matrix(NamedTuple):
    """The transformation from an object's own space to the space around it: x' = ax + cy + e, y' = bx + dy + f."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def place_rectangle(self, rectangle: Rectangle) -> Rectangle:
        """The bounds of the transformed rectangle."""
        left, bottom, right, top = rectangle
        a, b, c, d, e, f = self
        across = a * left + c * bottom + e, a * left + c * top + e, a * right + c * bottom + e, a * right + c * top + e
        up = b * left + d * bottom + f, b * left + d * top + f, b * right + d * bottom + f, b * right + d * top + f
        return min(across), min(up), max(across), max(up)

    @property
    def scale(self) -> float:
        """The factor by which lengths grow, as the square root of the factor of areas."""
        return math.sqrt(abs(self.a * self.d - self.b * self.c))

    def within(self, outer: Matrix) -> Matrix:
        """This transformation followed by `outer`."""
        a, b, c, d, e, f = self
        u, v, w, x, y, z = outer
        return Matrix(a * u + b * w, a * v + b * x, c * u + d * w, c * v + d * x, u * e + w * f + y, v * e + x * f + z)


def turn(rectangle: Rectangle, turns: int) -> Box:
    """A rectangle of page space on the page turned clockwise about its origin by 0 to 3 quarter turns."""
    left, bottom, right, top = rectangle
    if turns == 0:
        return left, -top, right, -bottom
    if turns == 1:
        return bottom, left, top, right
    if turns == 2:
        return -right, bottom, -left, top
    return -top, -right, -bottom, -left


@dataclass(frozen=True, slots=True)
class Frame:
    """A page turned clockwise by 0 to 3 quarter turns; x and y are 0 at its left and upper edge.

    `origin` is its upper left corner as `turn` places it, `size` its width and height, both in points.
    """

    turns: int
    origin: Point
    size: tuple[float, float]

    @classmethod
    def of(cls, bounds: Rectangle, turns: int) -> Frame:
        """The frame of a page with these bounds in page space."""
        left, top, right, bottom = turn(bounds, turns)
        return cls(turns, (left, top), (right - left, bottom - top))

    @classmethod
    def of_text(cls, page: pypdfium2.PdfPage, angles: Sequence[float]) -> Frame:
        """The frame in which more characters stand upright than in any other; `angles` as for `count_turns`."""
        votes = count_turns(angles).most_common(1)
        return cls.of(page.get_bbox(), votes[0][0] if votes else 0)

    @classmethod
    def as_seen(cls, page: pypdfium2.PdfPage) -> Frame:
        """The page as viewers show it."""
        return cls.of(page.get_bbox(), page.get_rotation() // 90)

    def place(self, rectangle: Rectangle) -> Box:
        """A rectangle of page space in this frame."""
        left, top, right, bottom = turn(rectangle, self.turns)
        x, y = self.origin
        return left - x, top - y, right - x, bottom - y

    def place_all(self, rectangles: Sequence[Rectangle]) -> list[Box]:
        """Rectangles of page space in this frame; a page has thousands, nearly always without a turn."""
        if self.turns:
            return [self.place(rectangle) for rectangle in rectangles]
        x, y = self.origin
        return [(left - x, -top - y, right - x, -bottom - y) for left, bottom, right, top in rectangles]


def count_turns(angles: Sequence[float]) -> collections.Counter[int]:
    """How many characters stand upright after each number of clockwise quarter turns of the page.

    `angles` are those of characters in radians as PDFium gives them, negative where it knows none.
    """
    if angles and min(angles) == max(angles) >= 0:  # on most pages
        return collections.Counter({-round(angles[0] / (math.pi / 2)) % 4: len(angles)})
    return collections.Counter(-round(angle / (math.pi / 2)) % 4 for angle in angles if angle >= 0)


def find_level_turns(angles: Sequence[float], default: int) -> int:
    """The quarter turns after which a clear majority of characters stand upright, else `default`."""
    votes = count_turns(angles)
    turns, count = votes.most_common(1)[0] if votes else (default, 0)
    return turns if count > _CLEAR_MAJORITY * votes.total() else default


def join_boxes(box: Box, other: Box) -> Box:
    """The box around both."""
    x0, y0, x1, y1 = box
    left, top, right, bottom = other
    return min(x0, left), min(y0, top), max(x1, right), max(y1, bottom)


def stands_on(rectangle: Rectangle, ground: Rectangle) -> bool:
    """Whether the middle of `rectangle` is inside `ground`."""
    across, up = (rectangle[0] + rectangle[2]) / 2, (rectangle[1] + rectangle[3]) / 2
    return ground[0] <= across <= ground[2] and ground[1] <= up <= ground[3]
