"""Text with its place on a PDF page: characters, words, pieces of lines, and the bands they make.

Lengths in em are multiples of the font size; those in heights are multiples of the height of a character as drawn.

The thresholds of the table finder were chosen on the generated documents of its tests. On 40 others (seeds from 10,000
of `tests.random_tables`) cell F1 is 0.9999 for ruled tables and 0.996 for unruled ones. Of 19 thresholds varied one by
one, only four changed that by more than 0.001; their descriptions give the figures.
"""

from __future__ import annotations

import ctypes
import re
import statistics
import struct
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from functions.core.extraction.pdf.geometry import Box, Frame
from functions.core.extraction.pdf.page_objects import ADDRESS, address_of, cells_in, plain_call

if TYPE_CHECKING:
    import pypdfium2

SOFT_HYPHEN = "\u00ad"
CAP_HEIGHT = 0.72
"""Em: the height of capitals and digits, from which the font size is computed: boxes fit what is drawn."""
WIDE_GAP = 0.7
"""Em: a gap in a line from this width on may separate two columns.

Cell F1 of unruled tables: 0.985 at 0.5, 0.992 at 0.6, 0.996 at 0.7, 0.991 at 0.85, 0.974 at 1.0.
"""

_WIDE_TYPED_SPACE = 2 * WIDE_GAP
"""Em: the same for a gap that is one typed space, since some fonts have wide spaces."""
_FARTHEST_FIGURE = 8.0
"""Em: how far to the right of its currency a figure may stand, where statements align both."""
_SAME_LINE = 0.35
"""Em: how far apart the base lines of words in one line may be, as they are where some are raised or lowered."""
_WORD_OVERLAP = 0.5
"""Em: how far a word may begin before the end of the one before it; one farther back begins a new piece."""
_CHARACTER_GAP = 0.6
"""Heights: the gap at which a word ends although the text has no space there."""
_NARROW_SPACE = 0.6
"""Heights: only wider gaps are checked for being one typed space; narrower ones never separate columns."""
_BEARING = 0.4
"""Heights: the most white on either side of a typed space; with more, the gap is not that space alone."""
_FARTHEST_LINE = 8.0
"""Em: a line farther below belongs to another block."""
_TALLEST_ROW = 10.0
"""Em: text that goes farther back up is no further cell of the same row."""
_HIGHEST_START_BESIDE, _HIGHEST_START = 5.0, 1.0
"""Em: how far above the first line of its block a next cell may begin, right of the last piece and elsewhere.

Text that begins higher is the next column of the page.
"""
_OVERLAP = 1.0
"""Points: boxes that share less, across or down, only touch."""
_SMALLEST_HEIGHT, _DEFAULT_SIZE = 2.0, 10.0
"""Points: the least height of words that is believed, and the font size of a page without words."""
_FOUR_DOUBLES = struct.Struct("4d")
_LEADERS = re.compile(r"(?:\s?[.…·_]){4,}")
_LAST_DOTS = re.compile(r"\s\.{2,}$")

Glyph = tuple[int, float, float, float, float]
"""The offset of a visible character in the page text, and its box."""


class Piece(NamedTuple):
    """A word, or words of one line without a wide gap between them: page text [start, end), on the base line `base`."""

    start: int
    end: int
    x0: float
    top: float
    x1: float
    bottom: float
    base: float
    words: tuple[Piece, ...] = ()
    follows_space: bool = False
    """Whether one typed space fills the gap between the word before and this one."""

    @property
    def middle(self) -> float:
        return (self.x0 + self.x1) / 2


@dataclass(slots=True)
class Band:
    """Pieces that come in the text before all pieces below them: a line, or a row whose cells have several lines."""

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
    """The offsets of leader dots, which lead the eye from one column to the next."""
    return {at for match in _LEADERS.finditer(text) for at in range(*match.span())}


