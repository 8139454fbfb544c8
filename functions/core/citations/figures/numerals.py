"""Reads a number written in digits in every way it may be meant: 1.234 is 1234 or 1.234, 17/05 a date or a fraction."""

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
_MAX_CELLS = 5

Reading = frozenset[str]
"""The values that one way of reading a figure yields; a text supports the reading if it contains all of them."""


def read_number(number: str) -> list[Reading]:
    """The readings of the text of a match of NUMBER."""
    if vulgar := re.fullmatch(rf"(\d*)([{_VULGAR}])", number):
        share = Decimal(repr(unicodedata.numeric(vulgar[2]))) + int(vulgar[1] or 0)
        return [frozenset({read_digits(*format(round(share, places), "f").split("."))}) for places in (3, 2, 1)]
    parts, marks = re.findall(r"\d+", number), re.findall(r"\D+", number)
    if not marks:
        return [frozenset({read_digits(number)})]
    if marks == ["/"]:
        return [frozenset(map(read_digits, parts)), *_read_fraction(*map(int, parts))]
    if marks[0] not in _MARKS:
        return [frozenset(map(read_digits, parts))]  # a time of day
    if _is_grouped(parts, marks):  # 1.234 may also be a decimal number
        decimal = [frozenset({read_digits(*parts)})] if len(marks) == 1 and marks[0] in ".," else []
        return [frozenset({read_digits("".join(parts))}), *decimal]
    if len(marks) > 1 and marks[-1] in ".," and _is_grouped(parts[:-1], marks[:-1]):
        return [frozenset({read_digits("".join(parts[:-1]), parts[-1])})]
    if len(marks) == 1:
        years = [frozenset(map(read_digits, parts))] if len(parts[0]) == len(parts[1]) == 4 else []
        return [frozenset({read_digits(*parts)}), *years]
    return [frozenset({".".join(parts)}), *_read_parts(parts)]


def _read_fraction(numerator: int, denominator: int) -> Iterator[Reading]:
    """A proper fraction as a decimal number, rounded to three and to two places."""
    if numerator < denominator:
        for places in (3, 2):
            yield frozenset({read_digits(*format(round(Decimal(numerator) / denominator, places), "f").split("."))})


def _is_grouped(parts: list[str], marks: list[str]) -> bool:
    """Whether the marks separate thousands: one kind of mark, and three digits in every group after the first."""
    has_one_mark = len(set(marks)) == 1 and marks[0] not in "-/"
    has_valid_start = len(parts[0]) <= 3 and parts[0].strip("0") != ""
    return has_one_mark and has_valid_start and all(len(part) == 3 for part in parts[1:])


def _read_parts(parts: list[str]) -> Iterator[Reading]:
    """The readings of 17.05.2019 or 1,2,3; a date may be supported by the month's name and by a four-digit year."""
    dates = [parts]
    if len(parts) == 3 and len(parts[2]) == 2:
        dates += [[*parts[:2], century + parts[2]] for century in ("19", "20")]
    for date in dates:
        values = [read_digits(part) for part in date]
        yield frozenset(values)
        for at in (0, 1):
            if len(parts) == 3 and values[at] in MONTH_NUMBERS:
                yield frozenset({*values[:at], f"month {values[at]}", *values[at + 1 :]})


def split_cells(number: str) -> Iterator[str]:
    """Every run of up to five parts of a number that contains plain spaces.

    The cells of a table row, "12 345 678", look like the groups of one number.
    """
    parts = number.split(" ")
    for first in range(len(parts)):
        for end in range(first + 1, min(first + _MAX_CELLS, len(parts)) + 1):
            yield " ".join(parts[first:end])


def read_digits(whole: str, decimals: str = "") -> str:
    """Digits of any script as ASCII digits, without leading zeros and trailing decimal zeros."""
    whole, decimals = ("".join(str(unicodedata.decimal(digit)) for digit in part) for part in (whole, decimals))
    whole, decimals = whole.lstrip("0") or "0", decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def shift_point(value: str, zeros: int) -> str:
    """`value` times ten to the power of `zeros`, which may be negative."""
    return read_digits(*format(Decimal(value).scaleb(zeros), "f").split("."))
