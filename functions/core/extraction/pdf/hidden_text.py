"""Finds text of a PDF page that readers do not see: without ink, in the colour of the paper, off the page, or tiny.

Text that may have the colour of its background is hidden if the page looks the same without it. Text without ink over a
picture is the text layer of a scan, and not hidden. The caller holds the lock of PDFium.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, cast

from functions.core import models
from functions.core.extraction.pdf import text_layer
from functions.core.extraction.pdf.drawing import MIN_CONTRAST, MIN_SIZE, Drawing
from functions.core.extraction.pdf.geometry import stands_on
from functions.core.extraction.pdf.page_objects import (
    ADDRESS,
    address_of,
    cells_in,
    find_stretches,
    plain_call,
    pointer_to,
)

if TYPE_CHECKING:  # loading PDFium costs 50 ms and Pillow 40 ms
    import pypdfium2
    from PIL import Image

    from functions.core.extraction.pdf.geometry import Rectangle

_MAX_PIXELS, _MAX_SCALE = 400_000, 2.0
"""Limits of the parts of a page that are drawn: pixels of all of them together, and pixels a point."""
_NEARBY = 10_000.0
"""Square points: boxes are drawn together if that adds less empty area than this."""
_MAX_DRAWINGS = 10
"""With more groups of boxes than this all are drawn together, because each drawing goes through the whole page."""
_MARGIN = 1.0
"""Points: the margin drawn around text, whose ink may reach beyond its bounds."""
_LAYER = 0.5
"""An object without ink is the text layer of a scan if more than this share of its characters is over a picture."""
_FOUR_DOUBLES = struct.Struct("4d")


class Glyph(NamedTuple):
    """A character: its offset in the page text, its bounds, and the address of the object that draws it."""

    place: int
    box: Rectangle
    address: int


def find_hidden(
    page: pypdfium2.PdfPage,
    text_page: pypdfium2.PdfTextPage,
    text: str,
    indices: Callable[[], Sequence[int | None]],
    runs: Sequence[Rectangle] | None = None,
) -> tuple[models.Offsets, ...]:
    """The stretches of `text`, the stored page text, that readers of the page do not see.

    `indices` returns PDFium's character index for each character of `text`; it is called only if something may be
    hidden. `runs` are the bounds of the runs of text, if they are read already.
    """
    if not text.strip():
        return ()
    paper = page.get_bbox()
    drawing = Drawing(page)
    within = _are_within(text_layer.read_runs(text_page) if runs is None else runs, paper)
    if within and not drawing.doubts:
        return ()
    glyphs = list(_read_glyphs(text_page, text, indices(), drawing.doubts.keys() if within else None))
    by_object: dict[int, list[Glyph]] = defaultdict(list)
    for glyph in glyphs:
        by_object[glyph.address].append(glyph)
    unseen = _find_unseen(page, drawing, by_object, paper)
    tiny = drawing.select("tiny")
    hidden = {
        glyph.place
        for glyph in glyphs
        if glyph.address in unseen
        or (glyph.address in tiny and glyph.box[3] - glyph.box[1] < MIN_SIZE)
        or not _touches(glyph.box, paper)
    }
    return tuple((start, end) for start, end in _merge(text, hidden) if any(map(str.isalnum, text[start:end])))


def _read_glyphs(
    text_page: pypdfium2.PdfTextPage, text: str, indices: Sequence[int | None], wanted: Collection[int] | None
) -> Iterator[Glyph]:
    """The characters that the `wanted` objects draw, or all objects if None."""
    from pypdfium2 import raw as pdfium

    handle, sides = address_of(text_page.raw), (ctypes.c_double * 4)()
    left, right, bottom, top = cells_in(sides, (0, 2, 1, 3))
    get_object = plain_call("FPDFText_GetTextObject", ADDRESS, result=ADDRESS)
    get_box = plain_call("FPDFText_GetCharBox", ADDRESS)
    drawn: dict[int, int] = {}
    count = pdfium.FPDFText_CountChars(text_page.raw)
    # An object draws its characters one after the other.
    for first, last, item in find_stretches(count, functools.partial(get_object, handle)):
        if item and (wanted is None or item in wanted):
            drawn.update(dict.fromkeys(range(first, last + 1), item))
    for place, index in [(place, index) for place, index in enumerate(indices) if index in drawn]:
        if not text[place].isspace() and get_box(handle, index, left, right, bottom, top):
            yield Glyph(place, _FOUR_DOUBLES.unpack(sides), drawn[index])


def _find_unseen(
    page: pypdfium2.PdfPage, drawing: Drawing, by_object: Mapping[int, Sequence[Glyph]], paper: Rectangle
) -> set[int]:
    """The addresses of text objects that leave no visible ink and are not the text layer of a scan."""

    def is_layer(glyphs: Sequence[Glyph]) -> bool:
        over = sum(any(stands_on(glyph.box, picture) for picture in drawing.pictures) for glyph in glyphs)
        return over > _LAYER * len(glyphs)

    unseen = drawing.select("no ink") & by_object.keys()
    doubtful = drawing.select("faint", "pale") & by_object.keys()
    boxes = {item: _bound([glyph.box for glyph in by_object[item]], paper) for item in doubtful}
    unseen |= _find_without_trace(page, boxes, paper)
    layers = drawing.select("no ink", "faint")
    return {address for address in unseen if address not in layers or not is_layer(by_object[address])}


def _find_without_trace(page: pypdfium2.PdfPage, boxes: Mapping[int, Rectangle], paper: Rectangle) -> set[int]:
    """The addresses of objects whose part of the page looks the same without them."""
    import pypdfium2

    on_paper = {item: box for item, box in boxes.items() if _touches(box, paper)}
    if not on_paper:
        return set()
    scale = min(_MAX_SCALE, math.sqrt(_MAX_PIXELS / _area_of(_bound(on_paper.values(), paper))))
    try:
        with _without_rotation(page):
            return {item for near in _group_nearby(on_paper) for item in _compare_drawings(page, near, paper, scale)}
    except (pypdfium2.PdfiumError, ValueError, MemoryError):  # what cannot be drawn is not known to be hidden
        return set()


def _group_nearby(boxes: Mapping[int, Rectangle]) -> list[dict[int, Rectangle]]:
    """Groups of boxes near each other, so that little else is drawn; a single group if there would be many."""
    found: list[tuple[Rectangle, dict[int, Rectangle]]] = []
    for item, box in sorted(boxes.items(), key=lambda pair: pair[1]):
        for number, (bounds, near) in enumerate(found):
            joined = min(bounds[0], box[0]), min(bounds[1], box[1]), max(bounds[2], box[2]), max(bounds[3], box[3])
            if _area_of(joined) < _area_of(bounds) + _area_of(box) + _NEARBY:
                near[item] = box
                found[number] = joined, near
                break
        else:
            found.append((box, {item: box}))
            if len(found) > _MAX_DRAWINGS:
                return [dict(boxes)]
    return [near for _, near in found]


def _compare_drawings(
    page: pypdfium2.PdfPage, boxes: Mapping[int, Rectangle], paper: Rectangle, scale: float
) -> Collection[int]:
    """The objects without which the page looks the same within their boxes."""
    from PIL import ImageChops

    area = _bound(boxes.values(), paper)
    pixels = {item: _find_pixels(box, area, scale) for item, box in boxes.items()}
    picture = _draw_area(page, area, paper, scale)
    plain = {item for item, part in pixels.items() if _is_plain(picture, part)}
    if len(plain) == len(pixels):
        return plain
    with _inactive(pixels):
        difference = ImageChops.difference(picture, _draw_area(page, area, paper, scale))
    return {item for item, part in pixels.items() if _is_plain(difference, part)}


def _find_pixels(box: Rectangle, area: Rectangle, scale: float) -> tuple[int, int, int, int]:
    """The left, top, right and bottom pixel of a rectangle in a picture of `area`."""
    left, bottom, right, top = box
    return (
        math.floor((left - area[0]) * scale),
        math.floor((area[3] - top) * scale),
        math.ceil((right - area[0]) * scale) + 1,
        math.ceil((area[3] - bottom) * scale) + 1,
    )


def _is_plain(picture: Image.Image, part: tuple[int, int, int, int]) -> bool:
    """Whether the colours of a part of a picture differ too little for anything to be seen in it."""
    left, top, right, bottom = part
    left, top = min(left, picture.width - 1), min(top, picture.height - 1)
    inside = picture.crop((left, top, min(right, picture.width), min(bottom, picture.height)))
    ranges = [cast("tuple[int, int]", band.getextrema()) for band in inside.split()]
    return all(high - low < MIN_CONTRAST for low, high in ranges)


@contextmanager
def _without_rotation(page: pypdfium2.PdfPage) -> Iterator[None]:
    """The page without its rotation, so that pictures of it have the axes of page space."""
    seen = page.get_rotation()
    page.set_rotation(0)
    try:
        yield
    finally:
        page.set_rotation(seen)


@contextmanager
def _inactive(items: Collection[int]) -> Iterator[None]:
    """The page without these objects."""
    from pypdfium2 import raw as pdfium

    try:
        for item in items:
            pdfium.FPDFPageObj_SetIsActive(pointer_to(item), False)
        yield
    finally:
        for item in items:
            pdfium.FPDFPageObj_SetIsActive(pointer_to(item), True)


def _draw_area(page: pypdfium2.PdfPage, area: Rectangle, paper: Rectangle, scale: float) -> Image.Image:
    crop = area[0] - paper[0], area[1] - paper[1], paper[2] - area[2], paper[3] - area[3]
    bitmap = page.render(scale=scale, crop=crop)
    try:
        image: Image.Image = bitmap.to_pil().copy()
        return image
    finally:
        bitmap.close()


def _bound(boxes: Iterable[Rectangle], paper: Rectangle) -> Rectangle:
    """The rectangle around boxes and a margin, cut to the paper."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return (
        max(paper[0], min(lefts) - _MARGIN),
        max(paper[1], min(bottoms) - _MARGIN),
        min(paper[2], max(rights) + _MARGIN),
        min(paper[3], max(tops) + _MARGIN),
    )


def _are_within(boxes: Sequence[Rectangle], paper: Rectangle) -> bool:
    west, south, east, north = paper
    return all(
        left >= west and bottom >= south and right <= east and top <= north for left, bottom, right, top in boxes
    )


def _area_of(box: Rectangle) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _touches(box: Rectangle, paper: Rectangle) -> bool:
    return box[0] < paper[2] and box[2] > paper[0] and box[1] < paper[3] and box[3] > paper[1]


def _merge(text: str, places: set[int]) -> Iterator[models.Offsets]:
    """The stretches of these offsets, joined over white space."""
    start = end = -1
    for place in sorted(places):
        if start >= 0 and text[end:place].strip():
            yield start, end
            start = -1
        if start < 0:
            start = place
        end = place + 1
    if start >= 0:
        yield start, end
