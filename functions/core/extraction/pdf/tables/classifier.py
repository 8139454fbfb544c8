"""Tells tables from other texts in columns: lists, contents pages, forms, addresses, code and prose."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

from functions.core.extraction.pdf.tables.rows import is_number

_NOTHING = frozenset({"", "-", "–", "—", "−", "*", "n/a", "N/A", "n.a.", "n.d.", "nd", "NA", ".", "..", "…", "?"})
_ENUMERATOR = re.compile(
    r"[•◦▪■●○–—*·-]|[(\[]?(?:\d{1,3}|[a-zA-Z]|[ivxlIVXL]{1,5})[.)\]:]+(?:\d+\.?)*|§+\s?\d*\.?|\[[\w+.-]{1,12}\]"
)
_PAGE = re.compile(r"(?:pages?|pp?|pg|s|seiten?)\.?|[ivxlc]+", re.I)
_SECTION = re.compile(r"(?:[A-Z]|\d+)(?:\.\d+)*\.?")
_CODE = re.compile(r"[{};],?\s*$|^(?:[{}]|//|/\*|[#;] |#include|def |return\b|import )|[=!<>+]=|->|=>|\(\)|::")
_STOP_IN_CELL = re.compile(r"[^\W\d_]{3}[.!?](?:\s+[^\W\d_]|$)")
_FEW_WORDS, _MANY_WORDS = 5, 7
"""Words of a column's median cell: up to the first its cells are short, above the second they are prose."""
_MIN_ROWS, _MIN_RULED_ROWS = 3, 2
"""The fewest rows of a table, without and with rules across."""
_MIN_FULL_ROWS = 0.6
"""The share of rows, and at least two, that must have several cells.

Cell F1 of unruled tables: 0.996 at 0.4 and 0.6, 0.994 at 0.8.
"""
_MIN_ALIGNED = 0.6
"""The share of columns, and at least two, that must be aligned."""
_MIN_FILL = 0.35
"""The share of cells of three and more columns that must not be empty."""
_MIN_ROWS_OF_TWO, _MIN_FILL_OF_TWO, _MIN_NUMBERS_OF_TWO = 4, 0.8, 0.6
"""Two columns without rules need more evidence: so many rows, and mostly full short cells or a column of numbers."""
_MIN_WORDY = 0.4
"""The share of cells that must have letters or digits; labels of drawings and rows of dots have fewer."""
_MAX_ENUMERATORS, _MAX_CODE, _MAX_LABELS = 0.5, 0.2, 0.35
"""Rows are no table if more of the first cells number items, more cells are code, or more are labels with a colon."""
_MAX_SMALL = 0.5
"""The share of cells that begin with a small letter: with more, and a sentence's end among them, they are prose."""
_MOST_ADDRESS_ROWS = 6
"""Up to so many rows with an e-mail address, and no rules, are the addresses of authors."""
_FEWEST_PAGES = 3
"""The fewest page numbers of a table of contents."""

Texts = Sequence[Sequence[str]]
"""The cells of a table, row by row."""


def is_table(rows: Texts, header_rows: int, *, aligned: int, ruled: bool) -> bool:
    """Whether these rows are a table.

    `aligned` is the number of columns whose cells begin, end or are centred at one place, `ruled` whether
    horizontal rules are drawn between rows.
    """
    if len(rows) == 2 and not ruled:
        return aligned >= _MIN_ALIGNED * len(rows[0]) and _are_names_and_numbers(rows)
    several = sum(sum(map(bool, row)) > 1 for row in rows)
    if len(rows) < (_MIN_RULED_ROWS if ruled else _MIN_ROWS) or several < max(2, _MIN_FULL_ROWS * len(rows)):
        return False
    columns = list(zip(*rows[header_rows:], strict=True))
    if not columns or not has_readable_cells(rows) or _is_other_text(rows, ruled=ruled):
        return False
    if len(columns) > 2:
        enough = aligned >= max(2, _MIN_ALIGNED * len(columns)) and _measure_fill(rows) >= _MIN_FILL
        return enough and not _is_prose(columns)
    if ruled:
        return aligned >= 1
    short = all(_median_words(column) <= _FEW_WORDS for column in columns) and _measure_fill(rows) >= _MIN_FILL_OF_TWO
    is_certain = short or _number_share(columns[1]) >= _MIN_NUMBERS_OF_TWO
    return len(rows) >= _MIN_ROWS_OF_TWO and aligned == 2 and is_certain


