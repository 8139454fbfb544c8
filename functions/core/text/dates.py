"""Reads dates written in English or French, and finds the publication date that a text states."""

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
# The most reliable label first. "Received", "revised" and "accepted" are left out: those dates precede publication.
_LABELS = tuple(
    re.compile(rf"(?:^|[;|•·(,]\s*|[.)]\s+)(?:{label}){_DAY}", re.MULTILINE)
    for label in (
        r"(?:D(?i:ate of publication|ate de publication)|P(?i:ublication date)|(?:F(?i:irst )?)?P(?i:ublished|ubliée?)"
        r"|P(?i:arue?))(?i:\s+(?:online|en ligne))?(?i:\s+(?:on|le|en))?",
        r"(?:A(?i:vailable online)|M(?i:ise? en ligne)|I(?i:ssued))(?i:\s+(?:on|le))?",
    )
)


def parse_date(text: str) -> str | None:
    """The date that `text` begins with, as YYYY, YYYY-MM or YYYY-MM-DD; None if it begins with no valid date."""
    for form in _FORMS:
        match = form.match(text.strip())
        date = _read_parts(match.groupdict()) if match else None
        if date:
            return date
    return None


def find_publication_date(text: str) -> str | None:
    """The date after a label like "Published online"; a year alone needs a colon or another separator before it."""
    for label in _LABELS:
        for match in label.finditer(text):
            date = parse_date(text[match.end() : match.end() + 40])
            if date and (match["colon"] or len(date) > 4):
                return date
    return None


def format_date(year: str, month: str | int | None = None, day: str | int | None = None) -> str | None:
    """The ISO form of a date, as far as it is known; None for an impossible date or a year outside 1450 to 2100."""
    try:
        date = datetime.date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    if not 1450 <= date.year <= 2100:
        return None
    return date.isoformat()[: 10 if day else 7 if month else 4]


def _read_parts(parts: dict[str, str | None]) -> str | None:
    year, month, day = parts["year"] or "", parts.get("month"), parts.get("day")
    if "first" in parts:
        first, second = int(parts["first"] or 0), int(parts["second"] or 0)
        if first <= 12 and second <= 12 and first != second:
            return format_date(year)  # whether day or month comes first depends on the country
        return format_date(year, min(first, second), max(first, second))
    if month and not month.isdigit():
        number = _MONTHS.get(_fold(month))
        return format_date(year, number, day) if number else None
    return format_date(year, month, day)


def _fold(word: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(char))
