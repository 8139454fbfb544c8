"""A number written in digits, and all that it may mean: 1.234 is 1234 or 1.234, 17/05 a date or a fraction."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

from functions.core.citations.figures.number_words import MONTH_NUMBERS

GAP = " \u00a0\u2009\u202f"
MINUS = "-\u2010\u2011\u2012\u2013\u2212"
_VULGAR = "\u00bc-\u00be\u2150-\u215e"
NUMBER = rf"""
    \d{{4}}(?P<iso>[-/.])\d{{1,2}}(?P=iso)\d{{1,2}}(?!\d)  # 2019-05-17
  | \d{{1,2}}(?P<slash>[-/])\d{{1,2}}(?P=slash)(?:\d{{4}}|\d{{2}})(?!\d)  # 17/05/2019
  | (?P<time>(?:[01]?\d|2[0-4])(?::|[{GAP}]?(?:[hH]|heures?)[{GAP}]?)[0-5]\d(?![\w:]))  # 17:30, 17h30
  | \d{{1,3}}(?:(?P<mark>[{GAP}.,'\u2019])\d{{3}})(?:(?P=mark)\d{{3}})*(?!\d)(?:[.,]\d+)?  # 1 234,5
  | \d{{0,6}}[{_VULGAR}]  # 2½
  | \d{{1,3}}/\d{{1,3}}(?![\d/])  # 3/4
  | \d+(?:[.,]\d+)*
"""
"""A pattern for re.VERBOSE; its group `time` is set for a time of day."""
DECIMAL = re.compile(r"-?\d+(?:\.\d+)?")
_MARKS = f"{GAP}.,'\u2019-/"
_MOST_CELLS = 5

Reading = frozenset[str]
"""What one way of reading a figure says: values that must all be known."""


def read(number: str) -> list[Reading]:
    """What a match of NUMBER may mean."""
    if vulgar := re.fullmatch(rf"(\d*)([{_VULGAR}])", number):
        share = Decimal(repr(unicodedata.numeric(vulgar[2]))) + int(vulgar[1] or 0)
        return [frozenset({read_digits(*format(round(share, places), "f").split("."))}) for places in (3, 2, 1)]
    parts, marks = re.findall(r"\d+", number), re.findall(r"\D+", number)
    if not marks:
        return [frozenset({read_digits(number)})]
    if marks == ["/"]:
        return [frozenset(map(read_digits, parts)), *_read_fraction(*map(int, parts))]
    if marks[0] not in _MARKS:
        return [frozenset(map(read_digits, parts))]  # a time
    if _is_grouped(parts, marks):  # 1.234 may also be a decimal
        decimal = [frozenset({read_digits(*parts)})] if len(marks) == 1 and marks[0] in ".," else []
        return [frozenset({read_digits("".join(parts))}), *decimal]
    if len(marks) > 1 and marks[-1] in ".," and _is_grouped(parts[:-1], marks[:-1]):
        return [frozenset({read_digits("".join(parts[:-1]), parts[-1])})]
    if len(marks) == 1:
        years = [frozenset(map(read_digits, parts))] if len(parts[0]) == len(parts[1]) == 4 else []
        return [frozenset({read_digits(*parts)}), *years]
    return [frozenset({".".join(parts)}), *_read_parts(parts)]


def _read_fraction(over: int, under: int) -> Iterator[Reading]:
    if over < under:
        for places in (3, 2):
            yield frozenset({read_digits(*format(round(Decimal(over) / under, places), "f").split("."))})


def _is_grouped(parts: list[str], marks: list[str]) -> bool:
    """Whether the digits stand in groups of three."""
    alike = len(set(marks)) == 1 and marks[0] not in "-/"
    first = len(parts[0]) <= 3 and parts[0].strip("0") != ""
    return alike and first and all(len(part) == 3 for part in parts[1:])


def _read_parts(parts: list[str]) -> Iterator[Reading]:
    """The values of 17.05.2019 or 1,2,3; in a date the month may be known by its name, and the year in full."""
    written = [parts]
    if len(parts) == 3 and len(parts[2]) == 2:
        written += [[*parts[:2], century + parts[2]] for century in ("19", "20")]
    for date in written:
        values = [read_digits(part) for part in date]
        yield frozenset(values)
        for at in (0, 1):
            if len(parts) == 3 and values[at] in MONTH_NUMBERS:
                yield frozenset({*values[:at], f"month {values[at]}", *values[at + 1 :]})


def cells(number: str) -> Iterator[str]:
    """What stands between plain spaces may be a figure of its own: the cells of a table row look like groups."""
    cells = number.split(" ")
    for first in range(len(cells)):
        for end in range(first + 1, min(first + _MOST_CELLS, len(cells)) + 1):
            yield " ".join(cells[first:end])


def read_digits(whole: str, decimals: str = "") -> str:
    """Digits of any script as plain ones, without the zeros that say nothing."""
    whole, decimals = ("".join(str(unicodedata.decimal(digit)) for digit in part) for part in (whole, decimals))
    whole, decimals = whole.lstrip("0") or "0", decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def shift(value: str, zeros: int) -> str:
    """A value with the point moved to the right by so many places, or to the left."""
    return read_digits(*format(Decimal(value).scaleb(zeros), "f").split("."))
