"""Reads PDF files with PDFium, and knows where on a page each character of the stored text stands.

PDFium keeps a page as a list of characters and gives its text as UTF-16 units; a few characters (some unmapped glyphs)
are in the list but not in the text. Stored page text is PDFium's text with `\\r\\n` as `\\n`, the mark PDFium leaves
for a hyphen at a line end (it joins the two lines) as a soft hyphen, and what Postgres cannot store as U+FFFD.
The way back, `character_indices`, is derived again from the file when somebody looks at a passage.
"""

from __future__ import annotations

import collections
import functools
import itertools
import math
import re
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from functions.core import errors, models, text_extraction

if TYPE_CHECKING:  # loading PDFium costs 50 ms; only functions that read a PDF pay for it
    import pypdfium2

SOFT_HYPHEN = "\u00ad"
PDFIUM_LOCK = threading.RLock()
"""PDFium is not thread-safe: every call into it, of any document, is made under this lock."""

_HYPHEN_MARK, _HYPHEN_CODE = "\ufffe", 2
_USELESS_TITLE = re.compile(r"untitled.*|microsoft \w+ - .*|.*\.(docx?|pdf|tex|dvi|indd|qxd|rtf|odt)|[\W\d_]*", re.I)
_PDF_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")


class PdfPages:
    """An `ExtractedDocument` over a PDF; only one page is in memory at a time."""

    def __init__(self, path: Path, *, max_pages: int) -> None:
        with PDFIUM_LOCK:
            self._pdf = _open(path)
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
        with PDFIUM_LOCK:
            facts = {key: _tidy(value) for key, value in self._pdf.get_metadata_dict().items()}
        title = facts["Title"]
        if title is None or _USELESS_TITLE.fullmatch(title):
            title = self._largest_line()
        date = _PDF_DATE.match(facts["CreationDate"] or "")
        return models.DocumentMetadata(
            title=title,
            author=facts["Author"],
            doi=text_extraction.find_doi(self._opening_text()) or text_extraction.find_doi(facts["Subject"] or ""),
            published_at="-".join(filter(None, date.groups())) if date else None,
        )

    def pages(self, start: int = 1) -> Iterator[models.Page]:
        for number in range(start, self._page_count + 1):
            try:
                with open_text_page(self._pdf, number) as (_, text_page):
                    text = stored_text(raw_text(text_page))
                    warnings: tuple[str, ...] = ()
            except errors.CorruptDocumentError:
                text, warnings = "", ("page_unreadable",)
            yield models.Page(number=number, text=text, warnings=warnings)

    def _opening_text(self) -> str:
        text = ""
        for page in self.pages():
            text += page.text + "\n"
            if len(text) >= text_extraction.DOI_CHARACTERS:
                break
        return text[: text_extraction.DOI_CHARACTERS]

    def _largest_line(self) -> str | None:
        try:
            with open_text_page(self._pdf, 1) as (_, text_page):
                lines = _measure_lines(text_page)
        except errors.CorruptDocumentError:
            return None
        if not lines:
            return None
        largest = max(height for _, height in lines)
        if len(lines) > 1 and largest < 1.15 * statistics.median(height for _, height in lines):
            return None
        first = next(index for index, (_, height) in enumerate(lines) if height == largest)
        title = [text for text, height in lines[first : first + 3] if height >= 0.98 * largest]
        return _tidy(" ".join(title))

    def _close(self) -> None:
        with PDFIUM_LOCK:
            self._pdf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


@contextmanager
def open_pdf(path: Path) -> Iterator[pypdfium2.PdfDocument]:
    """A PDFium document, closed at the end; holds the lock throughout."""
    with PDFIUM_LOCK:
        pdf = _open(path)
        try:
            yield pdf
        finally:
            pdf.close()


@contextmanager
def open_text_page(
    pdf: pypdfium2.PdfDocument, number: int
) -> Iterator[tuple[pypdfium2.PdfPage, pypdfium2.PdfTextPage]]:
    """Page `number`, from 1, and its text, closed at the end; holds the lock. Raises CorruptDocumentError."""
    import pypdfium2

    with PDFIUM_LOCK:
        try:
            page = pdf[number - 1]
            try:
                yield page, _load_text(page)
            finally:
                page.close()  # closes the text page too; without it every page stays in memory
        except pypdfium2.PdfiumError as exc:
            raise errors.CorruptDocumentError(page=number) from exc


