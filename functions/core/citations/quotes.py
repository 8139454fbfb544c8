"""Finds the words of a quotation in a passage although line breaks, ligatures, dashes or case differ."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from functions.core.text import words

Span = tuple[int, int]

MIN_LETTERS = 8
"""Shorter quotations are found by chance, in letters and digits (3 where each character is a word)."""
FUZZY_SHARE = 0.6
"""The share of a quotation's words that must stand together in a passage."""

_ALIKE = {
    **dict.fromkeys("‘’‚‛′`´ʼ", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
    "…": "...",
}
_ELISION = re.compile(r"\s*(?:\[\s*(?:\.{3}|…)\s*\]|\(\s*(?:\.{3}|…)\s*\)|\.{3,}|…)\s*")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Folded:
    """A text without its typography; character i of `text` comes from source[starts[i]:ends[i]]."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def fold(source: str) -> Folded:
    """NFKC and case folded, dashes and quotation marks alike, without white space, Markdown, soft and joining hyphens.

    White space is left out altogether because page text loses and invents it; hyphens between letters because a line
    end makes them ambiguous.
    """
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(source):
        for char in _plain(source[start:end]):
            if chars and char.isalpha() and chars[-1] == "-" and len(chars) > 1 and chars[-2].isalpha():
                for column in (chars, starts, ends):
                    column.pop()
            chars.append(char)
            starts.append(start)
            ends.append(end)
    return Folded("".join(chars), starts, ends)


def find_exact(quote: str, passage: str, folded: Folded) -> Span | None:
    """Where `quote` stands in `passage` word for word, as (start, end); parts left out with "…" may be bridged.

    `folded` is `fold(passage)`.
    """
    parts = [part for part in _ELISION.split(quote.strip()) if part.strip()]
    spans: list[Span] = []
    for part in parts:
        span = _find_part(part, passage, folded, after=spans[-1][1] if spans else 0)
        if span is None:
            return None
        spans.append(span)
    return (spans[0][0], spans[-1][1]) if spans else None


def find_similar(quote: str, passage: str) -> Span | None:
    """The tightest stretch of `passage` that holds most of the quotation's words and every number of it."""
    wanted = Counter(word.key for word in words.content_words(quote))
    if wanted.total() < 3:
        return None
    found = words.content_words(passage)
    best: tuple[float, int, Span] | None = None
    size = wanted.total() + 2
    for left, first in enumerate(found):
        if first.key not in wanted:
            continue
        window = found[left : left + size]
        held = Counter(word.key for word in window) & wanted
        share = held.total() / wanted.total()
        last = max(at for at, word in enumerate(window) if word.key in wanted)
        candidate = (share, -last, (first.start, window[last].end))
        if best is None or candidate[:2] > best[:2]:
            best = candidate
    if best is None or best[0] < FUZZY_SHARE:
        return None
    start, end = best[2]
    return best[2] if words.numbers(wanted) <= words.numbers(words.keys(passage[start:end])) else None


def _find_part(part: str, passage: str, folded: Folded, after: int) -> Span | None:
    core = fold(part).text
    for wanted in (core, core.strip(".,;:!?'\"()[]-")):
        if _too_short(wanted):
            continue
        at = folded.text.find(wanted)
        while at >= 0:
            start, end = folded.starts[at], folded.ends[at + len(wanted) - 1]
            if start >= after and _is_whole(passage, start, end):
                return start, end
            at = folded.text.find(wanted, at + 1)
    return None


def _too_short(folded: str) -> bool:
    weight = sum(3 if _WIDE.match(char) else 1 for char in folded if char.isalnum())
    return weight < MIN_LETTERS


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether the span cuts no word or number in two."""
    return not (_joins(text, start) or _joins(text, end))


def _joins(text: str, at: int) -> bool:
    if at <= 0 or at >= len(text):
        return False
    before, after = text[at - 1], text[at]
    if before.isdigit() and after in ".,":
        return at + 1 < len(text) and text[at + 1].isdigit()
    if after.isdigit() and before in ".,":
        return at > 1 and text[at - 2].isdigit()
    return before.isalnum() and after.isalnum() and not (_WIDE.match(before) or _WIDE.match(after))


def _clusters(source: str) -> Iterator[Span]:
    """Characters with the combining marks that follow them."""
    start = 0
    for at in range(1, len(source) + 1):
        if at == len(source) or not unicodedata.combining(source[at]):
            yield start, at
            start = at


def _plain(cluster: str) -> str:
    alike = _ALIKE.get(cluster)
    if alike is not None:
        return alike
    return "".join(
        _ALIKE.get(char, char)
        for char in unicodedata.normalize("NFKC", cluster).casefold()
        if not char.isspace() and char not in "*`|\u00ad" and unicodedata.category(char) != "Cf"
    )
