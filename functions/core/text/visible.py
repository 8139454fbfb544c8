"""Whether a text contains anything visible, and whether it contains a word."""

from __future__ import annotations

import unicodedata

_INVISIBLE = ("C", "M", "Z")
"""Unicode categories: controls and formats, combining marks, separators."""
_BLANK_CHARACTERS = frozenset("\ufffd\u115f\u1160\u3164\uffa0\u2800")
"""The replacement character, and letters and symbols that are drawn as nothing (Hangul fillers, blank Braille)."""


def is_blank(text: str) -> bool:
    """True if there are only spaces, controls, zero-width characters and combining marks without a letter."""
    return all(unicodedata.category(char)[0] in _INVISIBLE or char in _BLANK_CHARACTERS for char in text)


def has_word(text: str) -> bool:
    """Whether there is a letter or digit; a passage without one answers nothing."""
    return any(map(str.isalnum, text))
