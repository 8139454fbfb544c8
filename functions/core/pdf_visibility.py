"""Finds text on a PDF page that a reader does not see: without ink, of the colour of the paper, off the page, or tiny.

What the file draws is looked at, not each character, so that an ordinary page costs little. Text that may have the
colour of what is behind it is hidden if the picture of the page is the same without it. Text without ink over a picture
is the text layer of a scan, and not hidden. Everything here is called under the lock of PDFium.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

from functions.core import models, pdf_objects, pdf_text
from functions.core.pdf_objects import ADDRESS, NUMBER, address_of, addresses_in, plain_call, pointer_to

if TYPE_CHECKING:  # loading PDFium costs 50 ms and Pillow 40 ms
    import pypdfium2
    from PIL import Image

    from functions.core.text_columns import Rectangle

_MIN_SIZE = 2.0
_MIN_CONTRAST = 24
"""Of 255, in the colour that differs most: less is not seen, whatever is behind."""
_MAX_PIXELS, _MAX_SCALE = 400_000, 2.0
_STEP = 10
_MAX_DEPTH, _MAX_PATHS, _MAX_AREAS = 6, 1000, 100
_WITHOUT_INK, _CLIP_ONLY, _STROKES = 3, 7, (1, 5)
"""Text render modes; of the strokes the outline is seen, of all others what is inside it."""
_FOUR_INTEGERS, _FOUR_DOUBLES = struct.Struct("4I"), struct.Struct("4d")

_STRONG = [0] * _MIN_CONTRAST + [255] * (256 - _MIN_CONTRAST)

Colour = tuple[int, int, int, int]
"""Red, green, blue and opacity, 0…255."""
Doubt = Literal["no ink", "faint", "pale", "tiny"]


class Glyph(NamedTuple):
    """A character of the page text: its place there, where it stands, and the address of the object that draws it."""

    place: int
    box: Rectangle
    address: int


class _Drawing:
    """What is drawn on a page: text that may be hidden, by the address of its object, and where pictures are."""

    def __init__(self, page: pypdfium2.PdfPage) -> None:
        from pypdfium2 import raw as pdfium

        self.pdfium = pdfium
        self.doubts: dict[int, Doubt] = {}
        self.pictures: list[Rectangle] = []
        self._sides, self._size, self._places = (ctypes.c_uint * 4)(), ctypes.c_float(), (ctypes.c_float * 6)()
        self._read(pdf_objects.list_objects(page), None, 0)

    def select(self, *doubts: Doubt) -> set[int]:
        return {address for address, doubt in self.doubts.items() if doubt in doubts}

    def _read(self, items: Iterable[int], outer: pdf_objects.Matrix | None, depth: int) -> None:
        """Notes what may hide among `items`, which stand in a form placed by `outer`, or on the page itself."""
        get_mode = plain_call("FPDFTextObj_GetTextRenderMode", ADDRESS)
        get_fill = plain_call("FPDFPageObj_GetFillColor", *[ADDRESS] * 5)
        get_size = plain_call("FPDFTextObj_GetFontSize", ADDRESS, ADDRESS)
        get_matrix = plain_call("FPDFPageObj_GetMatrix", ADDRESS, ADDRESS)
        sides, places = addresses_in(self._sides), self._places
        at_size, at_places = ctypes.addressof(self._size), ctypes.addressof(places)
        least = _MIN_SIZE / (outer.scale or 1e-9) if outer else _MIN_SIZE
        others: list[int] = []
        texts: dict[Colour, list[int]] = defaultdict(list)
        judged: dict[tuple[int, Colour | None], Doubt | None] = {}
        for item in items:
            mode = get_mode(item)
            if mode < 0:
                others.append(item)
                continue
            colour = _FOUR_INTEGERS.unpack(self._sides) if get_fill(item, *sides) else None
            look = mode, self._read_stroke(item) if mode in _STROKES else colour
            if look not in judged:
                judged[look] = _judge(*look)
            doubt = judged[look]
            if doubt is None:
                get_size(item, at_size)
                get_matrix(item, at_places)
                if abs(self._size.value) * math.hypot(places[2], places[3]) < least:
                    doubt = "tiny"
                elif colour:
                    texts[colour].append(item)
            if doubt:
                self.doubts[item] = doubt
        self._read_others(others, texts, outer, depth)

    def _read_stroke(self, item: int) -> Colour | None:
        get_stroke = plain_call("FPDFPageObj_GetStrokeColor", *[ADDRESS] * 5)
        return _FOUR_INTEGERS.unpack(self._sides) if get_stroke(item, *addresses_in(self._sides)) else None

    def _read_others(
        self, items: Sequence[int], texts: Mapping[Colour, Sequence[int]], outer: pdf_objects.Matrix | None, depth: int
    ) -> None:
        paths: list[int] = []
        for item in items:
            kind = pdf_objects.read_type(item)
            if kind == self.pdfium.FPDF_PAGEOBJ_PATH:
                paths.append(item)
            elif kind == self.pdfium.FPDF_PAGEOBJ_IMAGE:
                self.pictures.append(pdf_objects.read_bounds(item, outer))
            elif kind == self.pdfium.FPDF_PAGEOBJ_FORM and depth < _MAX_DEPTH:
                place = pdf_objects.read_matrix(item)
                self._read(pdf_objects.list_form(item), place.within(outer) if outer else place, depth + 1)
        areas = list(itertools.islice(self._find_areas(paths[:_MAX_PATHS], texts), _MAX_AREAS))
        for colour, drawn in texts.items():
            under = [area for filled, area in areas if _are_alike(colour, filled)]
            for item in drawn if under else ():
                box = pdf_objects.read_bounds(item)
                if any(pdf_objects.stands_on(box, area) for area in under):
                    self.doubts[item] = "pale"

    def _find_areas(self, paths: Iterable[int], texts: Iterable[Colour]) -> Iterator[tuple[Colour, Rectangle]]:
        """Areas filled with the colour of some text."""
        get_fill = plain_call("FPDFPageObj_GetFillColor", *[ADDRESS] * 5)
        sides = addresses_in(self._sides)
        filled, stroked = ctypes.c_int(), ctypes.c_int()
        for path in paths:
            colour = _FOUR_INTEGERS.unpack(self._sides) if get_fill(path, *sides) else None
            if colour and any(_are_alike(colour, other) for other in texts):
                area = pdf_objects.read_bounds(path)
                self.pdfium.FPDFPath_GetDrawMode(pointer_to(path), filled, stroked)
                if filled.value and min(area[2] - area[0], area[3] - area[1]) > _MIN_SIZE:
                    yield colour, area


def _judge(mode: int, colour: Colour | None) -> Doubt | None:
    """Why text drawn like this may not be seen."""
    if mode == _WITHOUT_INK:
        return "no ink"
    if colour is None or mode == _CLIP_ONLY:
        return None
    if colour[3] < _MIN_CONTRAST:
        return "faint"
    return "pale" if min(colour[:3]) > 255 - _MIN_CONTRAST else None


def _are_alike(one: Colour, other: Colour) -> bool:
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) < _MIN_CONTRAST


def find_hidden(
    page: pypdfium2.PdfPage,
    text_page: pypdfium2.PdfTextPage,
    text: str,
    indices: Callable[[], Sequence[int | None]],
    runs: Sequence[Rectangle] | None = None,
) -> tuple[models.Offsets, ...]:
    """The stretches of `text`, the stored page text, that a reader of the page does not see.

    `indices` gives PDFium's character index for each character of `text`; it is called only where something may be
    hidden. `runs` are the bounds of the runs of text, where they are known.
    """
    if not text.strip():
        return ()
    paper = page.get_bbox()
    drawing = _Drawing(page)
    within = all(_is_within(run, paper) for run in (pdf_text.read_runs(text_page) if runs is None else runs))
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
        or (glyph.address in tiny and glyph.box[3] - glyph.box[1] < _MIN_SIZE)
        or not _touches(glyph.box, paper)
    }
    return tuple((start, end) for start, end in _merge(text, hidden) if any(map(str.isalnum, text[start:end])))


def _read_glyphs(
    text_page: pypdfium2.PdfTextPage, text: str, indices: Sequence[int | None], wanted: Collection[int] | None
) -> Iterator[Glyph]:
    """The characters drawn by the `wanted` objects, by all if None."""
    handle, sides = address_of(text_page.raw), (ctypes.c_double * 4)()
    left, right, bottom, top = addresses_in(sides, (0, 2, 1, 3))
    get_object = plain_call("FPDFText_GetTextObject", ADDRESS, NUMBER, result=ADDRESS)
    get_box = plain_call("FPDFText_GetCharBox", ADDRESS, NUMBER, *[ADDRESS] * 4)
    places = [(place, index) for place, index in enumerate(indices) if index is not None and not text[place].isspace()]
    for start in range(0, len(places), _STEP):
        part = places[start : start + _STEP]
        first, last = get_object(handle, part[0][1]), get_object(handle, part[-1][1])
        if wanted is not None and first == last and first not in wanted:
            continue  # an object draws its characters one after the other, so all of these are of the same
        for place, index in part:
            item = get_object(handle, index)
            if item and (wanted is None or item in wanted) and get_box(handle, index, left, right, bottom, top):
                yield Glyph(place, _FOUR_DOUBLES.unpack(sides), item)


def _find_unseen(
    page: pypdfium2.PdfPage, drawing: _Drawing, by_object: Mapping[int, Sequence[Glyph]], paper: Rectangle
) -> set[int]:
    """The addresses of text that leaves no ink, and is not the text layer of a scan."""

    def is_layer(glyphs: Sequence[Glyph]) -> bool:
        over = sum(any(pdf_objects.stands_on(glyph.box, picture) for picture in drawing.pictures) for glyph in glyphs)
        return over > len(glyphs) / 2

    unseen = drawing.select("no ink") & by_object.keys()
    doubtful = drawing.select("faint", "pale") & by_object.keys()
    boxes = {item: _bound([glyph.box for glyph in by_object[item]], paper) for item in doubtful}
    unseen |= _find_without_trace(page, boxes, paper)
    layers = drawing.select("no ink", "faint")
    return {address for address in unseen if address not in layers or not is_layer(by_object[address])}


def _find_without_trace(page: pypdfium2.PdfPage, boxes: Mapping[int, Rectangle], paper: Rectangle) -> set[int]:
    """The addresses of objects without which their part of the page looks the same."""
    import pypdfium2
    from PIL import ImageChops

    on_paper = {address: box for address, box in boxes.items() if _touches(box, paper)}
    if not on_paper:
        return set()
    area = _bound(on_paper.values(), paper)
    scale = min(_MAX_SCALE, math.sqrt(_MAX_PIXELS / ((area[2] - area[0]) * (area[3] - area[1]))))
    try:
        with _level(page):
            picture = _draw(page, area, paper, scale)
            with _left_out(boxes):
                difference = ImageChops.difference(picture, _draw(page, area, paper, scale))
    except (pypdfium2.PdfiumError, ValueError, MemoryError):  # what cannot be drawn is not known to be hidden
        return set()
    unseen = set()
    for address, (left, bottom, right, top) in on_paper.items():
        across = math.floor((left - area[0]) * scale), math.ceil((right - area[0]) * scale)
        down = math.floor((area[3] - top) * scale), math.ceil((area[3] - bottom) * scale)
        part = difference.crop((across[0], down[0], across[1] + 1, down[1] + 1))
        if all(band.point(_STRONG).getbbox() is None for band in part.split()):
            unseen.add(address)
    return unseen


@contextmanager
def _level(page: pypdfium2.PdfPage) -> Iterator[None]:
    """The page without its rotation, so that it is drawn as its coordinates run."""
    seen = page.get_rotation()
    page.set_rotation(0)
    try:
        yield
    finally:
        page.set_rotation(seen)


@contextmanager
def _left_out(items: Collection[int]) -> Iterator[None]:
    from pypdfium2 import raw as pdfium

    try:
        for item in items:
            pdfium.FPDFPageObj_SetIsActive(pointer_to(item), False)
        yield
    finally:
        for item in items:
            pdfium.FPDFPageObj_SetIsActive(pointer_to(item), True)


def _draw(page: pypdfium2.PdfPage, area: Rectangle, paper: Rectangle, scale: float) -> Image.Image:
    crop = area[0] - paper[0], area[1] - paper[1], paper[2] - area[2], paper[3] - area[3]
    bitmap = page.render(scale=scale, crop=crop)
    try:
        image: Image.Image = bitmap.to_pil().copy()
        return image
    finally:
        bitmap.close()


def _bound(boxes: Iterable[Rectangle], paper: Rectangle) -> Rectangle:
    """The rectangle around boxes, with a margin of a point, as far as it is on the paper."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return (
        max(paper[0], min(lefts) - 1),
        max(paper[1], min(bottoms) - 1),
        min(paper[2], max(rights) + 1),
        min(paper[3], max(tops) + 1),
    )


def _is_within(box: Rectangle, paper: Rectangle) -> bool:
    return box[0] >= paper[0] and box[1] >= paper[1] and box[2] <= paper[2] and box[3] <= paper[3]


def _touches(box: Rectangle, paper: Rectangle) -> bool:
    return box[0] < paper[2] and box[2] > paper[0] and box[1] < paper[3] and box[3] > paper[1]


def _merge(text: str, places: set[int]) -> Iterator[models.Offsets]:
    """Stretches of these places and the white space between them."""
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
