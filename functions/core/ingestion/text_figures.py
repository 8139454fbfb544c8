"""Measures how well the text of a document was read, on its prose.

Three kinds of damage leave traces in the text itself. Letters that an extraction mixes up make words that no language
spells like that. Lines of two columns that run into each other put words next to each other that no sentence has. Lost
hyphens leave halves of words at the ends of lines. The spelling and the sentences of English and French are known; of
words in other languages it is only known that they have vowels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from functions.core.ingestion import spelling
from functions.core.text import languages

MIN_WORDS = 60
"""Fewer words say nothing about a document or a page."""
GARBLED_SHARE = 0.25
"""Of the words on a page: from here on, it is garbled."""

PASSAGES = 2000
"""Of a longer document only as many passages are measured, evenly spread, which takes two to four seconds."""

_KNOWN_LANGS: Final = ("en", "fr")
_SHORTEST = 3
_MIN_TRACES = 3  # fewer may be misprints
_TOKEN = re.compile(r"[^\W_]+")
_WORD_WITH_DIGIT = re.compile(r"[^\W\d_]+\d+[^\W\d_]+")
_SPACED_LETTERS = re.compile(r"\b[^\W\d_](?: [^\W\d_]\b){3,}")
_LINE_END = re.compile(r"(?<![^\W_])([^\W\d_]+)[ \t]*\n[ \t]*([^\W\d_]+)")


def _any_of(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


def _sequences(before: str, after: str) -> str:
    """A pattern of each word of `before` with each word of `after`; hyphenated words ("the on-site") do not count."""
    return rf"{_any_of(before)}\s+{_any_of(after)}(?=\s+\w)"


# What no English or French sentence has, except for a few misprints. A sentence that ends is followed by a capital.
_IMPOSSIBLE = re.compile(
    r"\b(?:"
    + "|".join(
        [
            _sequences(
                "the an its their our your",
                "the a an of in and to is are was were for with by on from that this which has have be it they or he"
                " she we but because when where while if had been would could should did",
            ),
            _sequences("a", "the of for with by from that this which has have was were he she we they because when"),
            _sequences("of from with between", "is are was were has have had will would could should of and or but"),
            _sequences("to at by into", "is are was were has had of will would"),
            _sequences("is are was were", "is are was were has have had"),
            _sequences(
                "le la les des du au aux cette ces ses sa",
                "le la les des du au aux et dans pour par sur est sont sa ses ces cette qui que ou en de mais avec"
                " il elle ils elles était étaient",
            ),
            _sequences("ce", "le la les des du au aux et dans par sur sa ses ces cette ou de mais avec il elle ils"),
            _sequences("de dans par avec sous entre à", "est sont était étaient sera ont et ou mais"),
            _sequences("un une", "le la les ces cette sa ses"),
        ]
    )
    + r")"
)
_NO_CAPITAL_AFTER_STOP = re.compile(r"(?<![\w.])[a-zà-ÿ]{4,}\.\s+[a-zà-ÿ]{2,}\b")
# At the beginning of a line only after a word that ends no heading.
_CAPITAL_WITHOUT_STOP = re.compile(
    r"(?:(?<=[a-zà-ÿ]) |\b"
    + _any_of(
        "the a an of to in and for with by from as is are was were its their"
        " de la le les des du et à en au aux par pour dans sur un une que qui ou est sont"
    )
    + r"\s+)"
    + _any_of(
        "The This These It He She They We In If When However"
        " Le La Les Il Elle Ils Elles Un Une Ce Cette Ces Dans Des Au Aux Pour Lorsque"
    )
    + r"(?= [a-zà-ÿ])"
)


@dataclass(frozen=True, slots=True)
class Prose:
    """A passage of one page that is no row of a table."""

    page: int
    text: str


@dataclass(frozen=True, slots=True)
class TextFigures:
    """What was measured on `words` words of prose.

    `unlikely_words` is the share of words that are spelt like none, 0…1; `broken_sentences` and `split_words` are per
    1,000 words; `garbled_pages` are the pages where at least `GARBLED_SHARE` of the words are unlikely. The figures are
    None where fewer than `MIN_WORDS` words could be measured.
    """

    words: int
    unlikely_words: float | None
    broken_sentences: float | None
    split_words: float | None
    garbled_pages: tuple[int, ...]


def measure(passages: Sequence[Prose]) -> TextFigures:
    """The figures of the prose of a document, page by page in order."""
    by_page: dict[int, list[bool]] = {}
    broken = 0
    for passage in passages:
        is_known = languages.detect_certain_language(passage.text) in _KNOWN_LANGS
        by_page.setdefault(passage.page, []).extend(_judge_words(passage.text, is_known))
        broken += _count_broken_sentences(passage.text) if is_known else 0
    words = sum(map(len, by_page.values()))
    if words < MIN_WORDS:
        return TextFigures(words, None, None, None, ())
    return TextFigures(
        words,
        round(sum(map(sum, by_page.values())) / words, 3),
        _per_thousand(broken, words),
        _per_thousand(_count_split_words([passage.text for passage in passages]), words),
        tuple(page for page, judged in by_page.items() if _is_garbled(judged)),
    )


def _judge_words(text: str, is_known: bool) -> Iterator[bool]:
    """Whether each word is unlikely; abbreviations, figures, and words of one or two letters are left out."""
    is_wrong = spelling.is_unlikely if is_known else spelling.is_unpronounceable
    yield from (True for _ in _SPACED_LETTERS.finditer(text))
    for token in _TOKEN.findall(text):
        if _WORD_WITH_DIGIT.fullmatch(token):
            yield True
        elif len(token) >= _SHORTEST and token.isalpha() and not token.isupper():
            yield is_wrong(token.lower())


def _is_garbled(judged: Collection[bool]) -> bool:
    return len(judged) >= MIN_WORDS and sum(judged) >= GARBLED_SHARE * len(judged)


def _count_broken_sentences(text: str) -> int:
    patterns = (_IMPOSSIBLE, _NO_CAPITAL_AFTER_STOP, _CAPITAL_WITHOUT_STOP)
    return sum(len(pattern.findall(text)) for pattern in patterns)


def _count_split_words(texts: Sequence[str]) -> int:
    """Line ends inside a word: both halves together are a word of the document, and one of them is none."""
    known = Counter(token.lower() for text in texts for token in _TOKEN.findall(text))
    ends = [(left.lower(), right) for text in texts for left, right in _LINE_END.findall(text) if right.islower()]
    at_ends = Counter(half for pair in ends for half in pair)
    return sum(
        known[left + right] > 0 and (known[left] <= at_ends[left] or known[right] <= at_ends[right])
        for left, right in ends
    )


def _per_thousand(traces: int, words: int) -> float:
    return round(1000 * traces / words, 2) if traces >= _MIN_TRACES else 0.0
