"""Finds the abbreviations that a text defines itself, such as "property, plant and equipment (PP&E)".

A short form is matched with the words beside it by its letters, from right to left (Schwartz and Hearst, 2003).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

MAX_ABBREVIATIONS: Final = 200
"""The most that are kept of a document."""

_SHORT: Final = r"[^\W\d_](?:[\w&/.’'-]{0,8}[^\W_])"
_BRACKETS: Final = re.compile(
    rf"\(\s*(?:the\s|ci-après\s|hereafter\s|or\s|ou\s)?[“\"'«]?\s?(?P<short>{_SHORT})\s?[”\"'»]?\s*\)"
)
_SPELLED: Final = re.compile(rf"(?<!\w)(?P<short>{_SHORT})\s\((?P<long>[^\W\d_][^()]{{8,90}})\)")
_WORD: Final = re.compile(r"\w+")
_BREAK: Final = re.compile(r"[.;:!?]\s|[()•|“”\"«»]")
_ROMAN: Final = re.compile(r"[IVXLC]+")
_LINKS: Final = frozenset(
    re.findall(r"\w+", "a an and at by for in of on or the to au aux d de des du en et l la le les ou par pour sur")
)
_MIN_LONG_WORDS, _MAX_LONG_WORDS = 2, 10
_MAX_REACH: Final = 110
"""The characters before a bracket in which the long form is looked for."""


def find_abbreviations(text: str) -> dict[str, str]:
    """The long form of each abbreviation that `text` defines, by its short form, each in one line."""
    line = " ".join(text.split())
    return {short: long for short, long in _find_candidates(line) if short not in long}


def learn(known: Mapping[str, str], text: str) -> Mapping[str, str]:
    """The abbreviations of a document so far, with those that `text` defines; the first definition counts."""
    return dict(itertools.islice({**known, **find_abbreviations(text), **known}.items(), MAX_ABBREVIATIONS))


def list_other_forms(text: str, known: Mapping[str, str]) -> list[str]:
    """For each abbreviation that `text` has in one form only, the other form."""
    folded = f" {' '.join(text.split()).casefold()} "
    forms = []
    for short, long in known.items():
        has_short, has_long = re.search(rf"(?<!\w){re.escape(short)}(?!\w)", text), long.casefold() in folded
        if bool(has_short) != has_long:
            forms.append(short if has_long else long)
    return forms


def _find_candidates(line: str) -> Iterator[tuple[str, str]]:
    for match in _BRACKETS.finditer(line):
        before = line[max(0, match.start() - _MAX_REACH) : match.start()].rstrip()
        long = _match_backwards(match["short"], _BREAK.split(before)[-1])
        if long:
            yield match["short"], long
    for match in _SPELLED.finditer(line):
        if _match_backwards(match["short"], match["long"]) == match["long"]:
            yield match["short"], match["long"]


def _match_backwards(short: str, text: str) -> str | None:
    """The end of `text` that a short form stands for; None if it has not the letters of the short form in order."""
    letters = [letter for letter in short.casefold() if letter.isalnum()]
    if _ROMAN.fullmatch(short) or sum(map(str.isupper, short)) < max(2, len(letters) / 2):
        return None
    start = _match_initials(letters, text.casefold())
    if start is None:
        start = _match_letters(letters, text.casefold())
    if start is None:
        return None
    long = text[start:].strip(" ,")
    return long if _MIN_LONG_WORDS <= len(long.split()) <= min(_MAX_LONG_WORDS, 2 * len(letters) + 1) else None


def _match_initials(letters: Sequence[str], text: str) -> int | None:
    """Where the words begin whose first letters are `letters`; words such as "and" or "des" may be between them."""
    left = len(letters)
    for word in reversed(list(_WORD.finditer(text))):
        if word.group() in _LINKS:
            continue
        left -= 1
        if word.group()[0] != letters[left]:
            return None
        if left == 0:
            return word.start()
    return None


def _match_letters(letters: Sequence[str], text: str) -> int | None:
    """Where the text begins that contains `letters` in order, the first of them at the start of a word."""
    at = len(text)
    for index in range(len(letters) - 1, -1, -1):
        at -= 1
        while at >= 0 and (text[at] != letters[index] or (index == 0 and at > 0 and text[at - 1].isalnum())):
            at -= 1
        if at < 0:
            return None
    return at
