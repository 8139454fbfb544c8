"""Tells words that are spelt like English or French ones from letters that an extraction has mixed up.

How likely a letter is after the two before it was counted in the neutral sentences, so no list of words is needed. Of
the words in clean documents, 0 to 7 % are unlikely (names, other languages); of words with shuffled letters 55 %. Of
words in any European language, hardly one in fifty cannot be pronounced; with letters mapped wrongly, one in four.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache, lru_cache
from typing import Final

from functions.core.retrieval.neutral_sentences import read_neutral_sentences

UNLIKELY_BITS = 5.5
"""Bits a letter: the mean over the letters of a word. English and French words have about 3."""
LONGEST_WORD = 30
"""Letters; longer words have lost the spaces between them."""

LETTERS: Final = re.compile(r"[^\W\d_]+")

_SMOOTHING = 4.0
_VOWELS = "aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýÿœāąęěīőůūű"
_UNPRONOUNCEABLE = re.compile(rf"[^{_VOWELS}]{{6}}|^[^{_VOWELS}]{{4,}}$")
_BEYOND_LATIN = re.compile("[^\0-\u024f]")
_ALPHABET = 40  # letters of both languages with their accents, and the end of a word


@lru_cache(maxsize=50_000)
def is_unlikely(word: str) -> bool:
    """Whether a word, in small letters, is spelt like no English and no French one."""
    return len(word) > LONGEST_WORD or all(_bits(word, _count_letters(lang)) > UNLIKELY_BITS for lang in ("en", "fr"))


def is_unpronounceable(word: str) -> bool:
    """Whether a word, in small Latin letters, has too few vowels for any language; a weaker test than `is_unlikely`."""
    return len(word) > LONGEST_WORD or (
        _UNPRONOUNCEABLE.search(word) is not None and _BEYOND_LATIN.search(word) is None
    )


@cache
def _count_letters(lang: str) -> Counter[str]:
    """How often each sequence of one, two and three letters occurs in words; ^ is the beginning and $ the end."""
    counts: Counter[str] = Counter()
    for sentence in read_neutral_sentences():
        for word in LETTERS.findall(getattr(sentence, lang).lower()):
            padded = f"^^{word}$"
            for end in range(3, len(padded) + 1):
                counts.update(padded[end - size : end] for size in (1, 2, 3))
                counts.update(padded[end - size : end - 1] + "*" for size in (1, 2, 3))  # what stands before a letter
    return counts


def _bits(word: str, counts: Counter[str]) -> float:
    """The mean information of a letter, in bits, each expected from the two before it."""
    padded = f"^^{word}$"
    total = 0.0
    for end in range(3, len(padded) + 1):
        chance = 1 / _ALPHABET
        for size in (1, 2, 3):
            seen, before = counts[padded[end - size : end]], counts[padded[end - size : end - 1] + "*"]
            chance = (seen + _SMOOTHING * chance) / (before + _SMOOTHING)
        total -= math.log2(chance)
    return total / (len(word) + 1)
