"""Scores tables of real PDFs by adjacency relations, as the ICDAR 2013 table competition does.

A relation is a filled cell and its nearest filled neighbour to the right or below. Texts are compared without spaces
and signs. The relations of a page are pooled, so a table that is split or merged costs only those that it breaks.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

Relations = Counter[tuple[str, str, str]]
"""How often a text has another one "right" of it or "below" it."""
Grid = Mapping[tuple[int, int], tuple[int, str]]
"""The number and the text of the cell at each row and column; a cell over several has one number in all of them."""

_SIGNS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class DocumentScore:
    """How many relations of a document are known, found, and both."""

    name: str
    correct: int
    known: int
    found: int

    @property
    def recall(self) -> float:
        return self.correct / self.known

    @property
    def precision(self) -> float:
        return self.correct / self.found if self.found else 0.0


def mean_f1(documents: Sequence[DocumentScore]) -> float:
    """F1 of the mean recall of all documents and the mean precision of those with a table found."""
    recall = statistics.fmean(document.recall for document in documents)
    precision = statistics.fmean([document.precision for document in documents if document.found] or [0.0])
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def score_document(name: str, known: Mapping[int, Relations], found: Mapping[int, Relations]) -> DocumentScore:
    """Compares the relations of each page."""
    correct = sum((relations & found.get(page, Counter())).total() for page, relations in known.items())
    return DocumentScore(name, correct, *(sum(page.total() for page in pages.values()) for pages in (known, found)))


def read_known(path: Path) -> dict[int, Relations]:
    """The relations of each page with tables, from a file of the competition."""
    pages: dict[int, Relations] = defaultdict(Counter)
    for region in ElementTree.parse(path).getroot().iterfind(".//table/region"):
        pages[int(region.get("page", "0"))] += find_relations(dict(_read_cells(region)))
    return dict(pages)


def _read_cells(region: ElementTree.Element) -> Iterator[tuple[tuple[int, int], tuple[int, str]]]:
    for number, cell in enumerate(region.iter("cell")):
        top, left = (int(cell.get(f"start-{side}", "0")) for side in ("row", "col"))
        bottom, right = (int(cell.get(f"end-{side}") or start) for side, start in (("row", top), ("col", left)))
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                yield (row, column), (number, _plain(cell.findtext("content") or ""))


def make_grid(rows: Sequence[Sequence[str | None]], header_rows: int) -> Grid:
    """The grid of a found table; names that a header repeats are those of one cell over several columns."""
    grid: dict[tuple[int, int], tuple[int, str]] = {}
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            text, before = _plain(cell or ""), grid.get((row, column - 1))
            repeats = row < header_rows and before is not None and text and before[1] == text
            grid[row, column] = before if repeats and before else (len(grid), text)
    return grid


def find_relations(grid: Grid) -> Relations:
    """The relations between the cells of a grid."""
    height, width = (1 + max((place[side] for place in grid), default=-1) for side in (0, 1))
    pairs: set[tuple[str, str, str, int, int]] = set()
    for row, column in grid:
        number, text = grid[row, column]
        right = ((row, other) for other in range(column + 1, width))
        below = ((other, column) for other in range(row + 1, height))
        for way, places in (("right", right), ("below", below)):
            after = next((grid[place] for place in places if place in grid and grid[place][1]), None)
            if text and after and after[0] != number:
                pairs.add((text, after[1], way, number, after[0]))
    return Counter((one, two, way) for one, two, way, *_ in pairs)


def _plain(text: str) -> str:
    return _SIGNS.sub("", text).lower()
