"""Joins accents to their letters where a PDF prints them apart, as LaTeX's older fonts do ("l’´ecole", "con¸cu")."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from functions.core.extraction.pdf.geometry import Box

_COMBINING: Final = {
    "´": "\u0301", "`": "\u0300", "ˆ": "\u0302", "¨": "\u0308", "˜": "\u0303", "¸": "\u0327",
    "ˇ": "\u030c", "˚": "\u030a", "˙": "\u0307", "˘": "\u0306", "˝": "\u030b", "¯": "\u0304",
}  # fmt: skip
_DOTLESS: Final = {"ı": "i", "ȷ": "j"}
_ACCENT: Final = re.compile(f"[{''.join(_COMBINING)}]")


def has_accents(text: str) -> bool:
    """Whether there is an accent without a letter, which on most pages there is not."""
    return _ACCENT.search(text) is not None


def join_accents(text: str, places: Sequence[int], boxes: Sequence[Box | None]) -> tuple[str, list[int]]:
    """The text with each accent that stands over a letter beside it joined to the letter, and the places that are left.

    `boxes[places[n]]` is the box of character n of the text. An accent that stands beside a letter is a quotation mark.
    """
    characters = list(text)
    for found in _ACCENT.finditer(text):
        at = found.start()
        for beside in (at + 1, at - 1):
            letter = "".join(characters[beside : beside + 1]) if beside >= 0 else ""
            if not letter.isalpha() or not _stands_over(boxes[places[at]], boxes[places[beside]]):
                continue
            joined = unicodedata.normalize("NFC", _DOTLESS.get(letter, letter) + _COMBINING[characters[at]])
            if len(joined) == 1:
                characters[at], characters[beside] = "", joined
                break
    left = [(character, place) for character, place in zip(characters, places, strict=True) if character]
    return "".join(character for character, _ in left), [place for _, place in left]


def _stands_over(accent: Box | None, letter: Box | None) -> bool:
    """Whether the middle of the accent is between the sides of the letter; a cedilla stands below it."""
    return accent is not None and letter is not None and letter[0] <= (accent[0] + accent[2]) / 2 <= letter[2]
