"""Parallel English and French sentences on general subjects, with which a model's similarities are measured.

`neutral_sentences.tsv` was written for this project, and none of it comes from a question set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NeutralSentence:
    """The same sentence of 8 to 25 words in both languages; half of the sentences are questions."""

    en: str
    fr: str
    is_question: bool


@cache
def read_neutral_sentences() -> tuple[NeutralSentence, ...]:
    """Reads the sentences in the order of the file."""
    text = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8")
    pairs = (line.split("\t") for line in text.splitlines()[1:])
    return tuple(NeutralSentence(en, fr, is_question=en.endswith("?")) for en, fr in pairs)
