"""Finds headings in plain page text, where only their wording and the lines around them show them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_HEADING_CHARACTERS = 120
_MAX_WORDS = 14

_NAMES: Final = frozenset(
    """abstract|summary|introduction|background|method|methods|methodology|materials and methods|methods and materials
    |result|results|discussion|results and discussion|conclusion|conclusions|discussion and conclusion|references
    |bibliography|acknowledgment|acknowledgments|acknowledgement|acknowledgements|appendix|appendices
    |résumé|contexte|méthode|méthodes|méthodologie|matériel et méthodes|matériels et méthodes
    |résultat|résultats|résultats et discussion|discussion et conclusion|référence|références|bibliographie
    |références bibliographiques|remerciement|remerciements|annexe|annexes""".replace("\n", "")
    .replace("    ", "")
    .split("|")
)
_MARKED = re.compile(r"#{1,6} +(?=\S)")
_NUMBER = re.compile(r"(?:(?P<deep>\d{1,2}(?:\.\d{1,2}){1,4}\.?)|(?P<flat>\d{1,2}\.?|(?:[IVX]{1,5}|[A-Z])\.)) +(?=\S)")
_NAMED_PART = re.compile(
    r"(?:chapter|chapitre|part|partie|section|annexe?|appendix|article|item|note)"
    r" (?:\d{1,3}[A-Z]?|[IVXLC]{1,7}|[A-Z])(?P<subject>\s*[-–—:.]\s*\S.*)?",
    re.I,
)
_MAX_NAMED_WORDS = 20
# The sections inside a part say more than its number, which may stand on top of all its pages.
_NAMES_NOTHING = re.compile(
    r"(?:part|partie|book|livre|volume|tome) (?:\d{1,3}|[IVXLC]{1,7}|[A-Z])|(?:table of )?contents|index|sommaire"
    r"|table des matières",
    re.I,
)
_CONTINUED = re.compile(r"\s*(?:\((?:continued|cont[’']?d\.?|suite)\)|[–—-]\s*(?:continued|suite))$", re.I)
_BARE_PART = re.compile(r"[^\W\d_]+ \d+")
_ENTRY = re.compile(r"(?=.{0,40}[^\W\d_]{2}).{2,200}[\s.·…_](?P<page>\d{1,4})")
_MIN_ENTRIES, _ENTRY_SHARE = 5, 0.6
"""A list of contents has so many lines that end in growing page numbers, as "Article 5" does not, and this share."""
_ENDS_SENTENCE = re.compile(r"""[.!?:;…][”"'»)\]]*$""")
_FENCE = re.compile(r"(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading line at text[start:end], without its line end; the title is empty where the section goes on."""

    start: int
    end: int
    title: str


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str
    before: str
    after: str


def find_headings(text: str) -> list[Heading]:
    """All headings of a page in order; a page of a list of contents has none, because the text is elsewhere."""
    if _lists_contents(text):
        return []
    headings, is_fenced = [], False
    for line in _lines(text):
        stripped = line.text.strip()
        if _FENCE.match(stripped):
            is_fenced = not is_fenced
        elif stripped and not is_fenced and _is_heading(stripped, line):
            start = line.start + len(line.text) - len(line.text.lstrip())
            headings.append(Heading(start, start + len(stripped), _title(stripped)))
    return headings


def _lists_contents(text: str) -> bool:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    entries = [_ENTRY.fullmatch(line) for line in lines if not _MARKED.match(line) and not _BARE_PART.fullmatch(line)]
    pages = [int(entry["page"]) for entry in entries if entry]
    grow = sum(before <= after for before, after in itertools.pairwise(pages))
    return len(pages) >= max(_MIN_ENTRIES, _ENTRY_SHARE * len(lines)) and grow >= 0.9 * (len(pages) - 1)


def _lines(text: str) -> Iterator[_Line]:
    lines = text.split("\n")
    start = 0
    for index, line in enumerate(lines):
        before = lines[index - 1].strip() if index else ""
        after = lines[index + 1].strip() if index + 1 < len(lines) else ""
        yield _Line(start, line, before, after)
        start += len(line) + 1


def _is_heading(stripped: str, line: _Line) -> bool:
    if _MARKED.match(stripped):
        return True
    if len(stripped) > MAX_HEADING_CHARACTERS:
        return False
    if _NAMES_NOTHING.fullmatch(stripped) or _is_named_part(stripped):
        return _starts_block(line)
    if len(stripped.split()) > _MAX_WORDS:
        return False
    if _NUMBER.sub("", stripped, count=1).rstrip(":. ").casefold() in _NAMES:
        return stripped[0].isupper() or stripped[0].isdigit()
    if stripped[-1] in ".,;:!?" or not _starts_block(line):
        return False
    return _is_capitals(stripped) or _is_numbered(stripped, line)


def _is_named_part(stripped: str) -> bool:
    """ "Item 7. Results of operations" and the like; such a title may end in a full stop."""
    match = _NAMED_PART.fullmatch(stripped.rstrip("."))
    if not match or stripped[-1] in ",;:!?" or len(stripped.split()) > _MAX_NAMED_WORDS:
        return False
    return stripped[-1] != "." or (match["subject"] is not None and ". " not in match["subject"].lstrip(" .-–—:"))


def _starts_block(line: _Line) -> bool:
    """Whether a heading could stand here, rather than a line in the middle of a paragraph."""
    if line.after[:1].islower():
        return False
    before = line.before
    return not before or bool(_ENDS_SENTENCE.search(before)) or _looks_like_title(before)


def _looks_like_title(line: str) -> bool:
    if len(line) > 60:
        return False
    return any(pattern.match(line) for pattern in (_MARKED, _NUMBER, _NAMES_NOTHING)) or _is_capitals(line)


def _is_capitals(stripped: str) -> bool:
    letters = [character for character in stripped if character.isalpha()]
    dense = len(letters) >= max(4, 0.6 * len(stripped.replace(" ", "")))
    longest = max(map(len, stripped.split()))
    return dense and stripped.isupper() and "|" not in stripped and longest >= (4 if " " in stripped else 6)


def _is_numbered(stripped: str, line: _Line) -> bool:
    match = _NUMBER.match(stripped)
    if not match:
        return False
    title = stripped[match.end() :]
    if not title[0].isupper() or sum(map(str.isalpha, title)) < 0.6 * len(title) or len(title) < 3:
        return False
    if match["deep"]:
        return True
    # A numbered line next to another one is an item of a list: "1. First" above "2. Second".
    is_list = _NUMBER.match(line.after) or _NUMBER.match(line.before)
    return len(stripped) <= 80 and not is_list and ". " not in title and "," not in title


def _title(stripped: str) -> str:
    if _NAMES_NOTHING.fullmatch(stripped):
        return ""
    bare = _MARKED.sub("", stripped, count=1)
    if bare != stripped:
        bare = bare.rstrip("# ")
    title = " ".join(bare.replace("\u00ad", "").split())
    return _CONTINUED.sub("", title)[:MAX_HEADING_CHARACTERS].rstrip(" :")