def read_glyphs(
    text_page: pypdfium2.PdfTextPage, text: str, indices: Sequence[int | None], frame: Frame
) -> list[Glyph]:
    """The visible characters in the order of the text; one without a box gets that of the character before it."""
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
    for start, end, x0, top, x1, bottom in _join_glyphs(glyphs, leaders):
        base, index = bottom, indices[start]
        if index is not None and get_origin(handle, index, x, y):
            base = frame.place((point[0], point[1], point[0], point[1]))[1]
        follows_space = False
        if words and words[-1].end == start - 1 and x0 - words[-1].x1 > _NARROW_SPACE * (bottom - top):
            space = _read_box(text_page, indices[start - 1], frame)
            if space is not None and space[2] > space[0]:
                follows_space = max(space[0] - words[-1].x1, x0 - space[2]) < _BEARING * (bottom - top)
        words.append(Piece(start, end, x0, top, x1, bottom, base, follows_space=follows_space))
    return words


def _read_box(text_page: pypdfium2.PdfTextPage, index: int | None, frame: Frame) -> Box | None:
    sides = (ctypes.c_double * 4)()
    get_box, cells = plain_call("FPDFText_GetCharBox", ADDRESS), cells_in(sides, (0, 2, 1, 3))
    if index is None or not get_box(address_of(text_page.raw), index, *cells):
        return None
    return frame.place(_FOUR_DOUBLES.unpack(sides))


def _join_glyphs(glyphs: Iterable[Glyph], leaders: set[int]) -> Iterator[tuple[int, int, float, float, float, float]]:
    """Characters that are neighbours both in the text and on the page: start, end, left, top, right, bottom."""
    start = end = -1
    left = top = right = bottom = 0.0
    last_x1 = last_bottom = last_height = 0.0
    for at, x0, y0, x1, y1 in glyphs:
        if at in leaders:
            continue
        height = y1 - y0
        if at == end:
            tallest = height if height > last_height else last_height
            if -tallest < x0 - last_x1 < _CHARACTER_GAP * tallest and abs(y1 - last_bottom) < tallest:
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


def measure_font_size(words: Iterable[Piece]) -> float:
    """The median font size of these words, in points."""
    heights = [word.bottom - word.top for word in words]
    return max(statistics.median(heights), _SMALLEST_HEIGHT) / CAP_HEIGHT if heights else _DEFAULT_SIZE


def join_words(words: Iterable[Piece], size: float, signs: Set[int] = frozenset()) -> list[Piece]:
    """Pieces of lines, each of neighbouring words without a wide gap between them, in the order of the text.

    `signs` are the offsets of currencies that may stand apart from the figure after them.
    """
    pieces: list[list[Piece]] = []
    right = base = float("-inf")
    before = -1
    for word in words:
        widest = _WIDE_TYPED_SPACE if word.follows_space else WIDE_GAP
        widest = _FARTHEST_FIGURE if before in signs else widest
        if abs(base - word.base) <= _SAME_LINE * size and -_WORD_OVERLAP * size < word.x0 - right < widest * size:
            pieces[-1].append(word)
        else:
            pieces.append([word])
        right, base, before = word.x1, word.base, word.start
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


def sort_by_place(pieces: Iterable[Piece], size: float) -> list[Piece]:
    """The pieces line by line from the top of the page down, each line from left to right."""
    lines: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda piece: piece.base):
        if not lines or not _on_one_line(lines[-1][0], piece, size):
            lines.append([])
        lines[-1].append(piece)
    return [piece for line in lines for piece in sorted(line, key=lambda piece: piece.x0)]


def find_blocks(pieces: Iterable[Piece], size: float) -> list[list[Band]]:
    """Blocks of bands, both in the order of the text; a new block begins where the text jumps to another place.

    A band is the thinnest horizontal stripe of the page that the text finishes before it goes on below. In a row whose
    cells have several lines the text goes back up for each cell, so that all lines of the row are one band; every line
    of prose is a band of its own.
    """
    blocks: list[list[Band]] = []
    for piece in pieces:
        if not blocks or not _try_to_add(piece, blocks[-1], size):
            blocks.append([Band([piece])])
    return blocks


def _try_to_add(piece: Piece, block: list[Band], size: float) -> bool:
    """Adds a piece to the band of a block that it belongs to; False if it does not belong to the block."""
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
    # The text goes back up: for the next cell of a row, or for the next column of the page.
    highest = _HIGHEST_START_BESIDE if beside else _HIGHEST_START
    if piece.base < block[0].first_base - highest * size:
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
    return across > _OVERLAP and down > _OVERLAP


def read_cell(text: str, places: Sequence[int]) -> str:
    """The text of a cell, given the offsets of its characters: lines joined by spaces or at hyphens, no leader dots."""
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
