"""The unchecked sections of an answer: written by a model, or quoted from passages."""

from __future__ import annotations

from dataclasses import dataclass

from functions.core import models

SECTION_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class WrittenSection:
    """A section as the model wrote it; its ids and quotes may be invented."""

    text: str
    segment_ids: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quotation:
    """A section that quotes hit.text[start:end] for each span; `text` is the same for reading, without line breaks.

    `emphasis` are the words of `text` that carry the answer, where that is certain.
    """

    hit: models.SearchHit
    spans: tuple[tuple[int, int], ...]
    text: str
    emphasis: str = ""
