"""Small files that take much memory or time to read."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from pathlib import Path

from tests.support.documents import make_raw_docx

LINES_BOMB = b"0 0 m 9 9 l S " * 6_000_000
"""84 MB of operators, compressed to 0.16 MB; PDFium takes 1.65 GB to read them."""
SLOW_DRAWING = b"0 0 m 612 792 l 0 792 l 612 0 l f " * 150_000
"""A page that is quickly read, and drawn in half a minute."""


def text_page(words: str) -> bytes:
    """The operators of a page that shows a line of text."""
    return b"BT /F1 12 Tf 72 700 Td (%s) Tj ET" % words.encode("latin-1")


def make_operators_pdf(path: Path, *pages: bytes) -> Path:
    """A PDF whose pages have these operators."""
    return write_objects(path, [zlib.compress(page, 9) for page in pages])


def write_objects(path: Path, streams: Sequence[bytes]) -> Path:
    """A PDF with a page for each of the compressed streams."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    numbers = range(3, 3 + 2 * len(streams), 2)
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(streams), kids)]
    for number, stream in zip(numbers, streams, strict=True):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 %s>>>>/Contents %d 0 R>>"
            % (font, number + 1)
        )
        objects.append(b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(stream), stream))
    content, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(content))
    path.write_bytes(content + b"xref\n0 %d\n%s%s" % (len(objects) + 1, table, trailer))
    return path


def make_elements_docx(path: Path, count: int = 5_000_000) -> Path:
    """A DOCX of `count` empty elements; noise keeps its compression ratio as low as that of ordinary text."""
    noise = random.Random(7).randbytes(200_000).hex()
    return make_raw_docx(path, "<w:p/>" + "<a/>" * count, noise=f"<n>{noise}</n>")
