"""Chooses which passages of a ranking the model reads: not too many from one source, and none twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from functions.core import models
from functions.core.settings import Settings

MAX_OVERLAP = 0.5
"""Two passages of one source repeat each other if they share more than this part of the shorter one."""
MAX_LIKENESS = 0.9
"""Two passages are the same text if the Jaccard similarity of their shingles is at least this."""
SHINGLE_WORDS = 3

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")

Shingles = frozenset[tuple[str, ...]]


def choose_context(
    hits: Sequence[models.SearchHit], settings: Settings, source_count: int
) -> tuple[models.SearchHit, ...]:
    """The best `context_passages` hits, at most `passages_per_source` of one source, none that repeats a better one.

    Among few sources, `source_count` in all, one may have more passages: one place is left for each of the others.
    A passage repeats another if it lies mostly inside it, or has nearly the same words and the same figures. Hits keep
    their order and are never merged, because citations point into single passages.
    """
    chosen: list[models.SearchHit] = []
    shingles: list[Shingles] = []
    per_source: Counter[str] = Counter()
    most = max(settings.passages_per_source, settings.context_passages - max(source_count, 1) + 1)
    for hit in hits:
        if len(chosen) == settings.context_passages:
            break
        if per_source[hit.source_id] >= most:
            continue
        if any(_overlap(hit, other) > MAX_OVERLAP for other in chosen):
            continue
        own_shingles = _cut_shingles(hit.text)
        if any(_is_same_text(own_shingles, other) for other in shingles):
            continue
        chosen.append(hit)
        shingles.append(own_shingles)
        per_source[hit.source_id] += 1
    return tuple(chosen)


def order_for_reading(hits: Sequence[models.SearchHit]) -> tuple[models.SearchHit, ...]:
    """Puts passages that follow each other in a source side by side, at the place of the best of them."""
    remaining = {(hit.source_id, hit.chunk_index): hit for hit in hits}
    ordered: list[models.SearchHit] = []
    for hit in hits:
        first = hit.chunk_index
        while (hit.source_id, first - 1) in remaining:
            first -= 1
        while (hit.source_id, first) in remaining:
            ordered.append(remaining.pop((hit.source_id, first)))
            first += 1
    return tuple(ordered)


def _overlap(a: models.SearchHit, b: models.SearchHit) -> float:
    """The share of the shorter passage that both cover."""
    if a.source_id != b.source_id or a.page_start != b.page_start or a.page_end != b.page_end:
        return 0.0
    shared = min(a.end_offset, b.end_offset) - max(a.start_offset, b.start_offset)
    return shared / max(1, min(a.end_offset - a.start_offset, b.end_offset - b.start_offset))


def _cut_shingles(text: str) -> Shingles:
    """Every run of three words, and every figure by itself, regardless of case, punctuation and white space."""
    words = _WORD.findall(text.casefold())
    runs = zip(*(words[at:] for at in range(min(SHINGLE_WORDS, len(words)))), strict=False)
    # `isalpha` first, because it is quick and no letter is a digit.
    return frozenset((*runs, *((word,) for word in words if not word.isalpha() and any(map(str.isdigit, word)))))


def _is_same_text(a: Shingles, b: Shingles) -> bool:
    """Whether the shingles are nearly the same and the figures equal: this year's report is not last year's."""
    shared = len(a & b)
    return shared >= MAX_LIKENESS * (len(a) + len(b) - shared) and _figures(a) == _figures(b)


def _figures(shingles: Shingles) -> Shingles:
    return frozenset(shingle for shingle in shingles if len(shingle) == 1)
