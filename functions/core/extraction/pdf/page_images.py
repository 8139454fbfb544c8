"""Draws a page as a PNG picture with a passage highlighted, and finds the rectangles to highlight."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from functions.core import errors, models
from functions.core.extraction.pdf.geometry import Box, Frame, Rectangle, join_boxes
from functions.core.extraction.pdf.reader import character_indices, open_pdf, open_text_page

if TYPE_CHECKING:  # loading PDFium costs 50 ms, and only where a page is shown
    import pypdfium2

MAX_PIXELS = 4_000_000
"""The most pixels of a picture of a page, each of three bytes."""
SCALES = (0.1, 4.0)
"""The smallest and the largest scale that can be asked for, in pixels a point."""
_INK = (255, 214, 10)
"""Red, green and blue of a highlight, 0..255."""
_INK_STRENGTH = 0.7
"""How much of the highlight's colour white paper takes on, from 0 to 1."""

_LEVEL_SINE = 0.7
"""Text whose angle has a smaller sine is level: up to nearly 45 degrees."""
_MIN_OVERLAP = 0.5
"""The share of the smaller height by which two boxes of one line overlap, at least."""
_WIDEST_GAP = 3.0
"""The widest gap within a line, in heights of the taller of the boxes beside it; gaps between columns are wider."""
_LARGEST_LOOSE = 12.0
"""The largest plausible loose box of a character, in longer sides of its tight box."""
_SPACES = frozenset({0x20, 0xA0, 0x09, 0x0A, 0x0D})

# PNG, W3C Recommendation, third edition. Written here because Pillow was a quarter of the package that shows pages.
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BIT_DEPTH, _TRUECOLOUR = 8, 2
_UNFILTERED = b"\0"
"""The type of filter of a row: text on paper compresses better without one, unlike photographs."""
_COMPRESSION_LEVEL = 4


