"""Counts the numbered paragraphs of a Word file, which stores the rules of numbering but not the numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from functions.core.extraction.docx.xml import attribute, find, is_on, number_of, tag_of, value_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

BULLET = "-"
_LEVELS = 9
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)


@dataclass(frozen=True, slots=True)
class _Level:
    start: int = 1
    format: str = "bullet"
    text: str = ""
    style: str | None = None
    legal: bool = False
    keeps_counting: bool = False


@dataclass
class _List:
    """One list: its levels, and the last number of each; None since the level above was last counted."""

    levels: dict[int, _Level]
    counts: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)


@dataclass
class _Number:
    """A list as paragraphs refer to it; `starts` are the numbers from which levels start again at its first use."""

    list: _List
    starts: dict[int, int]
    used: bool = False


class Numbering:
    """Labels paragraphs in the order of the document; each call of `label` counts one."""

    def __init__(self, root: Element | None, list_of_style: Callable[[str], str | None]) -> None:
        self._numbers: dict[str, _Number] = {}
        if root is None:
            return
        definitions = {attribute(one, "abstractNumId"): one for one in root if tag_of(one) == "abstractNum"}
        references = {attribute(one, "numId"): one for one in root if tag_of(one) == "num"}
        lists: dict[str | None, _List] = {}
        for number_id, reference in references.items():
            list_id = value_of(find(reference, "abstractNumId"))
            linked = value_of(find(definitions.get(list_id), "numStyleLink"))
            if linked is not None:  # a style names another list, whose levels are used
                other = references.get(list_of_style(linked))
                list_id = value_of(find(other, "abstractNumId")) if other is not None else list_id
            if list_id not in definitions or number_id is None:
                continue
            if list_id not in lists:
                lists[list_id] = _List(dict(map(_read_level, _children(definitions[list_id], "lvl"))))
            self._numbers[number_id] = _read_number(reference, lists[list_id])

    def level_of(self, number_id: str, style_id: str | None) -> int:
        """The level that a list assigns to a paragraph style, 0 if it assigns none."""
        number = self._numbers.get(number_id)
        levels = number.list.levels.items() if number else ()
        return next((index for index, level in levels if style_id and level.style == style_id), 0)

    def label(self, number_id: str, index: int) -> str:
        """The label of the next paragraph of a list: "2.", "a)", `BULLET`, or "" if the list defines an empty one."""
        number = self._numbers.get(number_id)
        level = number.list.levels.get(index) if number else None
        if number is None or level is None or not 0 <= index < _LEVELS:
            return BULLET
        _count(number, index, level)
        if level.format == "bullet":
            return BULLET
        return re.sub(r"%([1-9])", lambda match: _show(number.list, int(match.group(1)) - 1, level), level.text).strip()


def _count(number: _Number, index: int, level: _Level) -> None:
    counts = number.list.counts
    if not number.used:
        number.used = True
        for other in number.starts:
            counts[other] = None
    before = counts[index]
    counts[index] = number.starts.get(index, level.start) if before is None else before + 1
    for deeper in range(index + 1, _LEVELS):
        if not number.list.levels.get(deeper, _Level()).keeps_counting:
            counts[deeper] = None


def _show(numbered: _List, index: int, shown_in: _Level) -> str:
    level = numbered.levels.get(index, _Level())
    count = numbered.counts[index]
    if count is None:
        count = numbered.counts[index] = level.start
    return _FORMATS.get("decimal" if shown_in.legal else level.format, str)(count)


def _read_number(reference: Element, numbered: _List) -> _Number:
    starts: dict[int, int] = {}
    levels = dict(numbered.levels)
    for override in _children(reference, "lvlOverride"):
        index = int(attribute(override, "ilvl") or 0)
        start, level = find(override, "startOverride"), find(override, "lvl")
        if level is not None:
            levels[index] = _read_level(level)[1]
        if start is not None:
            starts[index] = number_of(start, 1)
    # References to one list share its counts, even if they change how its numbers look.
    return _Number(_List(levels, numbered.counts), starts)


def _read_level(level: Element) -> tuple[int, _Level]:
    index = attribute(level, "ilvl") or "0"
    restart = find(level, "lvlRestart")
    return int(index) if index.isdecimal() else 0, _Level(
        start=number_of(find(level, "start"), 1),
        format=value_of(find(level, "numFmt")) or "decimal",
        text=value_of(find(level, "lvlText")) or "",
        style=value_of(find(level, "pStyle")),
        legal=bool(is_on(find(level, "isLgl"))),
        keeps_counting=restart is not None and number_of(restart, 1) == 0,
    )


def _children(element: Element, tag: str) -> list[Element]:
    return [child for child in element if tag_of(child) == tag]


def _letters(count: int) -> str:
    """a … z, aa, bb, …"""
    return chr(ord("a") + (count - 1) % 26) * min((count - 1) // 26 + 1, 20) if count > 0 else str(count)


def to_roman(count: int) -> str:
    """The number in lower-case roman numerals, as Word numbers endnotes; in digits beyond 1 to 3999."""
    if not 0 < count < 4000:
        return str(count)
    letters = ""
    for value, sign in _ROMAN:
        letters += sign * (count // value)
        count %= value
    return letters


_FORMATS: Final[dict[str, Callable[[int], str]]] = {
    "lowerLetter": _letters,
    "upperLetter": lambda count: _letters(count).upper(),
    "lowerRoman": to_roman,
    "upperRoman": lambda count: to_roman(count).upper(),
    "decimalZero": lambda count: f"{count:02d}",
    "none": lambda _: "",
}
