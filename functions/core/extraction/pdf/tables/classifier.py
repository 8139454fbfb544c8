"""Whether rows that stand in columns are a table, or a list, a contents page, a form, addresses or code."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

from functions.core.extraction.pdf.tables.rows import is_number

_NOTHING = frozenset({"", "-", "–", "—", "−", "*", "n/a", "N/A", "n.a.", "n.d.", "nd", "NA", ".", "..", "…", "?"})
_ENUMERATOR = re.compile(
    r"[•◦▪■●○–—*·-]|[(\[]?(?:\d{1,3}|[a-zA-Z]|[ivxlIVXL]{1,5})[.)\]:]+(?:\d+\.?)*|§+\s?\d*\.?|\[[\w+.-]{1,12}\]"
)
_SECTION = re.compile(r"(?:[A-Z]|\d+)(?:\.\d+)*\.?")
_CODE = re.compile(r"[{};],?\s*$|^(?:[{}]|//|/\*|[#;] |#include|def |return\b|import )|[=!<>+]=|->|=>|\(\)|::")
_SENTENCE_END = re.compile(r"[^\W\d_]{3}[.!?](?:\s+[^\W\d_]|$)")
_FEW_WORDS, _MANY_WORDS = 5, 7

Texts = Sequence[Sequence[str]]
"""The cells of a table, row by row."""


def is_table(rows: Texts, header_rows: int, *, aligned: int, ruled: bool) -> bool:
    """Whether these rows are a table.

    `aligned` is how many of the columns have cells that begin, end or are centred at one place; `ruled` whether lines
    are drawn across.
    """
    several = sum(sum(map(bool, row)) > 1 for row in rows)
    if len(rows) < (2 if ruled else 3) or several < max(2, 0.6 * len(rows)):
        return False
    columns = list(zip(*rows[header_rows:], strict=True))
    if not columns or not says_something(rows) or _is_something_else(rows):
        return False
    if len(columns) > 2:
        return aligned >= max(2, 0.6 * len(columns)) and _fill(rows) >= 0.35 and not _is_prose(columns)
    if ruled:
        return aligned >= 1
    short = all(_median_words(column) <= _FEW_WORDS for column in columns) and _fill(rows) >= 0.8
    return len(rows) >= 4 and aligned == 2 and (short or _number_share(columns[1]) >= 0.6)


def says_something(rows: Texts) -> bool:
    """Whether many of the cells have letters or digits, as those of drawings have not."""
    cells = [cell for row in rows for cell in row if cell]
    return sum(any(map(str.isalnum, cell)) for cell in cells) > 0.4 * len(cells)


def _fill(rows: Texts) -> float:
    cells = [cell for row in rows for cell in row]
    return sum(map(bool, cells)) / len(cells)


def _number_share(column: Sequence[str]) -> float:
    filled = [cell for cell in column if cell not in _NOTHING]
    return sum(map(is_number, filled)) / len(filled) if filled else 0.0


def _median_words(column: Sequence[str]) -> float:
    return statistics.median([len(cell.split()) for cell in column if cell] or [0])


def _is_prose(columns: Texts) -> bool:
    return sum(_median_words(column) > _MANY_WORDS for column in columns) > len(columns) / 2


def _is_something_else(rows: Texts) -> bool:
    cells = [cell for row in rows for cell in row if cell]
    first = [row[0] for row in rows if row[0]]
    if len(rows[0]) == 2 and sum(bool(_ENUMERATOR.fullmatch(cell)) for cell in first) > 0.5 * len(first):
        return True
    if sum(bool(_CODE.search(cell)) for cell in cells) > 0.2 * len(cells):
        return True
    has_labels = sum(cell.endswith(":") for cell in cells) > 0.35 * len(cells)
    has_addresses = len(rows) <= 6 and any("@" in cell for cell in cells)
    return has_labels or has_addresses or _is_running_text(cells) or _is_contents(rows)


def _is_running_text(cells: Sequence[str]) -> bool:
    """Whether these are words of sentences set far apart: most begin small, and a sentence ends among them."""
    words = [cell for cell in cells if cell[0].isalpha()]
    small = sum(cell[0].islower() for cell in words)
    return small > 0.5 * len(cells) and any(map(_SENTENCE_END.search, words))


def _is_contents(rows: Texts) -> bool:
    """Titles, and page numbers that never fall; a table has a name above its numbers."""
    pages = [row[-1] for row in rows if row[-1]]
    numbers = [int(page) for page in pages if page.isdecimal()]
    if len(numbers) < 3 or len(numbers) < len(pages) - 1 or numbers != sorted(numbers) or numbers[0] == numbers[-1]:
        return False
    titles = [cell for row in rows for cell in row[:-1] if cell]
    return all(not is_number(cell) or _SECTION.fullmatch(cell) for cell in titles)
