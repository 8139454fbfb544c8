"""Opens a file of any accepted type as numbered pages of text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, Self

from functions.core import models, ports


class ExtractedDocument(Protocol):
    """An open document; use it in a `with` block, which closes the file."""

    @property
    def page_count(self) -> int: ...

    @property
    def metadata(self) -> models.DocumentMetadata: ...

    def pages(self, start: int = 1) -> Iterator[models.Page]:
        """The pages from number `start` with tables, hidden text, and OCR, each read when it is asked for."""
        ...

    def read_text_layer(self, number: int) -> str:
        """The text layer of one page, without OCR and tables, which is fast; empty in formats without pages."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...


def open_document(
    path: Path, file_type: models.FileType, *, max_pages: int, recognizer: ports.TextRecognizer | None = None
) -> ExtractedDocument:
    """Opens a file whose content has been checked.

    `recognizer` reads the pages of a PDF that have no text layer; without one, these pages have a warning. Raises
    EncryptedDocumentError, CorruptDocumentError, EmptyDocumentError, NoTextError or TooManyPagesError.
    """
    # PDFium and the XML parser are loaded only for the formats that need them.
    if file_type == "pdf":
        from functions.core.extraction.pdf.reader import PdfPages

        return PdfPages(path, max_pages=max_pages, recognizer=recognizer)
    if file_type == "docx":
        from functions.core.extraction.docx.reader import open_docx

        return open_docx(path, max_pages=max_pages)
    from functions.core.extraction import plain_text

    return plain_text.open_text(path, max_pages=max_pages)
