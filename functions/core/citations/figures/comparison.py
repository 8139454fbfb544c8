"""Finds the figures of an answer that its passages do not contain, whatever the notation of either.

The answer is read strictly, so that a changed figure is noticed. The passages are read generously, in every way their
figures could be meant, so that a different notation is not reported as a different figure. Units are shown but not
compared. Only figures in digits are checked: a number in words is rarely wrong, and often not a number (one, second).
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
from functions.core.citations.figures.units import find_unit, is_negated_or_open
from functions.core.text import sentences

# Digits directly after letters belong to a name (CO2, Q3, v1.2), except after a currency code: USD9,999 is an amount.
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
_SENTENCE_BORDER = re.compile(rf"(?:{sentences.SENTENCE_END})|\n", re.VERBOSE)
_FULL_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")

Reader = Callable[[str, "re.Match[str]", "re.Match[str] | None"], Iterable[Reading]]


@dataclass(frozen=True, slots=True)
class AllowedFigures:
    """The figures that an answer may state, as values that `find_values` returns.

    A page number is allowed only after the word page. A figure that only the question contains is allowed, unless the
    passages contain another figure of the same unit: then the sentence must also state theirs, or deny the question's.
    So an answer that agrees with a wrong figure is reported, and "No, not 7 %: it rose by 5 %" is not.
    """

    values: frozenset[str]
    pages: frozenset[str] = frozenset()
    question_values: frozenset[str] = frozenset()
    measures: frozenset[tuple[str, str]] = frozenset()
    """The figures of the passages that have a unit, as `find_measures` returns them."""


def find_unsupported(text: str, allowed: AllowedFigures) -> tuple[str, ...]:
    """The figures of `text` that `allowed` does not support, as written there with sign and unit; each once.

    The numbers of list items and headings are not figures. A negative figure needs a negative one to support it.
    """
    plain = _ORDINALS.sub(_blank_out, text)
    plain = _BRACKETED.sub(_blank_out, plain) if _has_enumeration(text) else plain
    unsupported: dict[str, None] = {}
    previous: re.Match[str] | None = None
    for match in _NAME_OR_FIGURE.finditer(plain):
        if match["figure"] is None:
            continue
        sign = _read_sign(plain, match.start())
        readings = [frozenset(sign + value for value in reading) for reading in read_strictly(plain, match, previous)]
        if not _is_supported(plain, match, readings, allowed):
            unsupported[_quote_figure(plain, match, sign)] = None
        previous = match
    return tuple(unsupported)


def find_values(text: str) -> frozenset[str]:
    """Every value that the figures, number words and month names of `text` may stand for, in one notation."""
    found_values = {*find_word_values(text), *find_table_units(text)}
    previous: re.Match[str] | None = None
    for match in ANY_NUMBER.finditer(text):
        values = {value for reading in read_generously(text, match, previous) for value in reading}
        if _NEGATIVE.search(text[max(0, match.start() - 8) : match.start()]):
            found_values |= {f"-{value}" for value in values}
        found_values |= values
        previous = match
    return frozenset(found_values)


def find_measures(text: str, read: Reader = read_generously) -> frozenset[tuple[str, str]]:
    """The figures of `text` that have a unit known to `find_unit`, as pairs of unit and value."""
    return frozenset(
        (unit, value)
        for match in ANY_NUMBER.finditer(text)
        if (unit := find_unit(text, match.start(), match.end()))
        for reading in read(text, match, None)
        for value in reading
    )


def find_years(text: str) -> frozenset[str]:
    """The four-digit years in a text whose other figures mean nothing, such as a file name."""
    return frozenset(_FULL_YEAR.findall(text))


def _blank_out(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _has_enumeration(text: str) -> bool:
    """Whether the numbers in round brackets count up from 1, as in "(1) … (2) …"; a lone (12) is a figure."""
    numbers = {int(number) for match in _BRACKETED.finditer(text) for number in re.findall(r"\d+", match[1])}
    return numbers == set(range(1, len(numbers) + 1))


def _is_supported(text: str, match: re.Match[str], readings: list[Reading], allowed: AllowedFigures) -> bool:
    if any(reading <= allowed.values for reading in readings):
        return True
    if _PAGE.search(text[max(0, match.start() - 20) : match.start()]) and any(
        reading <= allowed.pages for reading in readings
    ):
        return True
    if any(reading <= allowed.question_values for reading in readings):
        return not _contradicts(text, match, allowed)
    return _is_rounded_value(text, match, readings, allowed.values)


def _contradicts(text: str, match: re.Match[str], allowed: AllowedFigures) -> bool:
    """Whether a sentence states a figure of the question as fact although the passages give others of its unit."""
    unit = find_unit(text, match.start(), match.end())
    passage_values = {value for kind, value in allowed.measures if kind == unit}
    if unit is None or not passage_values:
        return False
    measures, is_open = _read_sentence(_find_sentence(text, match.start()))
    return not (is_open or any(kind == unit and value in passage_values for kind, value in measures))


def _find_sentence(text: str, at: int) -> str:
    starts = _find_sentence_starts(text)
    place = bisect_right(starts, at)
    return text[starts[place - 1] : starts[place] if place < len(starts) else None]


# Cached because a text may contain a thousand figures, and each of them needs the same sentence.
@lru_cache(maxsize=4)
def _find_sentence_starts(text: str) -> tuple[int, ...]:
    starts = [0]
    for border in _SENTENCE_BORDER.finditer(text):
        if border.group() == "\n" or sentences.ends_sentence(text, starts[-1], border, len(text)):
            starts.append(border.end())
    return tuple(starts)


@lru_cache(maxsize=8)
def _read_sentence(sentence: str) -> tuple[frozenset[tuple[str, str]], bool]:
    """The measures of a sentence, and whether it denies something or leaves it open."""
    return find_measures(sentence, read_strictly), is_negated_or_open(sentence)


def _is_rounded_value(text: str, match: re.Match[str], readings: list[Reading], values: frozenset[str]) -> bool:
    """Whether "about 12 million" rounds one of `values`; its last non-zero digit gives the precision."""
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
    """The minus sign before the figure as "-", or ""; the hyphen of a range or of a compound word is not a minus."""
    if start == 0 or text[start - 1] not in MINUS:
        return ""
    before = text[max(0, start - 10) : start - 1]
    in_compound = before[-1:].isalnum() or before[-1:] in (*CURRENCY, "%", ")", "]", "\u00b0")
    return "" if in_compound or before.rstrip()[-1:].isdigit() else "-"


def _quote_figure(text: str, match: re.Match[str], sign: str) -> str:
    """The figure as it is written in `text`, with its sign, currency and unit."""
    start = match.start() - len(sign)
    if start and text[start - 1] in CURRENCY:
        start -= 1
    unit = next(filter(None, (unit.match(text, match.end()) for unit in (SCALE, HOUR, _UNIT))), None)
    return text[start : unit.end() if unit else match.end()]
