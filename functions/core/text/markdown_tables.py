"""Finds the tables of Markdown text, and writes tables as Markdown for a model to read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from functions.core import models

_DELIMITER_CELL = re.compile(r":?-+:?")
_BORDER = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ROW = re.compile(r" {0,3}[^\s].*")


class _Line(NamedTuple):
    """The visible part [start, end) of a line of a text, and its cells; a line that is not a row has none."""

    start: int
    end: int
    cells: tuple[str, ...]
    is_closed: bool
    """Whether the line begins and ends with a border."""

    @property
    def is_delimiter(self) -> bool:
        return bool(self.cells) and all(map(_DELIMITER_CELL.fullmatch, self.cells))

    def as_row(self, width: int) -> models.TableRow:
        """The row with exactly `width` cells: missing ones are empty, and surplus ones are joined into the last."""
        cells = [*self.cells[: width - 1], " ".join(self.cells[width - 1 :])]
        return models.TableRow(self.start, self.end, tuple(cells + [""] * (width - len(cells))))


def find_markdown_tables(text: str) -> tuple[models.Table, ...]:
    """The tables of a Markdown text in order, by the rules of GitHub.

    A table is a header row, a delimiter row with the same number of cells, and rows up to the first line without a `|`.
    Lines indented by four spaces or inside a fence are code. Rows at the very start of the text continue a table that
    began before it; they become a table without header rows.
    """
    tables: list[models.Table] = []
    lines = list(_read_lines(text))
    at = 0
    while at < len(lines):
        if at == 0 and _continues_table(lines):
            header, first = 0, int(lines[0].is_delimiter)
        elif _is_header(lines[at : at + 2]):
            header, first = 1, at + 2
        else:
            at += 1
            continue
        end = next((n for n in range(first, len(lines)) if not lines[n].cells), len(lines))
        rows = [*lines[at : at + header], *lines[first:end]]
        if rows:
            width = len(rows[0].cells)
            tables.append(models.Table(tuple(row.as_row(width) for row in rows), header_rows=header))
        at = max(end, at + 1)
    return tuple(tables)


def render_markdown(header: Sequence[tuple[str, ...]], rows: Sequence[tuple[str, ...]]) -> str:
    """Rows as Markdown, one per line, below the header rows merged into one; without a header, only the rows."""
    lines = [_render_row(row) for row in rows]
    if header:
        names = [" ".join(dict.fromkeys(filter(None, map(_flatten, column)))) for column in zip(*header, strict=True)]
        lines = [_render_row(names), f"| {' | '.join(['---'] * len(names))} |", *lines]
    return "\n".join(lines)


def _read_lines(text: str) -> Iterator[_Line]:
    """The lines of a text; lines inside fences have no cells."""
    fence = ""
    start = 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        cells: tuple[str, ...] = ()
        if mark and not fence:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        elif not fence and _ROW.fullmatch(line):
            cells = _split_cells(line.strip())
        row = line.strip()
        left = start + len(line) - len(line.lstrip())
        yield _Line(left, left + len(row), cells, row.startswith("|") and row.endswith("|"))
        start += len(line) + 1


def _split_cells(line: str) -> tuple[str, ...]:
    """The cells of a row; none for a line without a border."""
    cells = _BORDER.split(line)
    if len(cells) < 2:
        return ()
    first, last = int(not cells[0].strip()), len(cells) - int(not cells[-1].strip())
    return tuple(cell.strip().replace("\\|", "|") for cell in cells[first:last])


def _is_header(lines: Sequence[_Line]) -> bool:
    """Whether the first of two lines is a header row, and the second its delimiter row."""
    if len(lines) < 2 or not lines[0].cells or not lines[1].is_delimiter:
        return False
    return len(lines[0].cells) == len(lines[1].cells)


def _continues_table(lines: Sequence[_Line]) -> bool:
    """Whether a text begins with rows or a delimiter row instead of the header of a table."""
    first = lines[0]
    return first.start == 0 and first.is_closed and bool(first.cells) and not _is_header(lines[:2])


def _render_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_flatten(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _flatten(cell: str) -> str:
    return " ".join(cell.split())
