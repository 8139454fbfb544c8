"""Shows a passage where it stands: its boxes on the page, and the page as a picture with them marked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from functions.core import errors, models
from functions.core.extraction.pdf import png
from functions.core.extraction.pdf.reader import character_indices, open_pdf, open_text_page

if TYPE_CHECKING:  # loading PDFium costs 50 ms, and only where a page is shown
    import pypdfium2

MAX_PIXELS = 4_000_000
SCALES = (0.1, 4.0)
_HIGHLIGHT = (255, 214, 10)
_STRENGTH = 0.7

Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle as fractions of the page as it is seen: 0..1 from its left and its top."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(slots=True)
class _Line:
    """Boxes of one line so far; `upright` is False where the text runs up or down the page as it is seen."""

    left: float
    top: float
    right: float
    bottom: float
    upright: bool

    def takes(self, box: Rectangle, upright: bool, aspect: float) -> bool:
        """Whether `box` goes on in this line: same direction, mostly beside it, and no wide gap (a column) between."""
        if upright != self.upright:
            return False
        left, top, right, bottom = box
        across = min(self.bottom, bottom) - max(self.top, top), max(self.left, left) - min(self.right, right)
        heights = self.bottom - self.top, bottom - top
        if not upright:
            across = min(self.right, right) - max(self.left, left), max(self.top, top) - min(self.bottom, bottom)
            heights, aspect = (self.right - self.left, right - left), 1 / aspect
        overlap, gap = across
        return overlap >= 0.5 * min(heights) and gap <= 3 * max(heights) / aspect

    def add(self, box: Rectangle) -> None:
        self.left, self.top = min(self.left, box[0]), min(self.top, box[1])
        self.right, self.bottom = max(self.right, box[2]), max(self.bottom, box[3])


def highlight_boxes(
    path: Path, page_number: int, start: int, end: int, *, words: Sequence[models.RecognizedWord] | None = None
) -> list[Box]:
    """Where stored page text [start, end) stands on a page of a PDF, one box a line, in the order of the text.

    `words` are those of a page that was read by OCR: its text is in them, not in the file. Raises NotFoundError when
    there is no such page or passage.
    """
    with open_pdf(path) as pdf:
        _check_page(pdf, page_number)
        return _boxes(pdf, page_number, start, end, words)


def render_page(
    path: Path,
    page_number: int,
    *,
    start: int | None = None,
    end: int | None = None,
    scale: float = 1.5,
    words: Sequence[models.RecognizedWord] | None = None,
) -> bytes:
    """A PDF page as PNG, `scale` pixels a point but at most four million in all, with [start, end) marked if given.

    `words` as for `highlight_boxes`. Raises NotFoundError when there is no such page or passage, CorruptDocumentError
    when it cannot be drawn.
    """
    with open_pdf(path) as pdf:
        _check_page(pdf, page_number)
        boxes = [] if start is None or end is None else _boxes(pdf, page_number, start, end, words)
        picture = _draw(pdf, page_number, scale)
    _mark(picture, boxes)
    return png.encode(picture)


def _check_page(pdf: pypdfium2.PdfDocument, page_number: int) -> None:
    if not 1 <= page_number <= len(pdf):
        raise errors.NotFoundError("There is no such page.", page=page_number, page_count=len(pdf))


def _boxes(
    pdf: pypdfium2.PdfDocument,
    page_number: int,
    start: int,
    end: int,
    words: Sequence[models.RecognizedWord] | None,
) -> list[Box]:
    with open_text_page(pdf, page_number) as (page, text_page):
        seen = _SeenPage.of(page)
        if words is None:
            indices = character_indices(text_page, start, end)
            characters = (_measure(text_page, index, seen) for index in indices if index is not None)
            lines = _merge(filter(None, characters), seen.aspect)
        else:
            lines = _merge_words(_choose_words(words, start, end), seen.aspect)
        return [Box(*(round(side, 5) for side in (line.left, line.top, line.right, line.bottom))) for line in lines]


def _choose_words(words: Sequence[models.RecognizedWord], start: int, end: int) -> list[models.RecognizedWord]:
    """The words that [start, end) touches; the text of a page read by OCR ends with its last word."""
    length = max((word.end for word in words), default=0)
    if not 0 <= start <= end <= length:
        raise errors.NotFoundError("The passage is not on this page.", start=start, end=end, length=length)
    return [word for word in words if max(word.start, start) < min(word.end, end)]


def _merge_words(words: Sequence[models.RecognizedWord], aspect: float) -> Iterator[_Line]:
    """Lines of words that follow each other closely: in a crooked scan one line reaches down into the next."""
    across = sum(word.right - word.left for word in words) * aspect
    upright = across >= sum(word.bottom - word.top for word in words)
    line: _Line | None = None
    last: _Line | None = None
    for word in words:
        box = (word.left, word.top, word.right, word.bottom)
        if line is not None and last is not None and last.takes(box, upright, aspect):
            line.add(box)
        else:
            if line is not None:
                yield line
            line = _Line(*box, upright)
        last = _Line(*box, upright)
    if line is not None:
        yield line


def _merge(characters: Iterable[tuple[Rectangle, bool]], aspect: float) -> Iterator[_Line]:
    line: _Line | None = None
    for box, upright in characters:
        if line is not None and line.takes(box, upright, aspect):
            line.add(box)
            continue
        if line is not None:
            yield line
        line = _Line(*box, upright)
    if line is not None:
        yield line


def _measure(text_page: pypdfium2.PdfTextPage, index: int, seen: _SeenPage) -> tuple[Rectangle, bool] | None:
    """The box of one character and whether its line is level; None for white space and what is off the page."""
    from pypdfium2 import raw as pdfium

    if pdfium.FPDFText_IsGenerated(text_page, index) == 1 or pdfium.FPDFText_GetUnicode(text_page, index) in _SPACES:
        return None
    tight, loose = text_page.get_charbox(index), text_page.get_charbox(index, loose=True)
    box = seen.place(loose if _is_sane(loose, tight) else tight)
    angle = pdfium.FPDFText_GetCharAngle(text_page, index)
    level = abs(math.sin(angle)) < 0.7 if angle >= 0 else True
    return (box, level != seen.turned) if box else None


_SPACES = frozenset({0x20, 0xA0, 0x09, 0x0A, 0x0D})


def _is_sane(loose: Rectangle, tight: Rectangle) -> bool:
    """Loose boxes (the font's height) look better, but broken fonts make them empty or as large as the page."""
    height, width = loose[3] - loose[1], loose[2] - loose[0]
    side = max(tight[3] - tight[1], tight[2] - tight[0])
    return height > 0 and width > 0 and (side <= 0 or max(height, width) <= 12 * side)


@dataclass(frozen=True, slots=True)
class _SeenPage:
    """How page coordinates turn into fractions of the page as it is seen."""

    bounds: Rectangle
    rotation: int

    @classmethod
    def of(cls, page: pypdfium2.PdfPage) -> _SeenPage:
        left, bottom, right, top = page.get_bbox()
        if left >= right or bottom >= top:  # a crop box beside the page leaves nothing of it
            raise errors.CorruptDocumentError
        return cls((left, bottom, right, top), page.get_rotation())

    @property
    def turned(self) -> bool:
        return self.rotation in (90, 270)

    @property
    def aspect(self) -> float:
        """Width by height of the page as it is seen; widths are in other units than heights."""
        left, bottom, right, top = self.bounds
        aspect: float = (right - left) / (top - bottom)
        return 1 / aspect if self.turned else aspect

    def place(self, box: Rectangle) -> Rectangle | None:
        """`box` (left, bottom, right, top) on the page as seen, cut to it; None when nothing of it is left."""
        left, bottom, right, top = self.bounds
        across = [_clip((x - left) / (right - left)) for x in (box[0], box[2])]
        down = [_clip((top - y) / (top - bottom)) for y in (box[3], box[1])]
        for _ in range(self.rotation // 90):
            across, down = [1 - down[1], 1 - down[0]], across
        if across[0] >= across[1] or down[0] >= down[1]:
            return None
        return across[0], down[0], across[1], down[1]


def _clip(fraction: float) -> float:
    return min(1.0, max(0.0, fraction))


def _draw(pdf: pypdfium2.PdfDocument, page_number: int, scale: float) -> png.Picture:
    import pypdfium2

    try:
        pdf.init_forms()  # filled-in fields are drawn too
        page = pdf[page_number - 1]
        try:
            width, height = page.get_size()
            fitting = math.sqrt(MAX_PIXELS / max(1.0, math.ceil(width) * math.ceil(height)))
            longest = MAX_PIXELS / max(1.0, width, height)  # the other side may be rounded up to a pixel
            wanted = min(max(scale, SCALES[0]), SCALES[1])
            bitmap = page.render(scale=min(wanted, fitting * 0.999, longest), rev_byteorder=True)
            try:
                return png.Picture(bitmap.width, bitmap.height, bitmap.stride, bytearray(bitmap.buffer))
            finally:
                bitmap.close()
        finally:
            page.close()
    except (pypdfium2.PdfiumError, ValueError, MemoryError) as exc:
        raise errors.CorruptDocumentError(page=page_number) from exc


def _mark(picture: png.Picture, boxes: list[Box]) -> None:
    """Multiplies, as ink does: black text stays black, white paper takes the colour."""
    shares = [1 - _STRENGTH + _STRENGTH * ink / 255 for ink in _HIGHLIGHT]
    tables = [bytes(round(value * share) for value in range(256)) for share in shares]
    for box in boxes:
        left, right = math.floor(box.left * picture.width), math.ceil(box.right * picture.width)
        top, bottom = math.floor(box.top * picture.height), math.ceil(box.bottom * picture.height)
        for row in range(top, bottom):
            start, end = row * picture.stride + 3 * left, row * picture.stride + 3 * right
            for channel, inked in enumerate(tables):
                pixels = slice(start + channel, end, 3)
                picture.pixels[pixels] = picture.pixels[pixels].translate(inked)
