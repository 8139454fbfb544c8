"""Decides which pages need OCR, draws them, and reads their text from the drawing.

The resolution of 250 dpi was chosen with Tesseract 5 (`eng+fra`) on eight scanned pages of the question sets. Wrong
characters and seconds per page on one slow core: 200 dpi 1.5 %, 4.6 s; 250 dpi 1.6 %, 5.4 s; 300 dpi 1.6 %, 5.9 s.
Small print of 5 and 6 points: 200 dpi 0.5 %, 250 to 400 dpi 0.4 %. At 200 dpi a scan of 120 x 86 points with letters of
3 points cannot be read; at 300 dpi lines in drawings are read as letters.
"""

from __future__ import annotations

import io
import math
import re
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from functions.core import errors, models, ports

if TYPE_CHECKING:  # loading PDFium costs 50 ms, Pillow 40 ms, numpy 100 ms; only pages that are drawn pay for them
    import pypdfium2
    from PIL import Image

DPI = 250
MAX_PIXELS = 12_000_000  # A3 at 250 dpi; Tesseract needs about 25 bytes a pixel
MIN_PIXELS = 500_000  # smaller pages are enlarged: their declared size is often wrong
MAX_SIDE = 32_000  # Tesseract takes no more than 32,767
FEW_CHARACTERS = 50
"""Readable characters: a text layer with fewer may be a stamp or a page number on a scan."""

_DOUBTFUL_BELOW = 65  # percent; correct readings have a confidence of 65 and more, upside-down ones of 25 to 50
_GOOD_FROM = 90  # percent; nine of ten scanned pages of the question sets have 93 and more
_MIN_KEPT_SHARE = 0.75
"""A reading without specks must keep this share of the score, because small print loses thin lines with the specks."""
_BLANK_RANGE = 8
"""Of 255: a page whose lightest and darkest pixel differ by less is blank."""
_EVEN_LIGHT = 0.7
"""On an evenly lit page, the darkest paper has at least this share of the brightness of the lightest."""
_DARKEST_PAPER = 64
"""Of 255: darker areas are white print on black, not paper in a shadow."""
# Fonts without a Unicode mapping leave these: control characters, private use areas, replacement characters.
_MEANINGLESS = re.compile("[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]")
_INVISIBLE = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]")


def count_readable(text: str) -> int:
    """The number of characters that are visible and have a Unicode meaning."""
    return len(text) - len(_INVISIBLE.findall(text)) - len(_MEANINGLESS.findall(text))


def needs_recognition(text: str, page: pypdfium2.PdfPage) -> bool:
    """Whether OCR should read a page, because its text layer `text` lacks text that the page may show.

    The layer must have fewer than `FEW_CHARACTERS` readable characters, or fewer readable than meaningless ones, and
    the page must draw something that may be text. The caller holds the lock of PDFium.
    """
    readable, meaningless = count_readable(text), len(_MEANINGLESS.findall(text))
    if readable >= max(FEW_CHARACTERS, meaningless):
        return False
    return _draws_anything(page, with_text=meaningless >= readable)


def draw_page(page: pypdfium2.PdfPage) -> Image.Image | None:
    """A grey picture of the page for OCR, None for a blank page. The caller holds the lock of PDFium.

    The resolution is `DPI`; it is higher for tiny pages and lower for huge ones. Raises RecognitionError.
    """
    import pypdfium2

    width, height = (max(1.0, side) for side in page.get_size())
    scale = min(
        max(DPI / 72, math.sqrt(MIN_PIXELS / (width * height))),
        math.sqrt(MAX_PIXELS / (width * height)),
        MAX_SIDE / max(width, height),
    )
    try:
        # Drawn in colour first: PDFium itself takes twice the memory and time to draw large pictures in grey.
        bitmap = page.render(scale=scale)
        try:
            picture: Image.Image = bitmap.to_pil().convert("L")
        finally:
            bitmap.close()
    except (pypdfium2.PdfiumError, ValueError, MemoryError) as exc:
        raise errors.RecognitionError("The page could not be drawn for OCR.") from exc
    darkest, lightest = _extremes(picture)
    return _even_out_light(picture) if lightest - darkest >= _BLANK_RANGE else None


