"""The text of a PDF page where it stands: characters, words, pieces of lines, and the rows they make."""

from __future__ import annotations

import ctypes
import re
import statistics
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from functions.core.pdf_geometry import Box, Frame
from functions.core.pdf_objects import ADDRESS, address_of, cells_in, plain_call

if TYPE_CHECKING:
    import pypdfium2

SOFT_HYPHEN = "\u00ad"
CAP_HEIGHT = 0.72
"""Height of capitals and digits by the size of their font: boxes of characters are as high as what is drawn."""
WIDE = 0.7
"""A gap in a line, by the size of the font, from which on two columns may lie on its sides."""

_SAME_LINE = 0.35
_TOUCHING = 0.6
_NARROW_SPACE, _BEARING = 0.6, 0.4
_FARTHEST_LINE = 8.0
_TALLEST_ROW = 10.0
_HIGHEST_START = 5.0
_FOUR_DOUBLES = struct.Struct("4d")
_LEADERS = re.compile(r"(?:\s?[.…·_]){4,}")
_LAST_DOTS = re.compile(r"\s\.{2,}$")

Glyph = tuple[int, float, float, float, float]
"""Where a visible character is in the text, and its box."""


class Piece(NamedTuple):
    """A word, or words of one line with no wide gap between: page text [start, end), on the base line `base`."""

    start: int
    end: int
    x0: float
    top: float
    x1: float
    bottom: float
    base: float
    words: tuple[Piece, ...] = ()
    tied: bool = False
    """Whether nothing but one typed space is between this word and the one before: spaces of some fonts are wide."""

    @property
    def middle(self) -> float:
        return (self.x0 + self.x1) / 2


@dataclass(slots=True)
class Band:
    """Pieces that the text goes through before any below them: a line, or a row whose cells have several."""

    pieces: list[Piece]

    @property
    def first_base(self) -> float:
        return min([piece.base for piece in self.pieces])

    @property
    def last_base(self) -> float:
        return max([piece.base for piece in self.pieces])

    @property
    def words(self) -> Iterator[Piece]:
        return (word for piece in self.pieces for word in piece.words)


def is_visible(character: str) -> bool:
    return character > " " and not character.isspace()


def find_leaders(text: str) -> set[int]:
    """Where the dots stand that lead from one column to the next."""
    return {at for match in _LEADERS.finditer(text) for at in range(*match.span())}


def read_glyphs(
    text_page: pypdfium2.PdfTextPage, text: str, indices: Sequence[int | None], frame: Frame
) -> list[Glyph]:
    """The visible characters of a text in its order; one without a box stands where the one before does."""
    get_box, handle = plain_call("FPDFText_GetCharBox", ADDRESS), address_of(text_page.raw)
    sides = (ctypes.c_double * 4)()
    left, right, bottom, top = cells_in(sides, (0, 2, 1, 3))
    unpack, visible = _FOUR_DOUBLES.unpack, {character for character in set(text) if is_visible(character)}
    places: list[int] = []
    boxes: list[Box] = []
    for at, (character, index) in enumerate(zip(text, indices, strict=True)):
        if character not in visible:
            continue
        if index is not None and get_box(handle, index, left, right, bottom, top):
            boxes.append(unpack(sides))
            places.append(at)
        elif places and places[-1] == at - 1:
            boxes.append(boxes[-1])
            places.append(at)
    return [(at, *box) for at, box in zip(places, frame.place_all(boxes), strict=True)]


def find_words(
    text_page: pypdfium2.PdfTextPage, text: str, glyphs: Iterable[Glyph], indices: Sequence[int | None], frame: Frame
) -> list[Piece]:
    """Words in the order of the text, without leader dots."""
    handle, get_origin = address_of(text_page.raw), plain_call("FPDFText_GetCharOrigin", ADDRESS)
    leaders, point = find_leaders(text), (ctypes.c_double * 2)()
    x, y = cells_in(point, (0, 1))
    words: list[Piece] = []
    for start, end, x0, top, x1, bottom in _runs(glyphs, leaders):
        base, index = bottom, indices[start]
        if index is not None and get_origin(handle, index, x, y):
            base = frame.place((point[0], point[1], point[0], point[1]))[1]
        tied = False
        if words and words[-1].end == start - 1 and x0 - words[-1].x1 > _NARROW_SPACE * (bottom - top):
            space = _read_box(text_page, indices[start - 1], frame)
            if space is not None and space[2] > space[0]:
                tied = max(space[0] - words[-1].x1, x0 - space[2]) < _BEARING * (bottom - top)
        words.append(Piece(start, end, x0, top, x1, bottom, base, tied=tied))
    return words


def _read_box(text_page: pypdfium2.PdfTextPage, index: int | None, frame: Frame) -> Box | None:
    sides = (ctypes.c_double * 4)()
    get_box, cells = plain_call("FPDFText_GetCharBox", ADDRESS), cells_in(sides, (0, 2, 1, 3))
    if index is None or not get_box(address_of(text_page.raw), index, *cells):
        return None
    return frame.place(_FOUR_DOUBLES.unpack(sides))


