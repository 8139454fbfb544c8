"""Pages whose text is only to be seen: which those are, and their text read off a picture of them.

Resolution, measured with Tesseract 5 (`eng+fra`) on eight scanned pages of the question sets, wrong characters and
seconds of one (slow) core a page: 200 dpi 1.5 %, 4.6 s; 250 dpi 1.6 %, 5.4 s; 300 dpi 1.6 %, 5.9 s. Small print, 5 and
6 points: 200 dpi 0.5 %, 250 to 400 dpi 0.4 %. At 200 dpi a scan of 120 x 86 points with letters of 3 points is lost, at
300 dpi lines drawn in pictures are read as letters: so 250 it is.
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
MIN_PIXELS = 500_000
MAX_SIDE = 32_000  # Tesseract takes no more than 32,767
FEW_CHARACTERS = 50

_IN_DOUBT = 65  # right readings have a confidence of 65 and more, those upside down of 25 to 50
_NOT_GOOD = 90  # nine of ten scanned pages of the question sets have 93 and more
_FAINT = 8
_UNEVEN = 0.7
_DARK = 64
# What fonts without Unicode leave: control characters, the private use areas, replacement characters.
_MEANINGLESS = re.compile("[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]")
_INVISIBLE = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]")


def count_readable(text: str) -> int:
    """Characters that are seen and mean something."""
    return len(text) - len(_INVISIBLE.findall(text)) - len(_MEANINGLESS.findall(text))


def needs_recognition(text: str, page: pypdfium2.PdfPage) -> bool:
    """Whether the text layer `text` says too little of what the page shows; called under the lock of PDFium.

    That is so below 50 readable characters, or when most characters are glyphs without a meaning, if anything but the
    text itself is drawn.
    """
    readable, meaningless = count_readable(text), len(_MEANINGLESS.findall(text))
    if readable >= max(FEW_CHARACTERS, meaningless):
        return False
    return _shows_something(page, with_text=meaningless >= readable)


def draw_page(page: pypdfium2.PdfPage) -> Image.Image | None:
    """The page in grey as it is seen, to be read; None for a blank one. Called under the lock of PDFium.

    At 250 dpi, but tiny pages larger, because their size is seldom meant, and huge ones smaller. Raises
    RecognitionError.
    """
    import pypdfium2

    width, height = (max(1.0, side) for side in page.get_size())
    scale = min(
        max(DPI / 72, math.sqrt(MIN_PIXELS / (width * height))),
        math.sqrt(MAX_PIXELS / (width * height)),
        MAX_SIDE / max(width, height),
    )
    try:
        # In colour first: PDFium takes twice the memory and time for turning large pictures grey itself.
        bitmap = page.render(scale=scale)
        try:
            picture: Image.Image = bitmap.to_pil().convert("L")
        finally:
            bitmap.close()
    except (pypdfium2.PdfiumError, ValueError, MemoryError) as exc:
        raise errors.RecognitionError("The page could not be drawn.") from exc
    darkest, lightest = _extremes(picture)
    return _even_out(picture) if lightest - darkest >= _FAINT else None


def recognize_picture(
    picture: Image.Image, recognizer: ports.TextRecognizer, *, timeout: float
) -> ports.RecognizedPage | None:
    """The text of a picture, upside down or not; None when there is nothing to read.

    A recognizer reads level lines and, as Tesseract does, lines that lie on their side, but what is upside down as
    rubbish; so a reading in doubt is tried again with the picture turned by half. One that is not good is tried again
    without specks and hairlines, of which bad copies of tables are full. `timeout` is in seconds, for all of it.
    Raises RecognitionError.
    """
    from PIL import Image, ImageFilter

    deadline = time.monotonic() + timeout
    found, is_turned = recognizer.recognize(encode_png(picture), timeout=timeout), False
    if found.recognition.confidence < _IN_DOUBT:
        turned = picture.transpose(Image.Transpose.ROTATE_180)
        other = _try_again(turned, recognizer, deadline)
        if _worth(other) > _worth(found):
            found, picture, is_turned = other, turned, True
    if found.recognition.words and found.recognition.confidence < _NOT_GOOD:
        other = _try_again(picture.filter(ImageFilter.MedianFilter(3)), recognizer, deadline)
        # Small print has lines as thin as specks, and loses by it.
        if other.recognition.confidence > found.recognition.confidence and _worth(other) > 0.75 * _worth(found):
            found = other
    if not found.recognition.words:
        return None
    return _turn_half(found) if is_turned else found


def _try_again(picture: Image.Image, recognizer: ports.TextRecognizer, deadline: float) -> ports.RecognizedPage:
    """Nothing where that fails or the time is up: the first reading stands."""
    timeout = deadline - time.monotonic()
    if timeout > 0:
        with suppress(errors.RecognitionError):
            return recognizer.recognize(encode_png(picture), timeout=timeout)
    return ports.RecognizedPage("", models.Recognition(0.0, ()))


def _worth(found: ports.RecognizedPage) -> float:
    """Much text, surely read; text upside down is read as something as long, and less sure."""
    return found.recognition.confidence * sum(word.end - word.start for word in found.recognition.words)


def _turn_half(found: ports.RecognizedPage) -> ports.RecognizedPage:
    words = tuple(
        replace(word, left=1 - word.right, top=1 - word.bottom, right=1 - word.left, bottom=1 - word.top)
        for word in found.recognition.words
    )
    return replace(found, recognition=replace(found.recognition, words=words))


def _shows_something(page: pypdfium2.PdfPage, *, with_text: bool) -> bool:
    from pypdfium2 import raw as pdfium

    kinds = [pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_SHADING]
    if with_text:
        kinds.append(pdfium.FPDF_PAGEOBJ_TEXT)
    return any(True for _ in page.get_objects(filter=kinds))


def _extremes(picture: Image.Image) -> tuple[float, float]:
    """The darkest and the lightest of a grey picture, 0…255."""
    darkest, lightest = picture.getextrema()
    return cast(float, darkest), cast(float, lightest)


def _even_out(picture: Image.Image) -> Image.Image:
    """The picture as if its paper were lit evenly: shadows on photographed pages would be taken for ink.

    What is a quarter as bright as paper or less is left as dark as it is: print in white on black.
    """
    import numpy as np
    import PIL.Image
    from PIL import ImageFilter

    small = picture.resize((max(1, picture.width // 16), max(1, picture.height // 16)), PIL.Image.Resampling.BOX)
    paper = small.filter(ImageFilter.MaxFilter(9)).filter(ImageFilter.GaussianBlur(4))
    darkest, lightest = _extremes(paper)
    if darkest >= _UNEVEN * lightest:
        return picture
    light = np.array(paper.resize(picture.size, PIL.Image.Resampling.BILINEAR), dtype=np.float32)
    lit = np.array(picture, dtype=np.float32)
    lit /= np.maximum(light, _DARK, out=light)
    lit *= 255
    return PIL.Image.fromarray(np.minimum(lit, 255, out=lit).astype(np.uint8))


def encode_png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