def raw_text(text_page: pypdfium2.PdfTextPage) -> str:
    """The text of a page as PDFium gives it, but unmapped glyphs as NUL: U+FFFE is only left for a line-end hyphen."""
    text: str = text_page.get_text_range(errors="surrogatepass")
    return _clear_unmapped(text, text_page) if _HYPHEN_MARK in text else text


def stored_text(raw: str) -> str:
    """What is stored of `raw`; `text_units` is its inverse."""
    return text_extraction.clean_text(raw.replace("\r\n", "\n").replace(_HYPHEN_MARK, SOFT_HYPHEN))


def text_units(raw: str) -> list[int]:
    """For each character of `stored_text(raw)` the position of its first UTF-16 unit in PDFium's text."""
    units = _unit_positions(raw)
    return [unit for index, unit in enumerate(units) if not (raw[index] == "\r" and raw[index + 1 : index + 2] == "\n")]


def character_indices(text_page: pypdfium2.PdfTextPage, start: int, end: int) -> list[int | None]:
    """PDFium's character index for each position of stored text [start, end); None where PDFium has no character.

    Raises NotFoundError when the passage is not inside the page text.
    """
    from pypdfium2 import raw as pdfium

    units = text_units(raw_text(text_page))
    if not 0 <= start <= end <= len(units):
        raise errors.NotFoundError("The passage is not on this page.", start=start, end=end, length=len(units))
    found = (pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, unit) for unit in units[start:end])
    return [index if index >= 0 else None for index in found]


def _clear_unmapped(text: str, text_page: pypdfium2.PdfTextPage) -> str:
    from pypdfium2 import raw as pdfium

    characters, units = list(text), _unit_positions(text)
    for index, character in enumerate(text):
        if character == _HYPHEN_MARK:
            char_index = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, units[index])
            if pdfium.FPDFText_GetUnicode(text_page, char_index) != _HYPHEN_CODE:
                characters[index] = "\0"
    return "".join(characters)


def _unit_positions(text: str) -> list[int]:
    return list(itertools.accumulate((2 if character > "\uffff" else 1 for character in text), initial=0))[:-1]


def _load_text(page: pypdfium2.PdfPage) -> pypdfium2.PdfTextPage:
    """The text of a page; PDFium orders lines right only where they are level, so the page is turned for a moment."""
    text_page = page.get_textpage()
    seen = page.get_rotation()
    level = _level_rotation(text_page, seen)
    if level != seen:
        text_page.close()
        page.set_rotation(level)
        text_page = page.get_textpage()
        page.set_rotation(seen)
    return text_page


def _level_rotation(text_page: pypdfium2.PdfTextPage, seen: int, samples: int = 32) -> int:
    """The page rotation at which most characters stand upright; `seen` where that is not clear."""
    from pypdfium2 import raw as pdfium

    count = text_page.count_chars()
    angles = [pdfium.FPDFText_GetCharAngle(text_page, index) for index in range(0, count, max(1, count // samples))]
    turns = collections.Counter(-round(angle / (math.pi / 2)) % 4 * 90 for angle in angles if angle >= 0)
    level, votes = turns.most_common(1)[0] if turns else (seen, 0)
    return level if votes > 0.6 * turns.total() else seen


def _open(path: Path) -> pypdfium2.PdfDocument:
    import pypdfium2
    from pypdfium2 import raw as pdfium

    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise errors.EncryptedDocumentError from exc
        raise errors.CorruptDocumentError from exc


def _measure_lines(text_page: pypdfium2.PdfTextPage, limit: int = 40) -> list[tuple[str, float]]:
    """The first lines of a page with the height of the font each starts in."""
    text = stored_text(raw_text(text_page))
    measured: list[tuple[str, float]] = []
    for match in list(re.finditer(r"[^\n]*\w[^\n]*", text))[:limit]:
        (index,) = character_indices(text_page, match.start(), match.start() + 1)
        if index is not None:
            _, bottom, _, top = text_page.get_charbox(index, loose=True)
            measured.append((match.group(), round(top - bottom, 1)))
    return measured


def _tidy(value: str | None) -> str | None:
    text = " ".join(text_extraction.clean_text(value or "").split())
    return text[:300] or None
