"""The figures of a text, and which of them another text does not hold, whatever the notation of either.

What a model wrote is read strictly, so that a changed figure is noticed; what it was given is read generously, in
every way it could be meant, so that another notation is not taken for another figure. Units are shown, not compared.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

_GAP = " \u00a0\u2009\u202f"
_MINUS = "-\u2010\u2011\u2012\u2013\u2212"
_NUMBER = rf"""
    \d{{4}}(?P<iso>[-/.])\d{{1,2}}(?P=iso)\d{{1,2}}(?!\d)  # 2019-05-17
  | \d{{1,2}}(?P<slash>[-/])\d{{1,2}}(?P=slash)(?:\d{{4}}|\d{{2}})(?!\d)  # 17/05/2019
  | \d{{1,3}}(?:(?P<mark>[{_GAP}.,'\u2019])\d{{3}})(?:(?P=mark)\d{{3}})*(?!\d)(?:[.,]\d+)?  # 1 234,5
  | \d+(?:[.,]\d+)*
"""
_ANY_NUMBER = re.compile(_NUMBER, re.VERBOSE)
# Letters take the digits behind them along: CO2, Q3 and v1.2 are names.
_NAME_OR_FIGURE = re.compile(rf"[^\W\d_]+(?:\d\w*(?:[.,]\d+)*)?|(?P<figure>{_NUMBER})", re.VERBOSE)
_UNIT = re.compile(rf"[{_GAP}]?(?:[%\u2030\u20ac$\u00a3\u00a5]|\u00b0[CF]?)|[^\W\d_]{{1,4}}(?!\w)")
_CURRENCY = "$\u20ac\u00a3\u00a5"

# The numbers of list items and headings, and the (1), (2) of an enumeration.
_ORDINALS = re.compile(
    r"""
    ^[ \t>]*(?:[-*+•][ \t]+)*(?:\*\*|__)?\(?\d{1,3}[.)](?=\s|\*\*|__)
  | ^[ \t>]*\#{1,6}[ \t]+(?:\*\*|__)?\d{1,3}(?:\.\d{1,3})*[.)]?(?=\s|\*\*|__)
  | \(\s*\d{1,2}(?:\s*[,;–-]\s*\d{1,2})*\s*\)
    """,
    re.VERBOSE | re.MULTILINE,
)

_SCALE = re.compile(
    rf"[{_GAP}]?(?:(?P<three>thousand|mille)|(?P<six>millions?)|(?P<nine>milliards?|billions?))\b"
    rf"|[{_GAP}]?(?:(?P<k>k)|(?P<m>M)|(?P<md>Mds?))(?=[€$£])"
)
_ZEROS = {"three": 3, "k": 3, "six": 6, "m": 6, "nine": 9, "md": 9}
_NEGATIVE = re.compile(rf"(?:[{_MINUS}]|\(|\b(?:minus|moins))\s?$", re.IGNORECASE)

_COUNTS = {
    word: value
    for value, line in {
        1: "one first un une premier première",
        2: "two second deux deuxième second seconde",
        3: "three third trois troisième",
        4: "four fourth quatre quatrième",
        5: "five fifth cinq cinquième",
        6: "six sixth sixième",
        7: "seven seventh sept septième",
        8: "eight eighth huit huitième",
        9: "nine ninth neuf neuvième",
        10: "ten tenth dix dixième",
        11: "eleven onze",
        12: "twelve dozen douze douzaine",
        13: "thirteen treize",
        14: "fourteen quatorze",
        15: "fifteen quinze",
        16: "sixteen seize",
        17: "seventeen",
        18: "eighteen",
        19: "nineteen",
        20: "twenty vingt vingts",
        30: "thirty trente",
        40: "forty quarante",
        50: "fifty cinquante",
        60: "sixty soixante",
        70: "seventy septante",
        80: "eighty",
        90: "ninety nonante",
        100: "hundred cent",
        1000: "thousand mille",
    }.items()
    for word in line.split()
}
_MONTHS = {
    word: number
    for number, line in {
        1: "january jan janvier janv",
        2: "february feb février févr",
        3: "march mar mars",
        4: "april apr avril avr",
        5: "may mai",
        6: "june jun juin",
        7: "july jul juillet juil",
        8: "august aug août aout",
        9: "september sept sep septembre",
        10: "october oct octobre",
        11: "november nov novembre",
        12: "december dec décembre déc",
    }.items()
    for word in line.split()
}
_MONTH_NUMBERS = frozenset(map(str, _MONTHS.values()))
_WORD = re.compile(r"[^\W\d_]+")
_MOST_CELLS = 5

Reading = frozenset[str]
"""What one way of reading a figure says: values that must all be known."""


def find_unsupported(text: str, known: Collection[str]) -> tuple[str, ...]:
    """The figures of `text`, as they stand there with sign and unit, that `known` does not bear out; each once.

    The numbers of list items are no figures. `known` are values as `find_values` gives them; a negative figure needs
    a negative one there.
    """
    plain = _ORDINALS.sub(lambda match: " " * len(match.group()), text)
    values = frozenset(known)
    strange: dict[str, None] = {}
    last: re.Match[str] | None = None
    for match in _NAME_OR_FIGURE.finditer(plain):
        if match["figure"] is None:
            continue
        sign = _read_sign(plain, match.start())
        if not any({sign + value for value in reading} <= values for reading in _read_all(plain, match, last)):
            strange[_show(plain, match, sign)] = None
        last = match
    return tuple(strange)


def find_values(text: str) -> frozenset[str]:
    """Every value that a figure, a number word or a month of `text` can be read as, in one notation."""
    found = set(_read_words(text))
    last: re.Match[str] | None = None
    for match in _ANY_NUMBER.finditer(text):
        readings = _read_all(text, match, last)
        readings += [reading for run in _cells(match.group()) for reading in _read(run)]
        values = {value for reading in readings for value in reading}
        if _NEGATIVE.search(text[max(0, match.start() - 8) : match.start()]):
            found |= {f"-{value}" for value in values}
        found |= values
        last = match
    return frozenset(found)


def _read_all(text: str, match: re.Match[str], last: re.Match[str] | None) -> list[Reading]:
    """The readings of a figure where it stands: "3,2 millions" is 3200000, too, and the 20 in "2019-20" is 2020."""
    number = match.group()
    readings = _read(number)
    if scale := _SCALE.match(text, match.end()):
        zeros = _ZEROS[scale.lastgroup or ""]
        simple = [value for reading in readings if len(reading) == 1 for value in reading if value.count(".") < 2]
        readings += [frozenset({_shift(value, zeros)}) for value in simple]
    if last is not None and len(number) == 2 and re.fullmatch(r"\d{4}", last.group()):
        between = text[last.end() : match.start()].strip()
        if between in {*_MINUS, "/", "\u2014"}:
            readings.append(frozenset({_value(last.group()[:2] + number)}))
    return readings


def _read(number: str) -> list[Reading]:
    parts, marks = re.findall(r"\d+", number), re.findall(r"\D", number)
    if not marks:
        return [frozenset({_value(number)})]
    if _is_grouped(parts, marks):  # 1.234 may also be a decimal
        decimal = [frozenset({_value(*parts)})] if len(marks) == 1 and marks[0] in ".," else []
        return [frozenset({_value("".join(parts))}), *decimal]
    if len(marks) > 1 and marks[-1] in ".," and _is_grouped(parts[:-1], marks[:-1]):
        return [frozenset({_value("".join(parts[:-1]), parts[-1])})]
    if len(marks) == 1:
        years = [frozenset(map(_value, parts))] if len(parts[0]) == len(parts[1]) == 4 else []
        return [frozenset({_value(*parts)}), *years]
    return [frozenset({".".join(parts)}), *_read_parts(parts)]


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
        values = [_value(part) for part in date]
        yield frozenset(values)
        for at in (0, 1):
            if len(parts) == 3 and values[at] in _MONTH_NUMBERS:
                yield frozenset({*values[:at], f"month {values[at]}", *values[at + 1 :]})


def _cells(number: str) -> Iterator[str]:
    """What stands between plain spaces may be a figure of its own: the cells of a table row look like groups."""
    cells = number.split(" ")
    for first in range(len(cells)):
        for end in range(first + 1, min(first + _MOST_CELLS, len(cells)) + 1):
            yield " ".join(cells[first:end])


def _read_words(text: str) -> Iterator[str]:
    """The values of number words, also of those in several words (vingt-cinq, quatre-vingt-dix), and months."""
    total = 0
    for match in _WORD.finditer(text.casefold()):
        word = match.group()
        if word in _MONTHS:
            yield f"month {_MONTHS[word]}"
        count = _COUNTS.get(word)
        if count is None:
            total = total if word in ("et", "and") else 0
            continue
        if total == 4 and count == 20:
            total = 80
        elif total in range(20, 100, 10) and count < 20:
            total += count
        else:
            total = count
        yield from (str(total), str(count))


def _value(whole: str, decimals: str = "") -> str:
    """Digits of any script as plain ones, without the zeros that say nothing."""
    whole, decimals = ("".join(str(unicodedata.decimal(digit)) for digit in part) for part in (whole, decimals))
    whole, decimals = whole.lstrip("0") or "0", decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _shift(value: str, zeros: int) -> str:
    whole, _, decimals = value.partition(".")
    decimals = decimals.ljust(zeros, "0")
    return _value(whole + decimals[:zeros], decimals[zeros:])


def _read_sign(text: str, start: int) -> str:
    """A hyphen where a minus stands before the figure; not the hyphen of a range or of a compound."""
    if start == 0 or text[start - 1] not in _MINUS:
        return ""
    before = text[max(0, start - 10) : start - 1]
    in_compound = before[-1:].isalnum() or before[-1:] in (*_CURRENCY, "%", ")", "]", "\u00b0")
    return "" if in_compound or before.rstrip()[-1:].isdigit() else "-"


def _show(text: str, match: re.Match[str], sign: str) -> str:
    start = match.start() - len(sign)
    if start and text[start - 1] in _CURRENCY:
        start -= 1
    unit = _SCALE.match(text, match.end()) or _UNIT.match(text, match.end())
    return text[start : unit.end() if unit else match.end()]
