"""Puts signs that stand in columns of their own back beside their figures: `$ | 1,234` and `(1,234 | )`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from functions.core.extraction.pdf.tables.glyphs import Piece

_BEFORE = re.compile(r"(?:[A-Z]{0,3}[$€£¥]|[(\[]|[$€£¥]\s?[(\[])")
_AFTER = re.compile(r"[)\]%‰€*†‡]+")

_CURRENCY = re.compile(r"(?:[A-Z]{0,3}[$€£¥]|EUR|USD|GBP|CHF)")
_FIGURE = re.compile(r"[(\[−–—-]*[\d—–-][\d.,'’)\]%]*")


def find_currencies(text: str, words: Sequence[Piece]) -> set[int]:
    """The offsets of words that are a currency alone, before a figure or the dash of an empty cell."""
    pairs = itertools.pairwise(words)
    return {
        one.start
        for one, two in pairs
        if _CURRENCY.fullmatch(text, one.start, one.end) and _FIGURE.fullmatch(text, two.start, two.end)
    }


def join_symbols(
    rows: Sequence[list[str]], header_rows: int, borders: tuple[float, ...]
) -> tuple[list[list[str]], tuple[float, ...]]:
    """The rows, and the borders in points, without columns that hold only signs: those go to the figures beside them.

    A currency or an opening parenthesis belongs to the next column, a percent sign or a closing one to the one before.
    """
    joined, borders = [list(row) for row in rows], tuple(borders)
    column = len(joined[0]) - 1
    while column >= 0:
        signs = [row[column] for row in joined[header_rows:] if row[column]]
        if column > 1 and signs and all(map(_AFTER.fullmatch, signs)):
            joined, borders = _merge(joined, header_rows, column - 1), borders[:column] + borders[column + 1 :]
        elif 0 < column < len(joined[0]) - 1 and signs and all(map(_BEFORE.fullmatch, signs)):
            joined, borders = _merge(joined, header_rows, column), borders[: column + 1] + borders[column + 2 :]
        column -= 1
    return joined, borders


def _merge(rows: Sequence[list[str]], header_rows: int, left: int) -> list[list[str]]:
    """The rows with the columns `left` and `left + 1` as one."""
    merged = []
    for number, row in enumerate(rows):
        one, two = row[left : left + 2]
        name = one if one == two else f"{one} {two}".strip()
        cell = name if number < header_rows else one + two
        merged.append([*row[:left], cell, *row[left + 2 :]])
    return merged
