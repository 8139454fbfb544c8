"""Reads dates as they are written in English and French, and finds the one at which a text says it was published."""

from __future__ import annotations

import datetime
import re
import unicodedata

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january janvier jan janv",
            "february fevrier feb fevr",
            "march mars mar",
            "april avril apr avr",
            "may mai",
            "june juin jun",
            "july juillet jul juil",
            "august aout aug",
            "september septembre sep sept",
            "october octobre oct",
            "november novembre nov",
            "december decembre dec",
        ),
        1,
    )
    for name in names.split()
}
_MONTH = r"(?P<month>[^\W\d_]{3,9})\.?"
_YEAR = r"(?P<year>\d{4})(?!\d)"
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(?P<year>\d{4})[-/.](?P<month>\d\d?)(?:[-/.](?P<day>\d\d?))?(?!\d)",
        rf"(?P<day>\d\d?)(?:st|nd|rd|th|er|re)?\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}",
        rf"{_MONTH}\s+(?P<day>\d\d?)(?:st|nd|rd|th)?,?\s+{_YEAR}",
        rf"{_MONTH},?\s+{_YEAR}",
        rf"(?P<first>\d\d?)[-/.](?P<second>\d\d?)[-/.]{_YEAR}",
        rf"{_YEAR}(?![-/.,]\d)",
    )
)
_DAY = r"\s*(?P<colon>[:|•-]\s*)?(?=\w)"
# In the order in which they are believed. What was received, revised or accepted was not yet published.
_LABELS = tuple(
    re.compile(rf"(?:^|[;|•·(,]\s*|[.)]\s+)(?:{label}){_DAY}", re.MULTILINE)
    for label in (
        r"(?:D(?i:ate of publication|ate de publication)|P(?i:ublication date)|(?:F(?i:irst )?)?P(?i:ublished|ubliée?)"
        r"|P(?i:arue?))(?i:\s+(?:online|en ligne))?(?i:\s+(?:on|le|en))?",
        r"(?:A(?i:vailable online)|M(?i:ise? en ligne)|I(?i:ssued))(?i:\s+(?:on|le))?",
    )
)


def parse_date(text: str) -> str | None:
    """The date that `text` begins with, as YYYY, YYYY-MM or YYYY-MM-DD; None where there is none that exists."""
    for form in _FORMS:
        match = form.match(text.strip())
        found = _read(match.groupdict()) if match else None
        if found:
            return found
    return None


def find_publication_date(text: str) -> str | None:
    """The date after a label that says it is that of the publication."""
    for label in _LABELS:
        for match in label.finditer(text):
            found = parse_date(text[match.end() : match.end() + 40])
            if found and (match["colon"] or len(found) > 4):
                return found
    return None


def format_date(year: str, month: str | int | None = None, day: str | int | None = None) -> str | None:
    """The ISO form of a date, to the month or the year where the rest is not known; None for one that is no date."""
    try:
        date = datetime.date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    if not 1450 <= date.year <= 2100:
        return None
    return date.isoformat()[: 10 if day else 7 if month else 4]


def _read(parts: dict[str, str | None]) -> str | None:
    year, month, day = parts["year"] or "", parts.get("month"), parts.get("day")
    if "first" in parts:
        first, second = int(parts["first"] or 0), int(parts["second"] or 0)
        if first <= 12 and second <= 12 and first != second:
            return format_date(year)  # which is the month depends on the country
        return format_date(year, min(first, second), max(first, second))
    if month and not month.isdigit():
        number = _MONTHS.get(_fold(month))
        return format_date(year, number, day) if number else None
    return format_date(year, month, day)


def _fold(word: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(char))
