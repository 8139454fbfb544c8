"""The figures of a text, and which of them another text does not hold, whatever the notation of either.

What a model wrote is read strictly, so that a changed figure is noticed; what it was given is read generously, in
every way it could be meant, so that another notation is not taken for another figure. Units are shown, not compared.
Only figures in digits are looked at: a number in words is rarely wrong, and often no number (one, second).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from functions.core.citations.figures.number_words import find_word_values
from functions.core.citations.figures.numerals import DECIMAL, GAP, MINUS, NUMBER, Reading
from functions.core.citations.figures.readings import (
    ANY_NUMBER,
    CODES,
    CURRENCY,
    HOUR,
    SCALE,
    find_table_units,
    read_generously,
    read_strictly,
)
from functions.core.citations.figures.units import find_unit, is_denial

# Letters take the digits behind them along: CO2, Q3 and v1.2 are names. USD9,999 is an amount.
_NAME_OR_FIGURE = re.compile(
    rf"(?<![^\W_])(?:{CODES})(?=\d)|[^\W\d_]+(?:\d\w*(?:[.,]\d+)*)?|(?P<figure>{NUMBER})", re.VERBOSE
)
_UNIT = re.compile(rf"[{GAP}]?(?:[%\u2030\u20ac$\u00a3\u00a5]|\u00b0[CF]?)|[^\W\d_]{{1,4}}(?!\w)")

# The numbers of list items and headings.
_ORDINALS = re.compile(
    r"""
    ^[ \t>]*(?:[-*+•][ \t]+)*(?:\*\*|__)?\(?\d{1,3}[.)](?=\s|\*\*|__)
  | ^[ \t>]*\#{1,6}[ \t]+(?:\*\*|__)?\d{1,3}(?:\.\d{1,3})*[.)]?(?=\s|\*\*|__)
    """,
    re.VERBOSE | re.MULTILINE,
)
_BRACKETED = re.compile(r"\(\s*(\d{1,2}(?:\s*[,;–-]\s*\d{1,2})*)\s*\)")

_NEGATIVE = re.compile(rf"(?:[{MINUS}]|\(|\b(?:minus|moins))\s?$", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:\b(?:about|approximately|around|roughly|nearly|almost|some|over|more\ than|less\ than|under|circa|ca\.|environ"
    rf"|pr[èe]s\ de|presque|quelque|plus\ de|moins\ de|autour\ de)|[~\u2248])[{GAP}]?[{CURRENCY}]?$",
    re.IGNORECASE | re.VERBOSE,
)
_PAGE = re.compile(r"\b(?:pages?|pp?\.)[\s\u00a0]*(?:\d+\s*(?:[-\u2013,]|and|et|to|à)\s*)?$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"\A|[.!?](?=\s)|\n")
_FULL_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")

Reader = Callable[[str, "re.Match[str]", "re.Match[str] | None"], Iterable[Reading]]


@dataclass(frozen=True, slots=True)
class Known:
    """What the figures of an answer may rest on, as values of `find_values`.

    A page's number is known behind the word page alone. What only the question holds is known, unless the passages
    hold another figure of the same unit: then the answer has to name theirs beside it, or to deny it. An answer that
    agrees with a wrong figure is so noticed, and "No, not 7 %: it rose by 5 %" is not.
    """

    values: frozenset[str]
    pages: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    measures: frozenset[tuple[str, str]] = frozenset()
    """What the passages measure, as `find_measures` gives it."""


def find_unsupported(text: str, known: Known) -> tuple[str, ...]:
    """The figures of `text`, as they stand there with sign and unit, that nothing known bears out; each once.

    The numbers of list items are no figures; a negative figure needs a negative one.
    """
    plain = _ORDINALS.sub(_blank_out, text)
    plain = _BRACKETED.sub(_blank_out, plain) if _enumerates(text) else plain
    strange: dict[str, None] = {}
    last: re.Match[str] | None = None
    for match in _NAME_OR_FIGURE.finditer(plain):
        if match["figure"] is None:
            continue
        sign = _read_sign(plain, match.start())
        readings = [frozenset(sign + value for value in reading) for reading in read_strictly(plain, match, last)]
        if not _is_borne_out(plain, match, readings, known):
            strange[_show(plain, match, sign)] = None
        last = match
    return tuple(strange)


def find_values(text: str) -> frozenset[str]:
    """Every value that a figure, a number word or a month of `text` can be read as, in one notation."""
    found = {*find_word_values(text), *find_table_units(text)}
    last: re.Match[str] | None = None
    for match in ANY_NUMBER.finditer(text):
        values = {value for reading in read_generously(text, match, last) for value in reading}
        if _NEGATIVE.search(text[max(0, match.start() - 8) : match.start()]):
            found |= {f"-{value}" for value in values}
        found |= values
        last = match
    return frozenset(found)


def find_measures(text: str, read: Reader = read_generously) -> frozenset[tuple[str, str]]:
    """The values of the figures of `text` whose unit is known, each with its unit."""
    return frozenset(
        (unit, value)
        for match in ANY_NUMBER.finditer(text)
        if (unit := find_unit(text, match.start(), match.end()))
        for reading in read(text, match, None)
        for value in reading
    )


def find_years(text: str) -> frozenset[str]:
    """The years of a text whose other figures say nothing, such as the name of a file."""
    return frozenset(_FULL_YEAR.findall(text))


def _blank_out(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _enumerates(text: str) -> bool:
    """Whether the numbers in brackets count from one on: (1), (2); alone, a (12) is a figure."""
    found = {int(number) for match in _BRACKETED.finditer(text) for number in re.findall(r"\d+", match[1])}
    return found == set(range(1, len(found) + 1))


def _is_borne_out(text: str, match: re.Match[str], readings: list[Reading], known: Known) -> bool:
    if any(reading <= known.values for reading in readings):
        return True
    if _PAGE.search(text[max(0, match.start() - 20) : match.start()]) and any(
        reading <= known.pages for reading in readings
    ):
        return True
    if any(reading <= known.asked for reading in readings):
        return not _contradicts(text, match, known)
    return _is_rounded(text, match, readings, known.values)


def _contradicts(text: str, match: re.Match[str], known: Known) -> bool:
    """Whether a figure of the question is told as a fact though the passages have others of its unit."""
    unit = find_unit(text, match.start(), match.end())
    rivals = {value for kind, value in known.measures if kind == unit}
    if unit is None or not rivals:
        return False
    measures, denies = _read_sentence(_sentence_around(text, match.start()))
    return not (denies or any(kind == unit and value in rivals for kind, value in measures))


def _sentence_around(text: str, at: int) -> str:
    starts = _sentence_starts(text)
    place = bisect_right(starts, at)
    return text[starts[place - 1] : starts[place] if place < len(starts) else None]


# A sentence may hold a thousand figures, and each asks for the same.
@lru_cache(maxsize=4)
def _sentence_starts(text: str) -> tuple[int, ...]:
    return tuple(end.end() for end in _SENTENCE_END.finditer(text))


@lru_cache(maxsize=8)
def _read_sentence(sentence: str) -> tuple[frozenset[tuple[str, str]], bool]:
    return find_measures(sentence, read_strictly), is_denial(sentence)


def _is_rounded(text: str, match: re.Match[str], readings: list[Reading], values: frozenset[str]) -> bool:
    """Whether "about 12 million" is some known figure, to the digits that are given."""
    if not _ABOUT.search(text[max(0, match.start() - 20) : match.start()]):
        return False
    numbers = [Decimal(value) for value in values if DECIMAL.fullmatch(value)]
    for reading in readings:
        for value in filter(DECIMAL.fullmatch, reading):
            rounded = Decimal(value).normalize()
            half = Decimal(5).scaleb(int(rounded.as_tuple().exponent) - 1)
            if any(abs(number - rounded) <= half for number in numbers):
                return True
    return False


def _read_sign(text: str, start: int) -> str:
    """A hyphen where a minus stands before the figure; not the hyphen of a range or of a compound."""
    if start == 0 or text[start - 1] not in MINUS:
        return ""
    before = text[max(0, start - 10) : start - 1]
    in_compound = before[-1:].isalnum() or before[-1:] in (*CURRENCY, "%", ")", "]", "\u00b0")
    return "" if in_compound or before.rstrip()[-1:].isdigit() else "-"


def _show(text: str, match: re.Match[str], sign: str) -> str:
    start = match.start() - len(sign)
    if start and text[start - 1] in CURRENCY:
        start -= 1
    unit = next(filter(None, (unit.match(text, match.end()) for unit in (SCALE, HOUR, _UNIT))), None)
    return text[start : unit.end() if unit else match.end()]