def _runs(glyphs: Iterable[Glyph], leaders: set[int]) -> Iterator[tuple[int, int, float, float, float, float]]:
    """Characters that follow each other in text and on the page: start, end, left, top, right, bottom."""
    start = end = -1
    left = top = right = bottom = 0.0
    last_x1 = last_bottom = last_height = 0.0
    for at, x0, y0, x1, y1 in glyphs:
        if at in leaders:
            continue
        height = y1 - y0
        if at == end:
            tallest = height if height > last_height else last_height
            if -tallest < x0 - last_x1 < _TOUCHING * tallest and abs(y1 - last_bottom) < tallest:
                end, last_x1, last_bottom, last_height = at + 1, x1, y1, height
                left, top = x0 if x0 < left else left, y0 if y0 < top else top
                right, bottom = x1 if x1 > right else right, y1 if y1 > bottom else bottom
                continue
        if start >= 0:
            yield start, end, left, top, right, bottom
        start, end, left, top, right, bottom = at, at + 1, x0, y0, x1, y1
        last_x1, last_bottom, last_height = x1, y1, height
    if start >= 0:
        yield start, end, left, top, right, bottom


def font_size(words: Iterable[Piece]) -> float:
    """The usual size of the font of these words, in points."""
    heights = [word.bottom - word.top for word in words]
    return max(statistics.median(heights), 2.0) / CAP_HEIGHT if heights else 10.0


def join_words(words: Iterable[Piece], size: float) -> list[Piece]:
    """Pieces of lines: neighbouring words with no wide gap between, in the order of the text."""
    pieces: list[list[Piece]] = []
    right = base = float("-inf")
    for word in words:
        widest = 2 * WIDE if word.tied else WIDE
        if abs(base - word.base) <= _SAME_LINE * size and -0.5 * size < word.x0 - right < widest * size:
            pieces[-1].append(word)
        else:
            pieces.append([word])
        right, base = word.x1, word.base
    return [join_pieces(words) for words in pieces]


def join_pieces(words: Sequence[Piece]) -> Piece:
    """One piece of words that follow each other in the text."""
    first, words = words[0], tuple(words)
    if len(words) == 1:
        return Piece(first.start, first.end, first.x0, first.top, first.x1, first.bottom, first.base, words)
    return Piece(
        first.start,
        words[-1].end,
        min([word.x0 for word in words]),
        min([word.top for word in words]),
        max([word.x1 for word in words]),
        max([word.bottom for word in words]),
        statistics.median_low([word.base for word in words]),
        words,
    )


def _on_one_line(one: Piece, other: Piece, size: float) -> bool:
    return abs(one.base - other.base) <= _SAME_LINE * size


def find_blocks(pieces: Iterable[Piece], size: float) -> list[list[Band]]:
    """Bands from the top down, in the order of the text; a new block begins where the text jumps.

    Bands are the thinnest stripes through which the text runs in order. In a row whose cells have several lines it
    goes back up for each cell, so that all its lines are one band, while every line of prose is a band.
    """
    blocks: list[list[Band]] = []
    for piece in pieces:
        if not blocks or not _add(blocks[-1], piece, size):
            blocks.append([Band([piece])])
    return blocks


def _add(block: list[Band], piece: Piece, size: float) -> bool:
    """Puts a piece where it belongs in a block, or says that it does not."""
    last = block[-1].pieces[-1]
    beside = piece.x0 > last.x1 - size
    if _on_one_line(last, piece, size) and beside:
        block[-1].pieces.append(piece)
        return True
    lowest = block[-1].last_base
    if piece.base > lowest + _SAME_LINE * size:
        if piece.base - lowest > _FARTHEST_LINE * size:
            return False
        block.append(Band([piece]))
        return True
    # Up again: the next cell of a row, whose lines so far are one band with it, unless it is the next column of a page.
    if piece.base < block[0].first_base - (_HIGHEST_START if beside else 1.0) * size:
        return False
    first = next((n for n, band in enumerate(block) if band.last_base >= piece.base - _SAME_LINE * size), len(block))
    merged = [other for band in block[first:] for other in band.pieces]
    if lowest - piece.base > _TALLEST_ROW * size or any(_overlap(piece, other) for other in merged):
        return False
    block[first:] = [Band([*merged, piece])]
    return True


def _overlap(one: Piece, other: Piece) -> bool:
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    down = min(one.bottom, other.bottom) - max(one.top, other.top)
    return across > 1 and down > 1


def read_cell(text: str, places: Sequence[int]) -> str:
    """The characters at these places as they read: spaces between lines, line-end hyphens undone, no leader dots."""
    parts: list[str] = []
    before: int | None = None
    for at in places:
        if before is not None and at != before + 1 and text[before] != SOFT_HYPHEN:
            parts.append(" ")
        parts.append(text[at])
        before = at
    cell = "".join(parts)
    if cell.endswith(SOFT_HYPHEN):  # PDFium takes a hyphen at the end of a cell for one inside a word
        cell = cell[:-1] + "-"
    return " ".join(_LAST_DOTS.sub("", _LEADERS.sub(" ", cell.replace(SOFT_HYPHEN, ""))).split())
