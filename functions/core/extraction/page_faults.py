"""Keeps one page of a document, on which Ibid fails or which takes too much, from failing all of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from functions.core import errors, models
from functions.core.extraction.documents import ExtractedDocument

READING_FAILED = "reading_failed"
"""The warning of a page that was skipped because reading it raised an unexpected exception."""

TOO_COMPLEX = "too_complex"
"""The warning of a page that was skipped because reading it took too much memory or time."""
MAX_TOO_COMPLEX = 5
"""A document with more such pages fails, because each of them costs as much as a hundred others."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FaultTolerantReader:
    """An `ExtractedDocument` around another one: pages that raise an unexpected exception are empty, with a warning.

    So are the first pages that are too complex. The other errors of `core.errors` pass through, because they say
    something about the document or a service.
    """

    document: ExtractedDocument

    @property
    def page_count(self) -> int:
        return self.document.page_count

    @property
    def metadata(self) -> models.DocumentMetadata:
        """The metadata of the document, empty if it cannot be read."""
        try:
            return self.document.metadata
        except errors.TooComplexError:
            return models.DocumentMetadata()
        except errors.IbidError:
            raise
        except Exception:
            _log.exception("an internal error left a document without metadata")
            return models.DocumentMetadata()

    def pages(self, start: int = 1) -> Iterator[models.Page]:
        """The pages from number `start`; those that cannot be read have no text. Raises TooComplexError."""
        number, too_complex = start, 0
        while number <= self.page_count:
            try:
                for page in self.document.pages(number):
                    yield page
                    number = page.number + 1
                return
            except errors.TooComplexError:
                too_complex += 1
                if too_complex > MAX_TOO_COMPLEX:
                    raise
                _log.warning("a page was too complex to read", extra={"page": number})
                yield models.Page(number, "", (TOO_COMPLEX,))
                number += 1
            except errors.IbidError:
                raise
            except Exception:
                _log.exception("an internal error left a page unread", extra={"page": number})
                yield models.Page(number, "", (READING_FAILED,))
                number += 1

    def read_text_layer(self, number: int) -> str:
        """The text layer of one page, empty if it cannot be read."""
        try:
            return self.document.read_text_layer(number)
        except errors.TooComplexError:
            return ""
        except errors.IbidError:
            raise
        except Exception:
            _log.exception("an internal error left a text layer unread", extra={"page": number})
            return ""

    def __enter__(self) -> Self:
        self.document.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.document.__exit__(*exc_info)
