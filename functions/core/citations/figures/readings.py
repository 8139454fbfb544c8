"""What a figure says where it stands, with the words before and behind it: 3.2 million, 5 %, 5:30 pm, the 90s."""

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
    cells,
    read,
    read_digits,
    shift,
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
HOUR = re.compile(rf"[{GAP}]?(?:(?P<noon>[ap])\.?[{GAP}]?m\b|[hH]\b|heures?\b|o['\u2019]clock)")
UNITS_OF_TABLES = {
    3: re.compile(
        r"\b(?:in|en) (?:[$€£]|US dollars? |euros? )?(?:thousands?|milliers)\b|\b[kK][€$£]|[€$£][kK]\b|['’]000\b"
    ),
    6: re.compile(r"\b(?:in|en) (?:[$€£]|US dollars? |euros? )?millions?\b|\bM[€$£]|[€$£][mM]\b"),
}
_DECADE = re.compile(r"['\u2019]?s\b")
_DECADE_BEFORE = re.compile(r"\bann[ée]es[\s-]$", re.IGNORECASE)


def read_strictly(text: str, match: re.Match[str], last: re.Match[str] | None) -> list[Reading]:
    """The readings of a figure of an answer, of which one must be known in full."""
    readings = _read_in_place(text, match, last)
    time = _read_time(text, match)
    if time and not _noon(text, match) and match["time"]:
        hour, _, minute = time.removeprefix("time ").partition(":")
        readings.append(frozenset({f"clock {hour}:{minute}"}))
    scale = _find_scale(text, match)
    if scale is None:
        return [*readings, *_read_as_cell(_single(readings))]
    simple = _single(read(match.group()))
    whole = {shift(value, scale) for value in simple}
    cells_of_scale = (frozenset({PLAIN + value}) for value in simple)
    return [*(frozenset({value}) for value in whole), *cells_of_scale, *_read_as_cell(whole)]


def _read_as_cell(values: Iterable[str]) -> Iterator[Reading]:
    """1.2 million is the cell 1,200 of a passage whose tables are in thousands, if it says that they are."""
    for value in values:
        for zeros in UNITS_OF_TABLES:
            if len(value.partition(".")[0]) >= zeros:
                yield frozenset({PLAIN + shift(value, -zeros), f"unit {zeros}"})


def find_table_units(text: str) -> Iterator[str]:
    """What the cells of a passage's tables are counted in, where it says so, for figures of either sign."""
    for zeros, words in UNITS_OF_TABLES.items():
        if words.search(text):
            yield from (f"unit {zeros}", f"-unit {zeros}")


def read_generously(text: str, match: re.Match[str], last: re.Match[str] | None) -> Iterator[Reading]:
    """Every way in which a figure of a passage could be meant."""
    readings = _read_in_place(text, match, last)
    readings += [reading for run in cells(match.group()) for reading in read(run)]
    yield from readings
    scale = _find_scale(text, match)
    for value in _single(readings):
        yield frozenset({shift(value, scale)} if scale else {PLAIN + value})
        if _DECADE.match(text, match.end()) or _DECADE_BEFORE.search(text[max(0, match.start() - 8) : match.start()]):
            yield frozenset({value[-2:], *(century + value for century in ("18", "19", "20") if len(value) == 2)})
    yield from _read_clock(text, match)


def _read_clock(text: str, match: re.Match[str]) -> Iterator[Reading]:
    """The times that a passage may mean: 5:30 those of morning and afternoon, 17h30 also what a clock then shows."""
    if time := _read_time(text, match):
        hour, minute = map(int, time.removeprefix("time ").split(":"))
        yield frozenset({time, f"clock {hour % 12}:{minute}"})
        if hour <= 12 and not _noon(text, match):
            yield frozenset({f"time {(hour + 12) % 24}:{minute}"})


def _read_in_place(text: str, match: re.Match[str], last: re.Match[str] | None) -> list[Reading]:
    """What a figure and what stands around it say: the 20 in "2019-20" is 2020, too, and 5 % is 0.05."""
    number = match.group()
    time = _read_time(text, match)
    readings = [] if time and _noon(text, match) and match["time"] else read(number)
    readings += [frozenset({time})] if time else []
    for mark, shifts in ((_SHARE, (-2,)), (_PERMILLE, (-1, -3))):
        if mark.match(text, match.end()):
            readings += [frozenset({shift(value, zeros)}) for value in _single(readings) for zeros in shifts]
    if last is not None and re.fullmatch(r"\d{2}", number) and re.fullmatch(r"\d{4}", last.group()):
        between = text[last.end() : match.start()].strip()
        if between in {*MINUS, "/", "\u2014"}:
            readings.append(frozenset({read_digits(last.group()[:2] + number)}))
    return readings


def _single(readings: list[Reading]) -> set[str]:
    """The readings that are one number."""
    return {value for reading in readings if len(reading) == 1 for value in reading if DECIMAL.fullmatch(value)}


def _find_scale(text: str, match: re.Match[str]) -> int | None:
    """How many zeros the words or letters behind a figure add."""
    scale = SCALE.match(text, match.end())
    if scale is None and _MONEY_BEFORE.search(text[max(0, match.start() - 5) : match.start()]):
        scale = _SCALE_OF_MONEY.match(text, match.end())
    return None if scale is None else _ZEROS[scale.lastgroup or ""]


def _read_time(text: str, match: re.Match[str]) -> str | None:
    """The time of day that a figure may be: 17:30, 17h30, 5:30 pm, 5 pm, 17 h; also 17.30."""
    parts = re.findall(r"\d+", match.group())
    marked = match["time"] or HOUR.match(text, match.end())
    if not (marked or re.fullmatch(r"\d{1,2}\.[0-5]\d", match.group())) or len(parts) not in (1, 2):
        return None
    if len(parts[0]) > 2 or (hour := int(parts[0])) > 24:
        return None
    if noon := _noon(text, match):
        hour = hour % 12 + (12 if noon == "p" else 0)
    return f"time {hour % 24}:{int(parts[1]) if len(parts) == 2 else 0}"


def _noon(text: str, match: re.Match[str]) -> str | None:
    behind = HOUR.match(text, match.end())
    return behind["noon"] if behind else None
