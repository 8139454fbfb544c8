"""Finds the unit of a figure, so that two figures of the same unit can be compared."""

from __future__ import annotations

import re

_GAP = " \u00a0\u2009\u202f"
_UNITS = {
    "percent": r"%|per ?cent\b|pour[ \u00a0]cent\b",
    "permille": r"\u2030|per mille?\b|pour[ \u00a0]mille\b",
    "euro": r"\u20ac|euros?\b|EUR\b",
    "dollar": r"\$|(?:US )?dollars?\b|USD\b",
    "pound": r"\u00a3|pounds?(?: sterling)?\b|livres? sterling\b|GBP\b",
    "yen": r"\u00a5|yens?\b|JPY\b",
    "franc": r"francs?\b|CHF\b",
    "degree": r"\u00b0 ?[CF]?|degrees?\b|degrés?\b",
    "year": r"years?\b|ans?\b|années?\b",
    "month": r"months?\b|mois\b",
    "week": r"weeks?\b|semaines?\b",
    "day": r"days?\b|jours?\b",
    "hour": r"hours?\b|heures?\b|h\b",
    "minute": r"minutes?\b|min\b",
    "second": r"seconds?\b|secondes?\b|s\b",
    "kilometre": r"km\b|kilomet(?:re|er)s?\b|kilomètres?\b",
    "metre": r"m\b|met(?:re|er)s?\b|mètres?\b",
    "centimetre": r"cm\b|centimet(?:re|er)s?\b|centimètres?\b",
    "millimetre": r"mm\b|millimet(?:re|er)s?\b|millimètres?\b",
    "kilogram": r"kg\b|kilos?\b|kilogram(?:me)?s?\b",
    "gram": r"g\b|gram(?:me)?s?\b",
    "ton": r"t\b|tons?\b|tonnes?\b",
    "litre": r"[lL]\b|lit(?:re|er)s?\b",
    "kilowatt": r"kW\b|kilowatts?\b",
    "megawatt": r"MW\b|megawatts?\b|mégawatts?\b",
    "kilowatt hour": r"kWh\b",
    "megawatt hour": r"MWh\b",
    "person": r"people\b|persons?\b|personnes?\b|inhabitants?\b|habitants?\b|employees?\b|salariés?\b",
}
_SCALE = r"(?:thousand|millions?|billions?|bn|mille|milliards?|k|M|Mds?)"
_AFTER = re.compile(
    rf"[{_GAP}]?(?:{_SCALE}\b[{_GAP}]?(?:d['\u2019]|de |of )?)?(?:{'|'.join(f'({unit})' for unit in _UNITS.values())})"
)
_BEFORE = re.compile(rf"(\$|\u20ac|\u00a3|\u00a5|USD|EUR|GBP|JPY|CHF)[{_GAP}]?$")
_CURRENCY_UNITS = {
    "$": "dollar", "\u20ac": "euro", "\u00a3": "pound", "\u00a5": "yen",
    "USD": "dollar", "EUR": "euro", "GBP": "pound", "JPY": "yen", "CHF": "franc",
}  # fmt: skip
_NEGATED_OR_OPEN = re.compile(
    r"\b(?:no|not|never|none|neither|nor|nothing|without|unlike|instead|rather|cannot|whether|if|ask(?:s|ed)?|question"
    r"|non|pas|ni|jamais|aucune?s?|rien|sans|contrairement|plut[ôo]t|demand\w+|si)\b|n['\u2019]t\b|\bn['\u2019]",
    re.IGNORECASE,
)


def find_unit(text: str, start: int, end: int) -> str | None:
    """The unit of the figure at text[start:end], a key of `_UNITS`; None without a known unit before or after it."""
    if unit_after := _AFTER.match(text, end):
        return list(_UNITS)[(unit_after.lastindex or 1) - 1]
    unit_before = _BEFORE.search(text[max(0, start - 4) : start])
    return _CURRENCY_UNITS[unit_before[1]] if unit_before else None


def is_negated_or_open(sentence: str) -> bool:
    """Whether a sentence denies something, leaves it open, or only repeats the question."""
    return _NEGATED_OR_OPEN.search(sentence) is not None
