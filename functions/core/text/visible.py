"""Whether a text holds anything that a reader could see, or read as a word."""

from __future__ import annotations

import unicodedata

_UNSEEN = ("C", "M", "Z")
_EMPTY_LETTERS = frozenset("\ufffd\u115f\u1160\u3164\uffa0\u2800")
"""The mark of what could not be read, and letters and symbols that are drawn as nothing (Hangul fillers, Braille)."""


def is_blank(text: str) -> bool:
    """True for spaces, controls, zero-width characters and marks without a letter, however many."""
    return all(unicodedata.category(char)[0] in _UNSEEN or char in _EMPTY_LETTERS for char in text)


def has_word(text: str) -> bool:
    """Whether there is a letter or digit, without which a passage is of no use to anybody."""
    return any(map(str.isalnum, text))
