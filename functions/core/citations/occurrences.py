"""Finds the places where a page has some words, whatever their case, accents, line breaks and dashes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from functions.core.citations.quotes import Span, fold


def find_occurrences(words: str, page: str) -> Iterator[Span]:
    """The spans of `page` that read like `words`, in order; none overlap."""
    needle = _without_accents(fold(words).text)
    folded = fold(page)
    text = _without_accents(folded.text)
    at = text.find(needle) if needle else -1
    while at >= 0:
        last = at + len(needle)
        yield folded.starts[at], folded.ends[last - 1]
        at = text.find(needle, last)


def _without_accents(text: str) -> str:
    """The text with the base letter of each accented one, at the same offsets."""
    return "".join(unicodedata.normalize("NFD", char)[0] for char in text)