def _are_names_and_numbers(rows: Texts) -> bool:
    """Whether two rows are a short table: two or more columns, with names above and numbers below beside a label."""
    (_, *names), (label, *numbers) = rows
    return len(names) > 1 and all(names) and bool(label) and not is_number(label) and all(map(is_number, numbers))


def has_readable_cells(rows: Texts) -> bool:
    """Whether enough cells have letters or digits, unlike those of drawings."""
    cells = [cell for row in rows for cell in row if cell]
    return sum(any(map(str.isalnum, cell)) for cell in cells) > _MIN_WORDY * len(cells)


def has_number_columns(rows: Texts) -> bool:
    """Whether most cells of each column but the first are numbers."""
    return all(_number_share(column) >= _MIN_NUMBERS_OF_TWO for column in list(zip(*rows, strict=True))[1:])


def _measure_fill(rows: Texts) -> float:
    cells = [cell for row in rows for cell in row]
    return sum(map(bool, cells)) / len(cells)


def _number_share(column: Sequence[str]) -> float:
    filled = [cell for cell in column if cell not in _NOTHING]
    return sum(map(is_number, filled)) / len(filled) if filled else 0.0


def _median_words(column: Sequence[str]) -> float:
    return statistics.median([len(cell.split()) for cell in column if cell] or [0])


def _is_prose(columns: Texts) -> bool:
    return sum(_median_words(column) > _MANY_WORDS for column in columns) > len(columns) / 2


def _is_other_text(rows: Texts, *, ruled: bool) -> bool:
    cells = [cell for row in rows for cell in row if cell]
    first = [row[0] for row in rows if row[0]]
    if len(rows[0]) == 2 and sum(bool(_ENUMERATOR.fullmatch(cell)) for cell in first) > _MAX_ENUMERATORS * len(first):
        return True
    if sum(bool(_CODE.search(cell)) for cell in cells) > _MAX_CODE * len(cells):
        return True
    has_labels = sum(cell.endswith(":") for cell in cells) > _MAX_LABELS * len(cells)
    has_addresses = len(rows) <= _MOST_ADDRESS_ROWS and any("@" in cell for cell in cells) and not ruled
    return has_labels or has_addresses or _is_running_text(cells) or _is_contents(rows)


def _is_running_text(cells: Sequence[str]) -> bool:
    """Whether the cells are parts of sentences: most begin with a small letter, and a sentence ends among them."""
    words = [cell for cell in cells if cell[0].isalpha()]
    small = sum(cell[0].islower() for cell in words)
    return small > _MAX_SMALL * len(cells) and any(map(_STOP_IN_CELL.search, words))


def _is_contents(rows: Texts) -> bool:
    """Whether the rows are titles with page numbers that never decrease; a column of a table has a name above it."""
    pages = [row[-1] for row in rows if row[-1]]
    if all(rows[0]) and not any(map(is_number, rows[0])) and not _PAGE.fullmatch(rows[0][-1]):
        return False
    numbers = [int(page) for page in pages if page.isdecimal()]
    if (
        len(numbers) < _FEWEST_PAGES
        or len(numbers) < len(pages) - 1
        or numbers != sorted(numbers)
        or numbers[0] == numbers[-1]
    ):
        return False
    titles = [cell for row in rows for cell in row[:-1] if cell]
    return all(not is_number(cell) or _SECTION.fullmatch(cell) for cell in titles)