def recognize_picture(
    picture: Image.Image, recognizer: ports.TextRecognizer, *, timeout: float
) -> ports.RecognizedPage | None:
    """The text of a picture, which may be upside down; None if there is nothing to read.

    A recognizer reads horizontal lines and, like Tesseract, lines that run up or down, but makes nonsense of
    upside-down text. A doubtful reading is therefore repeated with the picture turned upside down. If it is still not
    good, it is repeated with specks and hairlines removed, which are frequent in bad copies of tables. `timeout` is in
    seconds for all readings together. Raises RecognitionError.
    """
    from PIL import Image, ImageFilter

    deadline = time.monotonic() + timeout
    reading, is_upside_down = recognizer.recognize(encode_png(picture), timeout=timeout), False
    if reading.recognition.confidence < _DOUBTFUL_BELOW:
        turned = picture.transpose(Image.Transpose.ROTATE_180)
        second = _try_again(turned, recognizer, deadline)
        if _score(second) > _score(reading):
            reading, picture, is_upside_down = second, turned, True
    if reading.recognition.words and reading.recognition.confidence < _GOOD_FROM:
        second = _try_again(picture.filter(ImageFilter.MedianFilter(3)), recognizer, deadline)
        is_surer = second.recognition.confidence > reading.recognition.confidence
        if is_surer and _score(second) > _MIN_KEPT_SHARE * _score(reading):
            reading = second
    if not reading.recognition.words:
        return None
    return _turn_upside_down(reading) if is_upside_down else reading


def _try_again(picture: Image.Image, recognizer: ports.TextRecognizer, deadline: float) -> ports.RecognizedPage:
    """A second reading; empty if it fails or the time is up, so that the caller keeps the first one."""
    timeout = deadline - time.monotonic()
    if timeout > 0:
        with suppress(errors.RecognitionError):
            return recognizer.recognize(encode_png(picture), timeout=timeout)
    return ports.RecognizedPage("", models.Recognition(0.0, ()))


def _score(reading: ports.RecognizedPage) -> float:
    """Confidence times length: an upside-down reading is as long as the right one, but has less confidence."""
    return reading.recognition.confidence * sum(word.end - word.start for word in reading.recognition.words)


def _turn_upside_down(reading: ports.RecognizedPage) -> ports.RecognizedPage:
    """The same text with its boxes where they are on the page before it was turned."""
    words = tuple(
        replace(word, left=1 - word.right, top=1 - word.bottom, right=1 - word.left, bottom=1 - word.top)
        for word in reading.recognition.words
    )
    return replace(reading, recognition=replace(reading.recognition, words=words))


def _draws_anything(page: pypdfium2.PdfPage, *, with_text: bool) -> bool:
    from pypdfium2 import raw as pdfium

    kinds = [pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_SHADING]
    if with_text:
        kinds.append(pdfium.FPDF_PAGEOBJ_TEXT)
    return any(True for _ in page.get_objects(filter=kinds))


def _extremes(picture: Image.Image) -> tuple[float, float]:
    """The darkest and the lightest value of a grey picture, 0…255."""
    darkest, lightest = picture.getextrema()
    return cast(float, darkest), cast(float, lightest)


def _even_out_light(picture: Image.Image) -> Image.Image:
    """Removes shadows from a picture of a photographed page, because OCR would take them for ink.

    Areas darker than `_DARKEST_PAPER` stay dark: they are white print on black.
    """
    import numpy as np
    import PIL.Image
    from PIL import ImageFilter

    small = picture.resize((max(1, picture.width // 16), max(1, picture.height // 16)), PIL.Image.Resampling.BOX)
    paper = small.filter(ImageFilter.MaxFilter(9)).filter(ImageFilter.GaussianBlur(4))
    darkest, lightest = _extremes(paper)
    if darkest >= _EVEN_LIGHT * lightest:
        return picture
    light = np.array(paper.resize(picture.size, PIL.Image.Resampling.BILINEAR), dtype=np.float32)
    lit = np.array(picture, dtype=np.float32)
    lit /= np.maximum(light, _DARKEST_PAPER, out=light)
    lit *= 255
    return PIL.Image.fromarray(np.minimum(lit, 255, out=lit).astype(np.uint8))


def encode_png(picture: Image.Image) -> bytes:
    """The picture as a PNG file, compressed fast rather than well."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
