"""Finds the figure or date that a question asks for in the sentence or row that answers it, to be shown in bold.

Names are left out: of those that a sentence has beside the question's, less than half are what "who" asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from functions.core.answering.extracts.units import Unit
from functions.core.text import words
from functions.core.text.line_breaks import unwrap

_GAP = r"[ \u00a0\u2009\u202f]"
_NUMBER = rf"(?<![\w.,])(?:\d{{1,3}}(?:(?:{_GAP}|[.,'’])\d{{3}})+|\d+)(?:[.,]\d+)?(?!\w)"
_SCALE = rf"(?:{_GAP}(?:thousand|millions?|billions?|trillions?|mille|milliards?)\b)?"
_COUNTS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|deux|trois|quatre|cinq|sept|huit|neuf"
    "|dix|onze|douze|quinze|vingt|trente|quarante|cinquante"
)
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|janvier|f[ée]vrier|mars|avril|mai|juin"
    r"|juillet|ao[ûu]t|septembre|octobre|novembre|d[ée]cembre)"
)
_YEAR = r"(?<![\d.,])(?:1\d|20)\d\d(?![\d.,]*\d)(?:[-–]\d{2,4})?"
_DAY = r"\d{1,2}(?:st|nd|rd|th|er)?"
_DATE = re.compile(
    rf"""(?:\b{_DAY}{_GAP}(?:of{_GAP})?)?\b{_MONTH}\b(?:{_GAP}{_DAY},?(?!\d))?(?:,?{_GAP}{_YEAR})? | {_YEAR}
    | \b(?:\d{{1,2}}(?:st|nd|rd|th|e|ème)?|[XVI]+e){_GAP}(?:century|siècle)\b""",
    re.VERBOSE,
)
_SHARE = re.compile(
    rf"(?:{_NUMBER}){_GAP}?(?:%|per{_GAP}?cent\b|pour{_GAP}cent\b|percentage{_GAP}points?\b)"
    r"|\b(?:one|two|three)[- ](?:thirds?|quarters?)\b|\b(?:un\s(?:tiers|quart)|deux\stiers|trois\squarts|la\smoitié)\b"
)
_AMOUNT = re.compile(
    rf"(?:[$€£¥]|\b(?:USD|EUR|GBP|CHF)\b){_GAP}?(?:{_NUMBER})(?:[mbk]\b|bn\b)?{_SCALE}"
    rf"|(?:{_NUMBER}){_SCALE}{_GAP}?(?:(?:d['’]|de{_GAP})?(?:euros?|dollars?|pounds?|francs?)\b|[$€£¥]|(?:USD|EUR|GBP|CHF)\b)"
)
_COUNT = re.compile(rf"(?:{_NUMBER}){_SCALE}|\b(?:{_COUNTS})(?:-(?:{_COUNTS}))?\b{_SCALE}", re.IGNORECASE)

_COUNTED_WORDS, _COUNTED_CHARS = 3, 60  # behind a count
_FORMS = tuple(
    (re.compile(rf"\b(?:{asked})\b", re.IGNORECASE), form)
    for asked, form in (
        (
            r"(?:^|since\s+|until\s+)when|(?:what|which)\s+(?:year|date|month|day|decade|century)|(?:^|depuis\s+|jusqu['’]à\s+)quand"
            r"|quelle\s+(?:ann[ée]e|date)|quel\s+(?:mois|jour|si[èe]cle)",
            _DATE,
        ),
        (r"percent(?:age)?|per\s+cent|pourcentage|what\s+(?:share|proportion)|quelle\s+(?:part|proportion)", _SHARE),
        (r"how\s+much|costs?|price|amount|co[ûu]te(?:nt)?|prix|montant|budget", _AMOUNT),
        (r"how\s+many|combien\s+d(?:es?\b|['’])|what\s+is\s+the\s+number|quel\s+est\s+le\s+nombre", _COUNT),
    )
)
"""What a question asks for, and how it is written; the first that fits counts."""


def find_emphasis(question: str, asked_words: frozenset[str], unit: Unit) -> str:
    """The words of a sentence or row that carry the answer; empty unless it has exactly one of the form asked for.

    A figure that the question has itself is not its answer. In a row, the figure may also stand below a column that the
    question names.
    """
    form = next((form for asked, form in _FORMS if asked.search(question)), None)
    if form is None:
        return ""
    if unit.row is not None:
        return _find_in_row(unit, asked_words)
    return _only(_find_new(form, unwrap(unit.text, unit.hit.text), asked_words))


def _find_new(form: re.Pattern[str], text: str, asked_words: frozenset[str]) -> list[str]:
    """The figures of this form that the question does not have; behind a count is what the question counts."""
    found = [match for match in form.finditer(text) if not words.keys(match.group()) <= asked_words]
    if form is _COUNT:
        found = [match for match in found if _find_counted(text, match.end()) & asked_words]
    return [match.group() for match in found]


def _find_counted(text: str, at: int) -> frozenset[str]:
    """The content words directly behind a figure: "large regions" in "three large regions"; none in "1998 the mill"."""
    clause = re.split(r"[,;:.()]", text[at : at + _COUNTED_CHARS])[0]
    behind = words.all_words(clause)[:_COUNTED_WORDS]
    is_count = bool(behind) and words.is_content(behind[0].key)
    return frozenset(word.key for word in behind) if is_count else frozenset()


def _find_in_row(unit: Unit, asked_words: frozenset[str]) -> str:
    """The only cell with a figure, or the only one of the column that has most words of the question."""
    assert unit.row is not None
    cells = [
        (len(words.keys(name) & asked_words), cell)
        for name, cell in zip(unit.row.column_names, unit.row.cells, strict=True)
        if words.numbers(words.keys(cell)) and not words.keys(cell) <= asked_words
    ]
    most = max((shared for shared, _ in cells), default=0)
    return _only(cell for shared, cell in cells if shared == most)


def _only(found: Iterable[str]) -> str:
    distinct = set(found)
    return distinct.pop() if len(distinct) == 1 else ""
