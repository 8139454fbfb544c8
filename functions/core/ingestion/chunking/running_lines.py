"""Finds the running lines of a document: headers, footers and page numbers.

They say nothing about the page, interrupt sentences that continue on the next page, and take room in every passage.
Only the outermost lines of a page are considered, so that repeated text in the body is never removed.
"""

from __future__ import annotations

import collections
import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from functions.core import models
from functions.core.text import titles

EDGE_LINES = 3
_MIN_PAGES = 4
_MIN_REPEATS = 3
_MIN_SHARE = 0.4
_MIN_NAME_PAGES = 2
_MIN_NAME_SHARE = 1 / 3
_MIN_NAME_WORDS, _MAX_NAME_WORDS = 2, 12
_MAX_NAME_CHARACTERS = 100

_LINE = re.compile(r"\S[^\n]*")
_ROMAN = r"(?=[ivxlc])(?:c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_NUMBER = re.compile(rf"(?<![\w.,])(?:\d+|{_ROMAN})(?!\w|[.,]\d)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_EDGE_NUMBER = re.compile(r"^[\d/]+[\s|·•–—-]+|[\s|·•–—-]+[\d/]+$|^[\s|·•–—-]+|[\s|·•–—-]+$")
_PAGE_WORD = r"(?:pages?|pag|pg|p|pp|seite|página|pagina|folio|fol|sheet|feuillet|slide)"
_PAGE_NUMBER = re.compile(rf"\W*(?:{_PAGE_WORD}\b\W*)?#(?:\W+(?:(?:of|on|sur|de|von|di)\W+)?#)?(?:\W*{_PAGE_WORD})?\W*")
_MAX_PAGE_NUMBER = 80
"""Characters: longer lines are no page numbers, and some of them would take very long to compare."""
_AFTER_PAGE_WORD = re.compile(rf"\b{_PAGE_WORD}\W*(?:#\W+(?:of|on|sur|de|von|di|/)\W*)?$")
# "Chapter 3" at the top of a page is a heading of its own; "Annual report 3" is the header of the third page.
_NAMES_PART = re.compile(
    r"(?:\b(?:chapter|section|part|article|annexe?|appendix|figure|fig|table|lesson|unit|module|step|question|exercise|"
    r"problem|item|invoice|volume|vol|version|day|week|year|level|phase|number|no|nos|nr|chapitre|partie|tableau|leçon|"
    r"étape|exercice|facture|jour|semaine|année|niveau|numéro|paragraphe)\W*|[№§°$€£]\s*)$"
)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line at an edge of a page; `bare` is lower case with single spaces, and "№" for "#", which marks numbers."""

    start: int
    end: int
    edge: str
    bare: str

    @property
    def name(self) -> str:
        return f"{self.edge}: {self.bare}"


@dataclass(frozen=True, slots=True)
class _Template:
    """A line with `#` in place of the numbers that may count pages, and these numbers."""

    key: str
    numbers: tuple[str, ...]


def find_running_lines(pages: Sequence[str]) -> tuple[str, ...]:
    """Patterns of the headers and footers of the sampled pages, for `locate_running_lines`; `#` stands for a number.

    A line counts if it is among the outermost three of at least 40 % of the pages and of three pages; so headers may
    differ between left and right pages. Numbers in it either never change or count up. Fewer than four pages with text
    have no patterns.
    """
    edges = [lines for lines in map(_edge_lines, pages) if lines]
    if len(edges) < _MIN_PAGES:
        return ()
    numbers_of: dict[str, list[tuple[str, ...]]] = collections.defaultdict(list)
    for lines in edges:
        for template in {template.key: template for template in map(_mask_numbers, lines)}.values():
            numbers_of[template.key].append(template.numbers)
    min_pages = max(_MIN_REPEATS, _MIN_SHARE * len(edges))
    patterns = [_pattern(key, numbers) for key, numbers in numbers_of.items() if len(numbers) >= min_pages]
    return tuple(sorted(pattern for pattern in patterns if pattern is not None))


def find_document_name(pages: Sequence[str]) -> str | None:
    """The line that pages repeat at their edges, as it is written there: most often the name of the document.

    It must be on two pages and a third of the sampled ones, because left and right pages differ. The longest of equally
    frequent lines wins, so that a number that never changes stays and one that counts pages does not.
    """
    counts = collections.Counter(itertools.chain.from_iterable(map(_list_names, pages)))
    least = max(_MIN_NAME_PAGES, _MIN_NAME_SHARE * sum(bool(page.strip()) for page in pages))
    names = [name for name, count in counts.items() if count >= least and titles.is_title(name)]
    return max(names, key=lambda name: (counts[name], len(name)), default=None)


def _list_names(page: str) -> set[str]:
    """The lines at the edges of a page that may be a name, each with and without the numbers at its ends."""
    names: set[str] = set()
    for line in _edge_lines(page):
        name, shorter = "", " ".join(page[line.start : line.end].split())
        while name != shorter:
            name, shorter = shorter, _EDGE_NUMBER.sub("", shorter, count=1)
            names.add(name)
    return {
        name
        for name in names
        if len(name) <= _MAX_NAME_CHARACTERS and _MIN_NAME_WORDS <= len(_WORD.findall(name)) <= _MAX_NAME_WORDS
    }


def locate_running_lines(text: str, lines: Sequence[str]) -> tuple[models.Offsets, ...]:
    """The lines of a page, from either edge inwards, that match these patterns; () if no other text would be left.

    The first line that matches none of them ends the search from that edge: what lies behind it is text.
    """
    if not lines:
        return ()
    pattern = _compile(tuple(lines))
    edges = _edge_lines(text)
    top = (line for line in edges if line.edge == "top")
    bottom = (line for line in edges[::-1] if line.edge == "bottom")
    matching = {
        (line.start, line.end)
        for inwards in (top, bottom)
        for line in itertools.takewhile(lambda line: pattern.fullmatch(line.name), inwards)
    }
    offsets = tuple(sorted(matching))
    return offsets if _leaves_text(text, offsets) else ()


def is_page_number(line: str) -> bool:
    """Whether a line consists of the number of its page: "12", "– iv –", "Page 3 of 10"."""
    return len(line) <= _MAX_PAGE_NUMBER and bool(_PAGE_NUMBER.fullmatch(_NUMBER.sub("#", _bare(line))))


def _edge_lines(text: str) -> list[_Line]:
    """The lines at the top, then those at the bottom, each from top to bottom; a short page has some lines twice."""
    matches = list(_LINE.finditer(text))
    edges = [("top", match) for match in matches[:EDGE_LINES]] + [("bottom", match) for match in matches[-EDGE_LINES:]]
    return [_Line(match.start(), match.end(), edge, _bare(match.group())) for edge, match in edges]


def _bare(line: str) -> str:
    return " ".join(line.split()).casefold().replace("#", "№")


def _mask_numbers(line: _Line) -> _Template:
    numbers: list[str] = []
    words = len(_WORD.findall(line.bare))

    def take_out(match: re.Match[str]) -> str:
        if not _may_count_pages(line.bare, match, words):
            return match.group()
        numbers.append(match.group())
        return "#"

    return _Template(f"{line.edge}: {_NUMBER.sub(take_out, line.bare)}", tuple(numbers))


def _may_count_pages(bare: str, match: re.Match[str], words: int) -> bool:
    if is_page_number(bare):
        return True
    before, after = bare[: match.start()], bare[match.end() :]
    if _AFTER_PAGE_WORD.search(_NUMBER.sub("#", before)):
        return True
    at_edge = not before.strip(" -–—|/·•[(") or not after.strip(" -–—|/·•])")
    if _NAMES_PART.search(before) or (not match.group().isdigit() and not at_edge):
        return False
    return words >= (2 if at_edge else 4)


def _value(number: str) -> int:
    if number.isdigit():
        return int(number[:9])
    digits = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[letter] for letter in number]
    return sum(-one if one < max(digits[index:]) else one for index, one in enumerate(digits))


def _pattern(key: str, numbers: Sequence[tuple[str, ...]]) -> str | None:
    """The key with the constant numbers put back; None if a number changes without counting up."""
    columns = list(zip(*numbers, strict=True))
    if not all(map(_counts_up, columns)):
        return None
    marks = ["#" if len(set(column)) > 1 else column[0] for column in columns]
    return "".join(head + mark for head, mark in zip(key.split("#"), [*marks, ""], strict=True))


def _counts_up(column: Sequence[str]) -> bool:
    """Whether numbers grow from page to page or never change; a few may restart, as parts with their own numbers do."""
    values = [_value(number) for number in column]
    return sum(after < before for before, after in itertools.pairwise(values)) <= len(values) // 4


@functools.lru_cache(maxsize=64)
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(pattern).replace(r"\#", rf"(?:\d+|{_ROMAN})") for pattern in patterns))


def _leaves_text(text: str, offsets: Sequence[models.Offsets]) -> bool:
    left = 0
    for start, end in sorted(offsets):
        if any(map(str.isalnum, text[left:start])):
            return True
        left = end
    return any(map(str.isalnum, text[left:]))
