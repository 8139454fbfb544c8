"""Reads documents and draws their pages in a child process, so that no file takes more memory or time than it may."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from functions.core import errors, models, ports
from functions.core.extraction.child_process import ChildProcess, Limits

READING = Limits()
DRAWING = Limits(processor_seconds=8, seconds=12.0)
"""Somebody waits for the picture of a page, at most 29 seconds on AWS."""
_WAITING_SECONDS = 14.0
_KEPT_MEMORY = 256 << 20
"""Bytes: a process that has used more does not read another document, which would have less memory for itself."""

_idle: list[ChildProcess] = []
"""At most one process that waits for the next document, because starting one takes as long as reading 20 pages."""


class IsolatedDocument:
    """An `ExtractedDocument` that is read in a child process, which reads no other meanwhile.

    A page that needs more than the limits costs that page: reading it raises TooComplexError, and the next page is read
    in a new process.
    """

    def __init__(
        self,
        path: Path,
        file_type: models.FileType,
        *,
        max_pages: int,
        recognizer: ports.TextRecognizer | None = None,
        limits: Limits = READING,
    ) -> None:
        self._opening = path, file_type, max_pages, recognizer is not None
        self._recognizer = recognizer
        self._child = _take_process(limits)
        self._too_complex: set[int] = set()
        try:
            self._page_count: int = self._child.request("open_document", *self._opening)
        except BaseException:
            _put_back(self._child)
            raise

    @property
    def page_count(self) -> int:
        return self._page_count

    @property
    def metadata(self) -> models.DocumentMetadata:
        metadata: models.DocumentMetadata = self._request("read_metadata")
        return metadata

    def pages(self, start: int = 1) -> Iterator[models.Page]:
        for number in range(start, self._page_count + 1):
            yield self._request_page("read_page", number)

    def read_text_layer(self, number: int) -> str:
        text: str = self._request_page("read_text_layer", number)
        return text

    def _request_page(self, operation: str, number: int) -> Any:
        """Raises TooComplexError; for a page that was too complex before, at once."""
        try:
            if number not in self._too_complex:
                return self._request(operation, number)
        except errors.TooComplexError:
            self._too_complex.add(number)
        raise errors.TooComplexError(f"Page {number}: {errors.TooComplexError().message}", page=number)

    def _request(self, operation: str, *arguments: Any) -> Any:
        if not self._child.is_running:
            self._child.request("open_document", *self._opening)
        return self._child.request(operation, *arguments, recognizer=self._recognizer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _put_back(self._child)


def _take_process(limits: Limits) -> ChildProcess:
    child = _idle.pop() if _idle else None
    if child is not None and child.is_running and child.limits == limits:
        return child
    if child is not None:
        child.close()
    return ChildProcess(limits)


def _put_back(child: ChildProcess) -> None:
    """Keeps a process for the next document, unless it has used much memory or another one is kept."""
    try:
        if child.is_running and child.request("close_document") <= _KEPT_MEMORY and not _idle:
            _idle.append(child)
            return
    except errors.IbidError:
        pass  # it has ended
    child.close()


class PageDrawer:
    """Draws pages of PDF files, one at a time, in a child process that stays for the next one."""

    def __init__(self, limits: Limits = DRAWING) -> None:
        self._child = ChildProcess(limits)
        self._lock = threading.Lock()

    def draw(self, path: Path, number: int, **options: Any) -> bytes:
        """A page as PNG, with the options and errors of `page_images.render_page`.

        Raises TooComplexError, and UnavailableError if other pictures take too long to wait for.
        """
        if not self._lock.acquire(timeout=_WAITING_SECONDS):
            raise errors.UnavailableError("Other pages are being drawn. Try again in a moment.")
        try:
            picture: bytes = self._child.request("draw_page", path, number, options)
            return picture
        finally:
            self._lock.release()

    def close(self) -> None:
        self._child.close()
