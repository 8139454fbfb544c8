"""Reads a figure together with the words before and after it: 3.2 million, 5 %, 5:30 pm, the 90s."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from functions.core.citations.figures.number_words import PLAIN
from functions.core.citations.figures.numerals import (
    DECIMAL,
    GAP,
    MINUS,
    NUMBER,
    Reading,
    read_digits,
    read_number,
    shift_point,
    split_cells,
)

ANY_NUMBER = re.compile(NUMBER, re.VERBOSE)
CODES = "USD|EUR|GBP|CHF|JPY|CNY|CAD|AUD|NZD|SEK|NOK|DKK|PLN|INR|BRL|ZAR|XOF|MAD|TND|FRF"
CURRENCY = "$\u20ac\u00a3\u00a5"
SCALE = re.compile(
    rf"[{GAP}]?(?:(?P<three>thousand|mille|milliers)|(?P<six>millions?)|(?P<nine>milliards?|billions?|bn)"
    rf"|(?P<twelve>trillions?))\b|[{GAP}]?(?:(?P<k>[kK])|(?P<m>M)|(?P<md>Mds?))(?=[€$£])|(?P<thousand>k)(?!\w)"
)
_SCALE_OF_MONEY = re.compile(rf"[{GAP}]?(?:(?P<k>[kK])|(?P<m>[mM]n?)|(?P<md>[bB]n?|Md))(?!\w)")
_ZEROS = {"three": 3, "k": 3, "thousand": 3, "six": 6, "m": 6, "nine": 9, "md": 9, "twelve": 12}
_MONEY_BEFORE = re.compile(rf"(?:[{CURRENCY}]|(?<![^\W_])(?:{CODES}))[{GAP}]?$")
_SHARE = re.compile(rf"[{GAP}]?(?:%|per\ ?cent|pour[{GAP}]cent)")
_PERMILLE = re.compile(rf"[{GAP}]?(?:\u2030|per\ mille?|pour[{GAP}]mille)")
HOUR = re.compile(rf"[{GAP}]?(?:(?P<am_pm>[ap])\.?[{GAP}]?m\b|[hH]\b|heures?\b|o['\u2019]clock)")
UNITS_OF_TABLES = {
    3: re.compile(
        r"\b(?:in|en) (?:[$€£]|US dollars? |euros? )?(?:thousands?|milliers)\b|\b[kK][€$£]|[€$£][kK]\b|['’]000\b"
    ),
    6: re.compile(r"\b(?:in|en) (?:[$€£]|US dollars? |euros? )?millions?\b|\bM[€$£]|[€$£][mM]\b"),
}
_DECADE = re.compile(r"['\u2019]?s\b")
_DECADE_BEFORE = re.compile(r"\bann[ée]es[\s-]$", re.IGNORECASE)


def read_strictly(text: str, match: re.Match[str], previous: re.Match[str] | None) -> list[Reading]:
    """The readings of a figure of an answer: only those that its notation and context state.

    The figure is supported if the passages contain every value of one reading.
    """
    readings = _read_in_context(text, match, previous)
    time = _read_time(text, match)
    if time and not _find_am_pm(text, match) and match["time"]:
        hour, _, minute = time.removeprefix("time ").partition(":")
        readings.append(frozenset({f"clock {hour}:{minute}"}))
    scale = _find_scale(text, match)
    if scale is None:
        return [*readings, *_read_as_table_cell(_find_single_values(readings))]
    simple = _find_single_values(read_number(match.group()))
    scaled = {shift_point(value, scale) for value in simple}
    cells_of_scale = (frozenset({PLAIN + value}) for value in simple)
    return [*(frozenset({value}) for value in scaled), *cells_of_scale, *_read_as_table_cell(scaled)]


def _read_as_table_cell(values: Iterable[str]) -> Iterator[Reading]:
    """The table cells that state a value: 1.2 million is 1,200 in a passage that says its tables are in thousands."""
    for value in values:
        for zeros in UNITS_OF_TABLES:
            if len(value.partition(".")[0]) >= zeros:
                yield frozenset({PLAIN + shift_point(value, -zeros), f"unit {zeros}"})


def find_table_units(text: str) -> Iterator[str]:
    """The unit markers ("unit 3" for thousands) of the units that a passage gives for its tables, for either sign."""
    for zeros, words in UNITS_OF_TABLES.items():
        if words.search(text):
            yield from (f"unit {zeros}", f"-unit {zeros}")


def read_generously(text: str, match: re.Match[str], previous: re.Match[str] | None) -> Iterator[Reading]:
    """The readings of a figure of a passage: every way in which it could be meant.

    A passage supports an answer's figure that matches any of them, so a different notation is not reported.
    """
    readings = _read_in_context(text, match, previous)
    readings += [reading for run in split_cells(match.group()) for reading in read_number(run)]
    yield from readings
    scale = _find_scale(text, match)
    for value in _find_single_values(readings):
        yield frozenset({shift_point(value, scale)} if scale else {PLAIN + value})
        if _DECADE.match(text, match.end()) or _DECADE_BEFORE.search(text[max(0, match.start() - 8) : match.start()]):
            yield frozenset({value[-2:], *(century + value for century in ("18", "19", "20") if len(value) == 2)})
    yield from _read_clock(text, match)


def _read_clock(text: str, match: re.Match[str]) -> Iterator[Reading]:
    """The times that a passage may mean: 5:30 is morning or afternoon, and 17h30 may be written as 5:30."""
    if time := _read_time(text, match):
        hour, minute = map(int, time.removeprefix("time ").split(":"))
        yield frozenset({time, f"clock {hour % 12}:{minute}"})
        if hour <= 12 and not _find_am_pm(text, match):
            yield frozenset({f"time {(hour + 12) % 24}:{minute}"})


def _read_in_context(text: str, match: re.Match[str], previous: re.Match[str] | None) -> list[Reading]:
    """The readings that a figure has in its context: the 20 in "2019-20" is also 2020, and 5 % is also 0.05."""
    number = match.group()
    time = _read_time(text, match)
    readings = [] if time and _find_am_pm(text, match) and match["time"] else read_number(number)
    readings += [frozenset({time})] if time else []
    for mark, shifts in ((_SHARE, (-2,)), (_PERMILLE, (-1, -3))):
        if mark.match(text, match.end()):
            readings += [
                frozenset({shift_point(value, zeros)}) for value in _find_single_values(readings) for zeros in shifts
            ]
    if previous is not None and re.fullmatch(r"\d{2}", number) and re.fullmatch(r"\d{4}", previous.group()):
        between = text[previous.end() : match.start()].strip()
        if between in {*MINUS, "/", "\u2014"}:
            readings.append(frozenset({read_digits(previous.group()[:2] + number)}))
    return readings


def _find_single_values(readings: list[Reading]) -> set[str]:
    """The decimal values of those readings that consist of one number."""
    return {value for reading in readings if len(reading) == 1 for value in reading if DECIMAL.fullmatch(value)}


def _find_scale(text: str, match: re.Match[str]) -> int | None:
    """The number of zeros that a scale word or letter after a figure adds: 6 for million; None without one."""
    scale = SCALE.match(text, match.end())
    if scale is None and _MONEY_BEFORE.search(text[max(0, match.start() - 5) : match.start()]):
        scale = _SCALE_OF_MONEY.match(text, match.end())
    return None if scale is None else _ZEROS[scale.lastgroup or ""]


def _read_time(text: str, match: re.Match[str]) -> str | None:
    """The time of day that a figure may be, as "time 17:30": written 17:30, 17h30, 5:30 pm, 5 pm, 17 h or 17.30."""
    parts = re.findall(r"\d+", match.group())
    is_marked = match["time"] or HOUR.match(text, match.end())
    if not (is_marked or re.fullmatch(r"\d{1,2}\.[0-5]\d", match.group())) or len(parts) not in (1, 2):
        return None
    if len(parts[0]) > 2 or (hour := int(parts[0])) > 24:
        return None
    if am_pm := _find_am_pm(text, match):
        hour = hour % 12 + (12 if am_pm == "p" else 0)
    return f"time {hour % 24}:{int(parts[1]) if len(parts) == 2 else 0}"


def _find_am_pm(text: str, match: re.Match[str]) -> str | None:
    hour_mark = HOUR.match(text, match.end())
    return hour_mark["am_pm"] if hour_mark else None
