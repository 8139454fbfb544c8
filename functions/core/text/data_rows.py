"""Tells rows of amounts from rows that name the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from functions.core.text.visible import has_word

# A figure has no letters. An amount is no year, age or number of a column: it has decimals, thousands or a currency.
_FIGURE = re.compile(r"[\W\d]*\d[\W\d]*")
_AMOUNT = re.compile(r"\W*\d{1,3}(?:[,.'’\s]\d+)+\W*|[($€£¥+−-]+\s*\d[\W\d]*|\d+\s?%")


def is_data(cells: Sequence[str]) -> bool:
    """Whether a row has a label and otherwise only figures, half of them amounts, and so cannot name columns."""
    figures = [cell for cell in cells[1:] if has_word(cell)]
    amounts = sum(bool(_AMOUNT.fullmatch(cell)) for cell in figures)
    is_labelled = sum(map(str.isalpha, cells[0])) > 1
    return is_labelled and all(map(_FIGURE.fullmatch, figures)) and 2 * amounts >= len(figures) > 0
