"""Finds a quotation in a passage even if line breaks, ligatures, dashes or case differ."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

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


class Folded:
    """A text without typographic differences; character i of `text` comes from source[starts[i]:ends[i]].

    The places are found when they are first needed: most quotations stand in none of the texts they are looked for in.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        folded = "".join(_fold_clusters(source))
        self._hyphens = frozenset(_find_hyphens(folded))
        self.text = folded
        if self._hyphens:
            self.text = "".join(char for at, char in enumerate(folded) if at not in self._hyphens)

    @cached_property
    def starts(self) -> Sequence[int]:
        return [start for start, _ in self._spans]

    @cached_property
    def ends(self) -> Sequence[int]:
        return [end for _, end in self._spans]

    @cached_property
    def _spans(self) -> list[Span]:
        clusters = _find_clusters(self._source) or [(at, at + 1) for at in range(len(self._source))]
        pieces = _fold_clusters(self._source)
        spans = [span for span, piece in zip(clusters, pieces, strict=True) for _ in piece]
        return [span for at, span in enumerate(spans) if at not in self._hyphens]


def fold(source: str) -> Folded:
    """Applies NFKC and case folding, unifies dashes and quotes, and drops white space, Markdown and soft hyphens.

    White space is dropped because extracted page text loses and adds it. Hyphens between letters are dropped because
    at the end of a line they may be part of the word or not.
    """
    return Folded(source)


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
    for needle in _fold_needles(part):
        for at in _find_all(needle, folded.text):
            start, end = folded.starts[at], folded.ends[at + len(needle) - 1]
            if start >= after and _is_at_word_boundaries(passage, start, end):
                return start, end
    return None


@lru_cache(maxsize=256)  # each quotation is looked for in all passages of an answer
def _fold_needles(part: str) -> tuple[str, ...]:
    folded = fold(part).text
    needles = (folded, folded.strip(".,;:!?'\"()[]-"))
    return tuple(needle for needle in needles if not _is_too_short(needle))


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


def _find_clusters(source: str) -> list[Span] | None:
    """The spans of the characters of `source` with the combining marks that follow them; None if it has no marks."""
    if source.isascii() or not any(map(unicodedata.combining, source)):
        return None
    starts = [at for at, char in enumerate(source) if at == 0 or not unicodedata.combining(char)]
    return list(zip(starts, [*starts[1:], len(source)], strict=True))


def _fold_clusters(source: str) -> Iterator[str]:
    bounds = _find_clusters(source)
    return map(_fold_cluster, source if bounds is None else (source[start:end] for start, end in bounds))


def _find_hyphens(folded: str) -> Iterator[int]:
    """The places of the hyphens between letters."""
    for at in _find_all("-", folded):
        if folded[at - 1 : at].isalpha() and folded[at + 1 : at + 2].isalpha():
            yield at


def _find_all(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


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
