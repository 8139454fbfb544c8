"""Reads PDF files page by page: text, tables and hidden text, and OCR for pages without a text layer."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from functions.core import errors, models, ports
from functions.core.extraction.pdf.text_layer import character_indices, load_text, raw_text, read_layer, stored_text
from functions.core.extraction.plain_text import DOI_CHARACTERS
from functions.core.text.storable import clean_text
from functions.core.text.visible import is_blank

if TYPE_CHECKING:  # loading PDFium costs 50 ms; only functions that read a PDF pay for it
    import pypdfium2

__all__ = [
    "PDFIUM_LOCK",
    "PdfPages",
    "character_indices",
    "open_pdf",
    "open_text_page",
    "raw_text",
    "read_layer",
    "stored_text",
]

PDFIUM_LOCK = threading.RLock()
"""PDFium is not thread-safe: whoever calls it, for any document, holds this lock."""

RECOGNITION_SECONDS = 60.0
"""The time limit of OCR for one page."""
LOW_CONFIDENCE = 60.0
"""Percent: below this confidence a page read by OCR gets a warning."""
MAX_CHARACTERS = 500_000
"""A poster in small print has a tenth of it; everything that follows reads the text of a page at once."""
# White space, and characters without a shape or without a meaning.
_NOTHING_READABLE = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufffd")

_log = logging.getLogger(__name__)


class PdfPages:
    """An `ExtractedDocument` over a PDF; only one page is in memory at a time."""

    def __init__(self, path: Path, *, max_pages: int, recognizer: ports.TextRecognizer | None = None) -> None:
        self._path, self._recognizer = path, recognizer
        with PDFIUM_LOCK:
            self._pdf = _load(path)
            self._page_count = len(self._pdf)
        if self._page_count == 0:
            self._close()
            raise errors.EmptyDocumentError
        if self._page_count > max_pages:
            self._close()
            raise errors.TooManyPagesError(page_count=self._page_count, max_pages=max_pages)

    @property
    def page_count(self) -> int:
        return self._page_count

    @functools.cached_property
    def metadata(self) -> models.DocumentMetadata:
        from functions.core.extraction.pdf.metadata import find_large_lines, read_info, read_metadata

        with PDFIUM_LOCK:
            info = read_info(self._pdf)
        try:
            with open_text_page(self._pdf, 1) as (_, text_page):
                large_lines = find_large_lines(text_page)
        except errors.CorruptDocumentError:
            large_lines = ()
        return read_metadata(self._path, info, self._opening_text(), self.read_text_layer(1), large_lines)

    def pages(self, start: int = 1) -> Iterator[models.Page]:
        for number in range(start, self._page_count + 1):
            yield self._read(number)

    def read_text_layer(self, number: int) -> str:
        try:
            with open_text_page(self._pdf, number) as (_, text_page):
                return read_layer(text_page).text if text_page.count_chars() <= MAX_CHARACTERS else ""
        except errors.CorruptDocumentError:
            return ""

    def _opening_text(self) -> str:
        text = ""
        for number in range(1, self._page_count + 1):
            text += self.read_text_layer(number) + "\n"
            if len(text) >= DOI_CHARACTERS:
                break
        return text[:DOI_CHARACTERS]

    def _read(self, number: int) -> models.Page:
        from functions.core.extraction import ocr
        from functions.core.extraction.pdf import hidden_text
        from functions.core.extraction.pdf.tables import finder

        try:
            with open_text_page(self._pdf, number) as (page, text_page):
                if text_page.count_chars() > MAX_CHARACTERS:
                    raise errors.TooComplexError(page=number)
                layer = read_layer(text_page)
                text, indices = layer.text, functools.cache(lambda: layer.indices(text_page))
                hidden = hidden_text.find_hidden(page, text_page, text, indices, layer.runs)
                tables = finder.find_tables(page, text_page, text, indices, layer.runs)
                needs_recognition = ocr.needs_recognition(text, page)
        except errors.CorruptDocumentError:
            return models.Page(number, "", ("page_unreadable",))
        found = models.Page(number, text, ("hidden_text",) if hidden else (), tables, hidden)
        if needs_recognition:
            found = self._recognize(found)
        return _warn(found, "no_text") if is_blank(found.text) else found

    def _recognize(self, page: models.Page) -> models.Page:
        """The page as OCR reads it, or unchanged with a warning; the lock of PDFium is free while OCR runs."""
        from functions.core.extraction import ocr

        if self._recognizer is None:
            return _warn(page, "ocr_unavailable")
        try:
            with _open_page(self._pdf, page.number) as pdf_page:
                picture = ocr.draw_page(pdf_page)
            if picture is None:
                return page
            found = ocr.recognize_picture(picture, self._recognizer, timeout=RECOGNITION_SECONDS)
        except (errors.RecognitionError, errors.CorruptDocumentError) as exc:
            _log.warning("page not read by OCR", extra={"page": page.number, "reason": exc.message})
            return _warn(page, "ocr_failed")
        if found is None:  # there is nothing to read
            return page
        warnings = ("ocr_low_confidence",) if found.recognition.confidence < LOW_CONFIDENCE else ()
        return models.Page(page.number, clean_text(found.text), warnings, recognition=found.recognition)

    def _close(self) -> None:
        with PDFIUM_LOCK:
            self._pdf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


@contextmanager
def open_pdf(path: Path) -> Iterator[pypdfium2.PdfDocument]:
    """A PDFium document, closed at the end of the block; the lock is held until then."""
    with PDFIUM_LOCK:
        pdf = _load(path)
        try:
            yield pdf
        finally:
            pdf.close()


@contextmanager
def open_text_page(
    pdf: pypdfium2.PdfDocument, number: int
) -> Iterator[tuple[pypdfium2.PdfPage, pypdfium2.PdfTextPage]]:
    """Page `number`, from 1, and its text, closed at the end of the block; the lock is held until then.

    Raises CorruptDocumentError.
    """
    with _open_page(pdf, number) as page:
        yield page, load_text(page)


@contextmanager
def _open_page(pdf: pypdfium2.PdfDocument, number: int) -> Iterator[pypdfium2.PdfPage]:
    import pypdfium2

    with PDFIUM_LOCK:
        try:
            page = pdf[number - 1]
            try:
                yield page
            finally:
                page.close()  # closes its text page too; without it every page stays in memory
        except pypdfium2.PdfiumError as exc:
            raise errors.CorruptDocumentError(page=number) from exc


def _load(path: Path) -> pypdfium2.PdfDocument:
    import pypdfium2
    from pypdfium2 import raw as pdfium

    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise errors.EncryptedDocumentError from exc
        raise errors.CorruptDocumentError from exc


def _warn(page: models.Page, code: str) -> models.Page:
    return replace(page, warnings=(*page.warnings, code))
