"""Tells rows of amounts from rows that name the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from functions.core.text.visible import has_word

# A figure has no letters. An amount is no year, age or number of a column: it has decimals, thousands or a currency.
_FIGURE = re.compile(r"[\W\d]*\d[\W\d]*")
_AMOUNT = re.compile(r"\W*\d{1,3}(?:[,.'’\s]\d+)+\W*|[($€£¥+−-]+\s*\d[\W\d]*|\d+\s?%")


def is_data(cells: Sequence[str]) -> bool:
    """Whether a row has a label or an amount and otherwise only figures, half of all amounts, so names no columns."""
    is_labelled = sum(map(str.isalpha, cells[0])) > 1
    if not is_labelled and not _AMOUNT.fullmatch(cells[0]):
        return False
    figures = [cell for cell in cells[is_labelled:] if has_word(cell)]
    amounts = sum(bool(_AMOUNT.fullmatch(cell)) for cell in figures)
    return all(map(_FIGURE.fullmatch, figures)) and 2 * amounts >= len(figures) > 0
