"""Cuts texts into the pieces of a unigram vocabulary, with the offsets of each piece in the original text.

A text is normalised (NFC, then a table of characters), cut at spaces, and each word is cut where the sum of the pieces'
log probabilities is largest (Viterbi). The `tokenizers` library gives the same pieces, but takes six times the memory
and the loading time for a vocabulary of this size.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from functions.core import models

SPACE: Final = "\u2581"  # stands for the space before a word
UNKNOWN_PENALTY: Final = 10.0  # an unknown character is this much less likely than the least likely piece
CACHED_WORDS: Final = 32_768  # at most 15 MB
CACHED_LENGTH: Final = 32
LONGEST_SEGMENT: Final = 32  # sorting longer runs of combining marks takes quadratic time

_WORD: Final = re.compile("[^ ]+")
# Characters that can compose with the one before them although they are letters: Hangul and Kirat Rai vowels.
_COMPOSING_LETTER: Final = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff\U00016d40-\U00016d7f]")


class Tokens(NamedTuple):
    """The ids of the pieces, and where each begins and ends in the original text."""

    ids: list[int]
    offsets: list[models.Offsets]


class _Cut(NamedTuple):
    """The pieces of a word: their ids, and their borders in the word with the space before it."""

    ids: tuple[int, ...]
    borders: tuple[int, ...]


class _Normal(NamedTuple):
    """A normalised text; without `starts` and `ends`, each character has the position of the original one."""

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None


class UnigramTokenizer:
    """Tokenizes for any number of threads; words that were seen before come from a bounded cache."""

    def __init__(
        self, pieces: Sequence[str], scores: Iterable[float], unknown: int, replacements: Mapping[int, str]
    ) -> None:
        """`pieces` in the order of their ids; an empty one never occurs in a text."""
        self._ids = dict(zip(pieces, range(len(pieces)), strict=True))
        self._ids.pop("", None)
        self._scores = array("f", scores)
        self._unknown = unknown
        self._unknown_score = min(self._scores) - UNKNOWN_PENALTY
        self._longest = max(map(len, self._ids))
        self._replacements = dict(replacements)
        self._resized = frozenset(chr(code) for code, text in replacements.items() if len(text) != 1)
        self._cut_cached = lru_cache(CACHED_WORDS)(self._cut)

    def encode(self, text: str, limit: int | None = None) -> Tokens:
        """The tokens of `text` without special ones, the first `limit` of them if it is given."""
        normal = self._normalise(text)
        tokens = Tokens([], [])
        for match in _WORD.finditer(normal.text):
            cut = self._cut_word(match[0])
            tokens.ids.extend(cut.ids)
            tokens.offsets.extend(_locate(normal, match.start(), cut.borders))
            if limit is not None and len(tokens.ids) >= limit:
                return Tokens(tokens.ids[:limit], tokens.offsets[:limit])
        return tokens

    def count(self, text: str) -> int:
        return sum(len(self._cut_word(word).ids) for word in _WORD.findall(self._normalise(text).text))

    def _normalise(self, text: str) -> _Normal:
        if self._resized.isdisjoint(text) and unicodedata.is_normalized("NFC", text):
            return _Normal(text.translate(self._replacements))
        parts, starts, ends = list[str](), array("L"), array("L")
        for start, end in pairwise(_segment(text)):
            part = unicodedata.normalize("NFC", text[start:end]).translate(self._replacements)
            parts.append(part)
            starts.extend([start] * len(part))
            ends.extend([end] * len(part))
        return _Normal("".join(parts), starts, ends)

    def _cut_word(self, word: str) -> _Cut:
        return self._cut_cached(word) if len(word) <= CACHED_LENGTH else self._cut(word)

    def _cut(self, word: str) -> _Cut:
        """The most likely pieces; of equally likely ones, those found first, as the `tokenizers` library does."""
        text = SPACE + word
        size = len(text)
        best = [0.0] + [float("-inf")] * size
        origin, ids = [0] * (size + 1), [self._unknown] * (size + 1)
        find, scores = self._ids.get, self._scores
        for start in range(size):
            so_far = best[start]
            for end in range(start + 1, min(start + self._longest, size) + 1):
                id_ = find(text[start:end])
                if id_ is not None and so_far + scores[id_] > best[end]:
                    best[end], origin[end], ids[end] = so_far + scores[id_], start, id_
            if find(text[start]) is None and so_far + self._unknown_score > best[start + 1]:
                best[start + 1], origin[start + 1] = so_far + self._unknown_score, start
                ids[start + 1] = self._unknown
        return _trace(origin, ids, self._unknown)


def _trace(origin: Sequence[int], ids: Sequence[int], unknown: int) -> _Cut:
    """Follows the best path back from the end, and joins neighbouring unknown characters."""
    end = len(origin) - 1
    found, borders = list[int](), [end]
    while end > 0:
        if found and found[-1] == ids[end] == unknown:
            borders[-1] = origin[end]
        else:
            found.append(ids[end])
            borders.append(origin[end])
        end = origin[end]
    return _Cut(tuple(reversed(found)), tuple(reversed(borders)))


def _locate(normal: _Normal, word: int, borders: Sequence[int]) -> Iterator[models.Offsets]:
    """The offsets of the pieces of the word at `word`; a piece that is only the space before it is empty."""
    for left, right in pairwise(word + max(border - 1, 0) for border in borders):
        if normal.starts is None or normal.ends is None:
            yield left, right
        else:
            yield normal.starts[left], normal.ends[right - 1] if right > left else normal.starts[left]


def _segment(text: str) -> Iterator[int]:
    """The borders between which NFC works on each part by itself, including both ends of the text."""
    start = 0
    yield start
    for at, character in enumerate(text):
        if at - start >= LONGEST_SEGMENT or (at and not _continues(character)):
            start = at
            yield at
    yield len(text)


def _continues(character: str) -> bool:
    """Whether NFC may join or reorder a character with the one before it."""
    if character < "\u0300":
        return False
    return unicodedata.category(character).startswith("M") or _COMPOSING_LETTER.match(character) is not None
