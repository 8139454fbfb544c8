"""Where the words of a saved citation stand now that their source may have been read again or changed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from functions.core.citations import quotes

State = Literal["current", "superseded", "deleted"]
"""What has become of a source: there as the newest version, there as an older one, or gone (also in the trash)."""
Place = Literal["unchanged", "moved", "lost"]
"""Whether a quotation stands where it was cited, elsewhere now, or nowhere near."""

_MIN_LETTERS = 8
"""Shorter quotations are found by chance on other pages, and on their own where they stand more than once."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Page text [start, end)."""

    page: int
    start: int
    end: int


class StoredPage:
    """The text of a page with what is worked out of it at most once."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def letters(self) -> str:
        return _letters(self.text)

    @cached_property
    def folded(self) -> quotes.Folded:
        return quotes.fold(self.text)


def find_again(quote: str, page: int, start: int, pages: Mapping[int, StoredPage]) -> Stretch | None:
    """Where `quote`, which stood at `start` of `page`, stands in `pages`: that page and those beside it, by number.

    Word for word, nearest to its old place; else on its own page in another typography (line ends, ligatures).
    """
    beside = (page, page - 1, page + 1) if len(_letters(quote)) >= _MIN_LETTERS else (page,)
    for number in beside:
        places = list(_places(quote, pages[number].text)) if number in pages else []
        if len(places) == 1 or (places and len(beside) > 1):
            found = min(places, key=lambda at: abs(at - start))
            return Stretch(number, found, found + len(quote))
    return _find_reset(quote, page, pages)


def _find_reset(quote: str, page: int, pages: Mapping[int, StoredPage]) -> Stretch | None:
    stored = pages.get(page)
    if stored is None or _letters(quote) not in stored.letters:  # without which it is not worth folding the page
        return None
    span = quotes.find_exact(quote, stored.text, stored.folded)
    return None if span is None or span[1] - span[0] > 2 * len(quote) else Stretch(page, *span)


def _places(quote: str, text: str) -> Iterator[int]:
    """Where `quote` begins in `text`, not inside a longer word."""
    at = text.find(quote) if quote else -1
    while at >= 0:
        end = at + len(quote)
        cuts_word = text[at - 1 : at].isalnum() and quote[0].isalnum()
        if not (cuts_word or (text[end : end + 1].isalnum() and quote[-1].isalnum())):
            yield at
        at = text.find(quote, at + 1)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).casefold()
