"""Finds the quotation of a saved citation in its source, which may have been edited or indexed again since."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from functions.core.citations import quotes

State = Literal["current", "superseded", "deleted"]
"""Whether a source is the newest version of its document, an older version, or deleted (also: in the trash)."""
Place = Literal["unchanged", "moved", "lost"]
"""Whether a quotation is where it was cited, has moved, or is no longer found."""

_MIN_LETTERS = 8
"""A quotation with fewer letters is searched on its own page alone, and must occur there exactly once."""


@dataclass(frozen=True, slots=True)
class QuoteLocation:
    """Where a quotation is now: characters [start, end) of the text of a page."""

    page: int
    start: int
    end: int


class StoredPage:
    """The text of a page, with data derived from it on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def letters(self) -> str:
        return _letters(self.text)

    @cached_property
    def folded(self) -> quotes.Folded:
        return quotes.fold(self.text)


def relocate_quote(quote: str, page: int, start: int, pages: Mapping[int, StoredPage]) -> QuoteLocation | None:
    """Where `quote`, once at offset `start` of `page`, is now on that page or an adjacent one; `pages` is by number.

    A verbatim match nearest to `start` is preferred. Otherwise its own page is searched regardless of typography (line
    ends, ligatures).
    """
    candidates = (page, page - 1, page + 1) if len(_letters(quote)) >= _MIN_LETTERS else (page,)
    for number in candidates:
        places = list(_find_places(quote, pages[number].text)) if number in pages else []
        if len(places) == 1 or (places and len(candidates) > 1):
            nearest = min(places, key=lambda at: abs(at - start))
            return QuoteLocation(number, nearest, nearest + len(quote))
    return _find_with_other_typography(quote, page, pages)


def _find_with_other_typography(quote: str, page: int, pages: Mapping[int, StoredPage]) -> QuoteLocation | None:
    stored = pages.get(page)
    if stored is None or _letters(quote) not in stored.letters:  # folding a page is slow, this test is fast
        return None
    span = quotes.find_exact(quote, stored.text, stored.folded)
    return None if span is None or span[1] - span[0] > 2 * len(quote) else QuoteLocation(page, *span)


def _find_places(quote: str, text: str) -> Iterator[int]:
    """The offsets of `quote` in `text`, except inside longer words."""
    at = text.find(quote) if quote else -1
    while at >= 0:
        end = at + len(quote)
        cuts_word = text[at - 1 : at].isalnum() and quote[0].isalnum()
        if not (cuts_word or (text[end : end + 1].isalnum() and quote[-1].isalnum())):
            yield at
        at = text.find(quote, at + 1)


def _letters(text: str) -> str:
    """Only the letters and digits of `text`, case folded."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).casefold()
