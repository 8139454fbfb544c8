"""Finds the words of a text that carry meaning, in a comparable form and with their positions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

_STOP_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    a about above after again all also an and any are as at be been before being below between both but by can could
    did do does doing down during each few for from further had has have having he her here hers him his how i if in
    into is it its itself just me more most my no nor not now of off on once only or other our out over own s same she
    should so some such t than that the their them then there these they this those through to too under until up very
    was we were what when where which while who whom whose why will with would you your according name many much
    au aux avec ce ceci cela ces cet cette ceux comme comment c d dans de des donc dont du elle elles en entre est et
    etait etaient etant ete etre eu eux fait font furent fut il ils j je l la le les leur leurs lui m ma mais meme mes
    moi mon n ne nos notre nous on ont or ou par parmi pas peu plus pour pourquoi qu quand que quel quelle quelles quels
    qui quoi sa sans se sera ses si soit son sont sous sur t ta te tes toi ton tous tout toute toutes tres tu un une
    vos votre vous y avait avaient ont combien quoi lequel laquelle lesquels lesquelles selon lors cela ainsi
    """,
    )
)
_WORD = re.compile(r"(?:\d{1,3}(?:[ \u00a0\u202f’']\d{3})+(?!\d)|\d+)(?:[.,]\d+)*|[^\W\d_]+")
_BREAK = re.compile(r"(?<=[^\W\d_])(?:[-\u2010]\s*\n\s*|\u00ad\s*)(?=[^\W\d_])")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]")
_GROUPED = re.compile(r"\d{1,3}(?:[ \u00a0\u202f.,’']\d{3})+(?![ \u00a0\u202f.,’']?\d)")
_ENDINGS = re.compile(r"(?:ements?|ations?|ations?|ments?|ings?|ies|ees|es|ed|ée?s?|e?s|e|x|y|er|ent)$")


MIN_HEADLINE_WORDS = 3
"""After the first, all capitalised; fewer may be one name."""


class Word(NamedTuple):
    """A word in comparable form (`key`) and its position [start, end) in the text."""

    key: str
    start: int
    end: int

    @property
    def is_number(self) -> bool:
        return self.key[0].isdigit()


def content_words(text: str) -> list[Word]:
    """The words of `text` except function words: accents folded, endings cut, numbers in one notation.

    A word hyphenated over two lines is one word; so is each single Chinese, Japanese or Korean character.
    """
    return [word for word in all_words(text) if is_content(word.key)]


def is_content(key: str) -> bool:
    """Whether a key is of a word that carries meaning."""
    return key not in _STOP_WORDS


def keys(text: str) -> frozenset[str]:
    """The distinct content words of `text`."""
    joined = _BREAK.sub("", text)
    if _CJK.search(joined):
        found = {_key(joined[start:end]) for match in _WORD.finditer(joined) for start, end in _pieces(match)}
    else:
        found = set(map(_key, _WORD.findall(joined)))
    return frozenset(found - _STOP_WORDS)


def names_and_numbers(text: str) -> frozenset[str]:
    """The content words of a sentence that a translation keeps: numbers, and capitalised words except the first.

    In a headline, where every word is capitalised, only numbers are certain.
    """
    return frozenset(word.key for word in _find_names_and_numbers(text))


def full_names_and_numbers(text: str) -> frozenset[str]:
    """Those of `names_and_numbers` that are not written in capitals as an abbreviation is."""
    found = _find_names_and_numbers(text)
    return frozenset(word.key for word in found if not text[word.start : word.end].isupper())


def _find_names_and_numbers(text: str) -> list[Word]:
    found = content_words(text)
    later = _WORD.findall(text)[1:]
    is_headline = len(later) >= MIN_HEADLINE_WORDS and not any(word[0].islower() for word in later)
    first = _WORD.search(text)
    return [
        word
        for word in found
        if word.is_number or (not is_headline and first and word.start != first.start() and text[word.start].isupper())
    ]


def numbers(words: Iterable[str]) -> frozenset[str]:
    """The numbers among `words`."""
    return frozenset(word for word in words if word[0].isdigit())


def all_words(text: str) -> list[Word]:
    """The words of `text` in the same form, function words among them."""
    joined, places = _join_hyphenated(text)
    if joined is text and not _CJK.search(text):
        return [Word(_key(match.group()), *match.span()) for match in _WORD.finditer(text)]
    spans = (span for match in _WORD.finditer(joined) for span in _pieces(match))
    return [Word(_key(joined[start:end]), places[start], places[end - 1] + 1) for start, end in spans]


def _pieces(match: re.Match[str]) -> list[tuple[int, int]]:
    word = match.group()
    if word.isascii() or not _CJK.search(word):
        return [match.span()]
    return [(at, at + 1) for at in range(*match.span())]


def _join_hyphenated(text: str) -> tuple[str, Sequence[int]]:
    """`text` with words hyphenated at line ends joined, and the position in `text` of each character."""
    parts: list[str] = []
    places: list[int] = []
    left = 0
    for match in _BREAK.finditer(text):
        parts.append(text[left : match.start()])
        places.extend(range(left, match.start()))
        left = match.end()
    if not parts:
        return text, range(len(text))
    parts.append(text[left:])
    places.extend(range(left, len(text)))
    return "".join(parts), places


@lru_cache(maxsize=50_000)
def _key(word: str) -> str:
    if word[0].isdigit():
        return _number_key(word)
    folded = "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))
    folded = folded.replace("œ", "oe").replace("æ", "ae") or word
    if folded in _STOP_WORDS or len(folded) <= 3:
        return folded
    return _stem(folded)


def _stem(word: str) -> str:
    """The word without its ending, so that inflected forms match; a stem has at least three letters."""
    stem = _ENDINGS.sub("", word)
    return stem if len(stem) >= 3 else word


def _number_key(number: str) -> str:
    """The same key for 1,234.5 and 1 234,5; a group of three digits counts as thousands in either notation."""
    if _GROUPED.fullmatch(number):
        return re.sub(r"\D", "", number)
    whole = re.match(r"(\d{1,3}(?:[ \u00a0\u202f.,’']\d{3})+)[.,](\d+)$", number)
    if whole:
        return re.sub(r"\D", "", whole[1]) + "." + whole[2]
    return re.sub(r"[^\d]", ".", number)
