"""Writes the tables of Word files as Markdown, the form in which page text has them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.core.extraction.docx.xml import find, number_of, tag_of, value_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MAX_SPAN = 50
"""The most columns that a cell is taken to span; damaged files may declare millions."""
_MAX_HEADER_ROWS = 4
_MAX_REPEATED_CHARACTERS = 80
"""A value that spans rows is repeated in each of them, so that each row is complete; a longer paragraph is not."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The cells of a row, with values over several columns `shown` in the first, and `spread` over all of them."""

    shown: list[str]
    spread: list[str]
    is_header: bool
    is_empty: bool


def render_table(table: Element, read_cell: Callable[[Element], str]) -> str:
    """One Markdown table, "" for an empty one; the first row is the header, because Markdown tables must have one.

    Several rows marked as headers become one row: "2024" over "Q1" is "2024 Q1".
    """
    rows = [row for row in _read_rows(table, read_cell) if not row.is_empty]
    if not rows:
        return ""
    header = list(itertools.takewhile(lambda row: row.is_header, rows))[:_MAX_HEADER_ROWS]
    lines = [row.shown for row in rows]
    width = max(map(len, lines))
    if 1 < len(header) < len(rows):
        columns = itertools.zip_longest(*(row.spread for row in header), fillvalue="")
        lines[: len(header)] = [[" ".join(dict.fromkeys(filter(None, column))) for column in columns]]
    marked = [f"| {' | '.join(line + [''] * (width - len(line)))} |" for line in lines]
    marked.insert(1, "| " + " | ".join(["---"] * width) + " |")
    return "\n".join(marked)


def single_cell(table: Element) -> Element | None:
    """The only cell of a table, which is a frame around text; None for a table of several cells."""
    rows = list(itertools.islice(_descend(table, "tr"), 2))
    cells = list(itertools.islice(_descend(rows[0], "tc"), 2)) if len(rows) == 1 else []
    return cells[0] if len(cells) == 1 else None


def flatten(block: str) -> str:
    """A table inside a cell as plain text, because Markdown has no nested tables."""
    if not block.startswith("| "):
        return block
    rows = (line.strip("| ") for line in block.split("\n") if not line.startswith("| ---"))
    return "; ".join(re.sub(r"\s*(?<!\\)\|\s*", ", ", row) for row in rows)


def _read_rows(table: Element, read_cell: Callable[[Element], str]) -> Iterator[_Row]:
    above: Sequence[str] = ()
    for row in _descend(table, "tr"):
        if find(row, "trPr", "del") is not None:
            continue
        is_empty = True
        shown: list[str] = [""] * _span(find(row, "trPr", "gridBefore"), 0)
        spread = list(shown)
        for cell in _descend(row, "tc"):
            text = read_cell(cell)
            is_empty = is_empty and not text
            if not text and _continues(cell) and len(shown) < len(above):
                value = above[len(shown)]
                text = value if len(value) <= _MAX_REPEATED_CHARACTERS else ""
            span = _span(find(cell, "tcPr", "gridSpan"), 1)
            shown += [text, *[""] * (span - 1)]
            spread += [text] * span
        yield _Row(shown, spread, find(row, "trPr", "tblHeader") is not None, is_empty)
        above = shown


def _continues(cell: Element) -> bool:
    merge = find(cell, "tcPr", "vMerge")
    return merge is not None and value_of(merge) != "restart"


def _span(element: Element | None, default: int) -> int:
    return min(number_of(element, default), _MAX_SPAN) if element is not None else default


def _descend(parent: Element, tag: str) -> Iterator[Element]:
    """The children with this tag, including those inside change marks and content controls."""
    for child in parent:
        if tag_of(child) == tag:
            yield child
        elif tag_of(child) in ("sdt", "sdtContent", "ins", "customXml", "moveTo"):
            yield from _descend(child, tag)
