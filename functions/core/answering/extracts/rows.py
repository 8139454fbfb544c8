"""Finds the rows of a passage's tables in its text, because a citation points at the row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from functions.core import models
from functions.core.citations import quotes
from functions.core.text.markdown_tables import find_markdown_tables


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: hit.text[start:end], its cells, the header rows above it, and the title of its group."""

    start: int
    end: int
    cells: tuple[str, ...]
    header: tuple[tuple[str, ...], ...]
    group: str

    @property
    def column_names(self) -> list[str]:
        """The name of each column; empty strings without a header."""
        if not self.header:
            return [""] * len(self.cells)
        return [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*self.header, strict=True)]


def find_rows(hit: models.SearchHit) -> list[Row]:
    """The rows of the tables in a passage, in order, without those that its text does not hold cell after cell."""
    found = list(_list_rows(hit.text))
    if found or not hit.markdown:
        return found
    folded = quotes.fold(hit.text)
    after = 0
    for row in _list_rows(hit.markdown):
        key = "".join(quotes.fold(cell).text for cell in row.cells)
        at = max(folded.text.find(key, after), folded.text.find(key) if key else -1)
        if at >= 0 and key:
            after = at + len(key)
            found.append(Row(folded.starts[at], folded.ends[after - 1], row.cells, row.header, row.group))
    return found


def _list_rows(markdown: str) -> Iterator[Row]:
    """The rows below the headers, with their places in `markdown`.

    A row with nothing but its first cell is the title of the rows below it.
    """
    for table in find_markdown_tables(markdown):
        header = tuple(row.cells for row in table.rows[: table.header_rows])
        group = ""
        for row in table.rows[table.header_rows :]:
            is_title = len(row.cells) > 1 and bool(row.cells[0]) and not any(row.cells[1:])
            group = row.cells[0] if is_title else group
            if any(row.cells) and not is_title:
                yield Row(row.start, row.end, row.cells, header, group)
