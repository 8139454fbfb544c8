"""Finds a quotation in a passage even if line breaks, ligatures, dashes or case differ."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from functions.core.text import words

Span = tuple[int, int]

MIN_LETTERS = 8
"""Of letters and digits, a CJK character counting as 3: a shorter quotation matches by chance."""
FUZZY_SHARE = 0.6
"""The share of a quotation's words that one stretch of a passage must contain."""

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
    """A text without typographic differences; character i of `text` comes from source[starts[i]:ends[i]]."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def fold(source: str) -> Folded:
    """Applies NFKC and case folding, unifies dashes and quotes, and drops white space, Markdown and soft hyphens.

    White space is dropped because extracted page text loses and adds it. Hyphens between letters are dropped because
    at the end of a line they may be part of the word or not.
    """
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _split_clusters(source):
        for char in _fold_cluster(source[start:end]):
            if chars and char.isalpha() and chars[-1] == "-" and len(chars) > 1 and chars[-2].isalpha():
                for column in (chars, starts, ends):
                    column.pop()
            chars.append(char)
            starts.append(start)
            ends.append(end)
    return Folded("".join(chars), starts, ends)


def find_exact(quote: str, passage: str, folded: Folded) -> Span | None:
    """The span of `passage` that contains `quote` word for word, where "…" in `quote` stands for any text.

    `folded` is `fold(passage)`, which the caller computes once for many quotations.
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
    """The shortest span of `passage` that contains most of the quotation's words and all of its numbers."""
    quoted = Counter(word.key for word in words.content_words(quote))
    if quoted.total() < 3:
        return None
    passage_words = words.content_words(passage)
    best: tuple[float, int, Span] | None = None
    size = quoted.total() + 2
    for left, first in enumerate(passage_words):
        if first.key not in quoted:
            continue
        window = passage_words[left : left + size]
        shared = Counter(word.key for word in window) & quoted
        share = shared.total() / quoted.total()
        last = max(at for at, word in enumerate(window) if word.key in quoted)
        candidate = (share, -last, (first.start, window[last].end))
        if best is None or candidate[:2] > best[:2]:
            best = candidate
    if best is None or best[0] < FUZZY_SHARE:
        return None
    start, end = best[2]
    return best[2] if words.numbers(quoted) <= words.numbers(words.keys(passage[start:end])) else None


def _find_part(part: str, passage: str, folded: Folded, after: int) -> Span | None:
    """The first match of `part` from `after` on; if there is none, of `part` without its outer punctuation."""
    folded_part = fold(part).text
    for needle in (folded_part, folded_part.strip(".,;:!?'\"()[]-")):
        if _is_too_short(needle):
            continue
        at = folded.text.find(needle)
        while at >= 0:
            start, end = folded.starts[at], folded.ends[at + len(needle) - 1]
            if start >= after and _is_at_word_boundaries(passage, start, end):
                return start, end
            at = folded.text.find(needle, at + 1)
    return None


def _is_too_short(folded: str) -> bool:
    weight = sum(3 if _WIDE.match(char) else 1 for char in folded if char.isalnum())
    return weight < MIN_LETTERS


def _is_at_word_boundaries(text: str, start: int, end: int) -> bool:
    """Whether neither end of the span is inside a word or number."""
    return not (_is_inside_word(text, start) or _is_inside_word(text, end))


def _is_inside_word(text: str, at: int) -> bool:
    if at <= 0 or at >= len(text):
        return False
    before, after = text[at - 1], text[at]
    if before.isdigit() and after in ".,":
        return at + 1 < len(text) and text[at + 1].isdigit()
    if after.isdigit() and before in ".,":
        return at > 1 and text[at - 2].isdigit()
    return before.isalnum() and after.isalnum() and not (_WIDE.match(before) or _WIDE.match(after))


def _split_clusters(source: str) -> Iterator[Span]:
    """The spans of the characters of `source`, each with the combining marks that follow it."""
    if source.isascii():
        yield from ((at, at + 1) for at in range(len(source)))
        return
    start = 0
    for at in range(1, len(source) + 1):
        if at == len(source) or not unicodedata.combining(source[at]):
            yield start, at
            start = at


@lru_cache(maxsize=4096)  # a passage repeats a few dozen characters, and an answer folds all its passages
def _fold_cluster(cluster: str) -> str:
    alike = _ALIKE.get(cluster)
    if alike is not None:
        return alike
    return "".join(
        _ALIKE.get(char, char)
        for char in unicodedata.normalize("NFKC", cluster).casefold()
        if not char.isspace() and char not in "*`|\u00ad" and unicodedata.category(char) != "Cf"
    )