@dataclass(frozen=True, slots=True)
class Highlight:
    """A rectangle as fractions of the page as viewers show it: 0..1 from its left and its top."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Picture:
    """Pixels of three bytes: red, green, blue; rows from the top, each `stride` bytes after the one before it."""

    width: int
    height: int
    stride: int
    pixels: bytearray

    def rows(self) -> Iterator[memoryview]:
        """The pixels of each row, without the bytes that pad it to `stride`."""
        with memoryview(self.pixels) as pixels:
            for start in range(0, self.height * self.stride, self.stride):
                yield pixels[start : start + 3 * self.width]


@dataclass(slots=True)
class _Line:
    """The box around the text of one line so far, on the page as seen; `is_level` unless the text runs up or down."""

    box: Box
    is_level: bool

    def is_continued_by(self, box: Box, is_level: bool) -> bool:
        """Whether `box` is of this line: same direction, mostly beside it, and no gap (a column) between."""
        if is_level != self.is_level:
            return False
        # Of a line that runs up or down, x and y change places.
        start, low, end, high = self.box if is_level else _swap_axes(self.box)
        next_start, next_low, next_end, next_high = box if is_level else _swap_axes(box)
        heights = high - low, next_high - next_low
        overlap, gap = min(high, next_high) - max(low, next_low), max(start, next_start) - min(end, next_end)
        return overlap >= _MIN_OVERLAP * min(heights) and gap <= _WIDEST_GAP * max(heights)

    def add(self, box: Box) -> None:
        self.box = join_boxes(self.box, box)


def highlight_boxes(
    path: Path, page_number: int, start: int, end: int, *, words: Sequence[models.RecognizedWord] | None = None
) -> list[Highlight]:
    """The rectangles around stored page text [start, end), one for each line, in the order of the text.

    `words` are those of a page that OCR read, whose text is not in the file. Raises NotFoundError when there is no such
    page or passage, CorruptDocumentError when the page cannot be read.
    """
    with open_pdf(path) as pdf:
        _check_page(pdf, page_number)
        return _find_highlights(pdf, page_number, start, end, words)


def render_page(
    path: Path,
    page_number: int,
    *,
    start: int | None = None,
    end: int | None = None,
    scale: float = 1.5,
    words: Sequence[models.RecognizedWord] | None = None,
) -> bytes:
    """A PDF page as PNG, `scale` pixels a point but at most `MAX_PIXELS`, with text [start, end) highlighted if given.

    `words` as for `highlight_boxes`. Raises NotFoundError when there is no such page or passage, CorruptDocumentError
    when the page cannot be drawn.
    """
    with open_pdf(path) as pdf:
        _check_page(pdf, page_number)
        highlights = [] if start is None or end is None else _find_highlights(pdf, page_number, start, end, words)
        picture = _draw_page(pdf, page_number, scale)
    _highlight(picture, highlights)
    return encode_png(picture)


def _check_page(pdf: pypdfium2.PdfDocument, page_number: int) -> None:
    if not 1 <= page_number <= len(pdf):
        raise errors.NotFoundError("There is no such page.", page=page_number, page_count=len(pdf))


def _find_highlights(
    pdf: pypdfium2.PdfDocument,
    page_number: int,
    start: int,
    end: int,
    words: Sequence[models.RecognizedWord] | None,
) -> list[Highlight]:
    with open_text_page(pdf, page_number) as (page, text_page):
        frame = Frame.as_seen(page)
        if min(frame.size) <= 0:  # a crop box beside the page leaves nothing of it
            raise errors.CorruptDocumentError
        if words is None:
            indices = character_indices(text_page, start, end)
            characters = (_measure_character(text_page, index, frame) for index in indices if index is not None)
            lines = _join_characters(filter(None, characters))
        else:
            lines = _join_words(_choose_words(words, start, end), frame)
        return [Highlight(*_fractions_of(line.box, frame)) for line in lines]


def _choose_words(words: Sequence[models.RecognizedWord], start: int, end: int) -> list[models.RecognizedWord]:
    """The words that [start, end) overlaps; the text of a page that OCR read ends with its last word."""
    length = max((word.end for word in words), default=0)
    if not 0 <= start <= end <= length:
        raise errors.NotFoundError("The passage is not on this page.", start=start, end=end, length=length)
    return [word for word in words if max(word.start, start) < min(word.end, end)]


def _join_words(words: Sequence[models.RecognizedWord], frame: Frame) -> Iterator[_Line]:
    """Lines of words that follow each other closely: in a crooked scan one line reaches down into the next."""
    width, height = frame.size
    boxes = [(word.left * width, word.top * height, word.right * width, word.bottom * height) for word in words]
    is_level = sum(box[2] - box[0] for box in boxes) >= sum(box[3] - box[1] for box in boxes)
    line: _Line | None = None
    last: _Line | None = None
    for box in boxes:
        if line is not None and last is not None and last.is_continued_by(box, is_level):
            line.add(box)
        else:
            if line is not None:
                yield line
            line = _Line(box, is_level)
        last = _Line(box, is_level)
    if line is not None:
        yield line


def _join_characters(characters: Iterable[tuple[Box, bool]]) -> Iterator[_Line]:
    line: _Line | None = None
    for box, is_level in characters:
        if line is not None and line.is_continued_by(box, is_level):
            line.add(box)
            continue
        if line is not None:
            yield line
        line = _Line(box, is_level)
    if line is not None:
        yield line


def _measure_character(text_page: pypdfium2.PdfTextPage, index: int, frame: Frame) -> tuple[Box, bool] | None:
    """The box of one character and whether its line is level; None for white space and characters off the page."""
    from pypdfium2 import raw as pdfium

    if pdfium.FPDFText_IsGenerated(text_page, index) == 1 or pdfium.FPDFText_GetUnicode(text_page, index) in _SPACES:
        return None
    tight, loose = text_page.get_charbox(index), text_page.get_charbox(index, loose=True)
    box = _clip(frame.place(loose if _is_plausible(loose, tight) else tight), frame)
    angle = pdfium.FPDFText_GetCharAngle(text_page, index)
    is_level = (angle < 0 or abs(math.sin(angle)) < _LEVEL_SINE) == (frame.turns % 2 == 0)
    return (box, is_level) if box else None


def _is_plausible(loose: Rectangle, tight: Rectangle) -> bool:
    """Whether to trust a loose box (as high as the font): broken fonts make it empty or as large as the page."""
    height, width = loose[3] - loose[1], loose[2] - loose[0]
    side = max(tight[3] - tight[1], tight[2] - tight[0])
    return height > 0 and width > 0 and (side <= 0 or max(height, width) <= _LARGEST_LOOSE * side)


def _clip(box: Box, frame: Frame) -> Box | None:
    """The part of a box that is on the page, None when there is none."""
    width, height = frame.size
    left, top, right, bottom = max(0.0, box[0]), max(0.0, box[1]), min(width, box[2]), min(height, box[3])
    return (left, top, right, bottom) if left < right and top < bottom else None


def _swap_axes(box: Box) -> Box:
    left, top, right, bottom = box
    return top, left, bottom, right


def _fractions_of(box: Box, frame: Frame) -> Iterator[float]:
    return (round(side / whole, 5) for side, whole in zip(box, (*frame.size, *frame.size), strict=True))


def _draw_page(pdf: pypdfium2.PdfDocument, page_number: int, scale: float) -> Picture:
    import pypdfium2

    try:
        pdf.init_forms()  # filled-in fields are drawn too
        page = pdf[page_number - 1]
        try:
            width, height = page.get_size()
            fitting = math.sqrt(MAX_PIXELS / max(1.0, math.ceil(width) * math.ceil(height)))
            longest = MAX_PIXELS / max(1.0, width, height)  # of a hairline page, whose short side is rounded up
            wanted = min(max(scale, SCALES[0]), SCALES[1])
            bitmap = page.render(scale=min(wanted, fitting * 0.999, longest), rev_byteorder=True)
            try:
                return Picture(bitmap.width, bitmap.height, bitmap.stride, bytearray(bitmap.buffer))
            finally:
                bitmap.close()
        finally:
            page.close()
    except (pypdfium2.PdfiumError, ValueError, MemoryError) as exc:
        raise errors.CorruptDocumentError(page=page_number) from exc


def _highlight(picture: Picture, highlights: Sequence[Highlight]) -> None:
    """Multiplies the colours, as ink does: black text stays black, white paper takes the colour of the highlight."""
    factors = [1 - _INK_STRENGTH + _INK_STRENGTH * ink / 255 for ink in _INK]
    inked = [bytes(round(value * factor) for value in range(256)) for factor in factors]
    for box in highlights:
        left, right = math.floor(box.left * picture.width), math.ceil(box.right * picture.width)
        top, bottom = math.floor(box.top * picture.height), math.ceil(box.bottom * picture.height)
        for row in range(top, bottom):
            start, end = row * picture.stride + 3 * left, row * picture.stride + 3 * right
            for channel, table in enumerate(inked):
                pixels = slice(start + channel, end, 3)
                picture.pixels[pixels] = picture.pixels[pixels].translate(table)


def encode_png(picture: Picture) -> bytes:
    header = struct.pack(">IIBBBBB", picture.width, picture.height, _BIT_DEPTH, _TRUECOLOUR, 0, 0, 0)
    compressor = zlib.compressobj(_COMPRESSION_LEVEL)
    compressed = [compressor.compress(_UNFILTERED + row) for row in picture.rows()]
    data = b"".join([*compressed, compressor.flush()])
    return _SIGNATURE + _png_chunk(b"IHDR", header) + _png_chunk(b"IDAT", data) + _png_chunk(b"IEND", b"")


def _png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
