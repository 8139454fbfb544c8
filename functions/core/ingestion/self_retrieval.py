"""Checks whether a search finds a document's own sentences: a test of its text, its vectors and the search."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from functions.core import models
from functions.core.text import sentences

SENTENCES = 10
TOP = 10
"""A sentence counts as found if it is among this many first hits."""

_MIN_WORDS = 5
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Sample:
    """Text [start, end) of a page, in characters: a passage to choose sentences from, or a sentence to look for."""

    page: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Score:
    """How many `sentences` were searched for, how many were `found`, and the share of the latter, 0…1."""

    sentences: int
    found: int
    score: float


def choose_sentences(chunks: Sequence[Sample], count: int = SENTENCES) -> tuple[Sample, ...]:
    """At most `count` different sentences of five words or more, spread evenly over the chunks, in their order.

    The longest of each chunk come first; where there are fewer chunks than `count`, the next longest follow. The
    same chunks always give the same sentences.
    """
    ranked = [samples for chunk in chunks if (samples := _rank_sentences(chunk))]
    if len(ranked) > count:
        ranked = [ranked[place * len(ranked) // count] for place in range(count)]
    chosen: dict[str, Sample] = {}
    for sample in itertools.chain.from_iterable(itertools.zip_longest(*ranked)):
        if sample is not None and len(chosen) < count:
            chosen.setdefault(" ".join(sample.text.split()), sample)  # overlapping chunks share sentences
    return tuple(sorted(chosen.values(), key=lambda sample: (sample.page, sample.start)))


def measure(
    document_id: str, samples: Sequence[Sample], search: Callable[[str], Sequence[models.SearchHit]]
) -> Score | None:
    """Searches for sentences of a document as its users do; None if there are no sentences.

    A sentence is found if one of the first `TOP` hits overlaps it in this document.
    """
    if not samples:
        return None
    found = sum(any(_overlaps(hit, document_id, sample) for hit in search(sample.text)[:TOP]) for sample in samples)
    return Score(len(samples), found, found / len(samples))


def _rank_sentences(chunk: Sample) -> list[Sample]:
    """The sentences of a chunk that are long enough, the longest first."""
    long_enough = [
        Sample(chunk.page, chunk.start + start, chunk.start + end, chunk.text[start:end])
        for start, end in sentences.split_sentences(chunk.text)
        if len(_WORD.findall(chunk.text, start, end)) >= _MIN_WORDS
    ]
    return sorted(long_enough, key=lambda sample: (sample.start - sample.end, sample.start))


def _overlaps(hit: models.SearchHit, document_id: str, sample: Sample) -> bool:
    return (
        hit.source_id == document_id
        and hit.page_start <= sample.page <= hit.page_end
        and hit.start_offset < sample.end
        and sample.start < hit.end_offset
    )
