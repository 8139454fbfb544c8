"""Measures how many cells of known tables are found, and how fast: `python -m tests.bench.bench_tables [DOCUMENTS]`.

A cell is correct when its text, its row and the name of its column are correct. Found rows are aligned with the known
rows in order, each with at most one, so that as many cells as possible agree. Empty cells do not count. The baseline is
pdfplumber's `extract_tables` on the same pages, with its line strategy for ruled tables and its text strategy for
others; it is told the number of header rows. The tables of real PDFs, in the folder tables_eu of IBID_EVAL_DATA, are
scored by adjacency relations, for each document and together. Prints a table and, as the last line, a JSON object. A
goal applies to the value of a share, and to the ratio of a time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functions.core import models
from functions.core.extraction.pdf import text_layer
from functions.core.extraction.pdf.reader import open_pdf, open_text_page
from functions.core.extraction.pdf.tables import finder
from functions.local.evaluation import question_sets
from tests.bench import real_tables
from tests.bench.report import at_most, figure, print_figures
from tests.support import prose_documents, random_tables, table_documents
from tests.support.requirements import report_missing
from tests.support.table_documents import KnownTable

DOCUMENTS = 60
FIRST_SEED = 10_000  # the rules were written with documents of seeds below 1,000 at hand
GOALS = {"ruled": 0.95, "unruled": 0.85}
PROSE_SEEDS, PROSE_GOAL = 10, 0.02
PREFILTER_GOAL, TABLE_GOAL = 0.5, 0.5
REAL_GOAL = 0.96

Cells = Counter[tuple[str, str]]
"""The cells of one row as pairs of column name and text, without empty cells."""


@dataclass
class Score:
    correct: int = 0
    found: int = 0
    known: int = 0

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.found + self.known) if self.found + self.known else 1.0


def list_cells(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Cells]:
    return [Counter((name, cell) for name, cell in zip(header, row, strict=True) if cell) for row in rows]


def list_table_cells(rows: Sequence[Sequence[str]], header_rows: int) -> list[Cells]:
    names = [
        table_documents.name_column(cell for cell in column if cell) for column in zip(*rows[:header_rows], strict=True)
    ]
    return list_cells(names or [""] * len(rows[0]), rows[header_rows:])


def count_correct(known: list[Cells], found: list[Cells]) -> int:
    """Counts the cells that agree in the best alignment of the rows."""
    best = [0] * (len(found) + 1)
    for row in known:
        before = list(best)
        for n, other in enumerate(found, 1):
            best[n] = max(before[n], best[n - 1], before[n - 1] + (row & other).total())
    return best[-1]


def add_page(score: Score, known: Sequence[KnownTable], tables: Sequence[list[Cells]]) -> None:
    """Adds the tables of a page, paired so that most cells agree; every cell of an unpaired table is wrong."""
    rows = [list_cells(table.header, table.rows) for table in known]
    score.known += sum(row.total() for table in rows for row in table)
    score.found += sum(row.total() for table in tables for row in table)
    pairs = [(count_correct(one, two), i, j) for i, one in enumerate(rows) for j, two in enumerate(tables)]
    used: set[tuple[str, int]] = set()
    for correct, i, j in sorted(pairs, reverse=True):
        if ("known", i) not in used and ("found", j) not in used:
            used |= {("known", i), ("found", j)}
            score.correct += correct


@dataclass
class Reader:
    """The score and the seconds of one way to find tables, over all documents."""

    score: Score = field(default_factory=Score)
    seconds: float = 0.0


def read_ours(path: Path, reader: Reader) -> dict[int, list[list[Cells]]]:
    found = {}
    with open_pdf(path) as pdf:
        for number in range(1, len(pdf) + 1):
            start = time.perf_counter()
            tables, *_ = find_tables(pdf, number)
            reader.seconds += time.perf_counter() - start
            found[number] = [list_table_cells([row.cells for row in table.rows], table.header_rows) for table in tables]
    return found


def find_tables(pdf: Any, number: int) -> tuple[tuple[models.Table, ...], float, bool]:
    """Finds the tables of a page; returns them, the seconds, and whether the page passed the first check."""
    with open_text_page(pdf, number) as (page, text_page):
        layer = text_layer.read_layer(text_page)
        asked = []

        def indices() -> list[int | None]:
            asked.append(number)
            return layer.indices(text_page)

        start = time.perf_counter()
        tables = finder.find_tables(page, text_page, layer.text, indices)
        return tables, time.perf_counter() - start, bool(asked)


def read_plumber(
    path: Path, known: Sequence[KnownTable], strategy: str, reader: Reader
) -> dict[int, list[list[Cells]]]:
    import pdfplumber

    settings = {"vertical_strategy": strategy, "horizontal_strategy": strategy}
    found: dict[int, list[list[Cells]]] = {}
    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            header_rows = [table.header_rows for table in known if table.page == page.page_number]
            start = time.perf_counter()
            tables = page.extract_tables(settings)
            reader.seconds += time.perf_counter() - start
            found[page.page_number] = [
                list_plumber_cells(table, header_rows[n] if n < len(header_rows) else 1)
                for n, table in enumerate(tables)
            ]
            page.close()
    return found


def list_plumber_cells(table: Sequence[Sequence[str | None]], header_rows: int) -> list[Cells]:
    rows = [[" ".join((cell or "").split()) for cell in row] for row in table]
    count = min(header_rows, len(rows))
    for row in rows[: count - 1]:  # pdfplumber returns a merged header cell once
        for column in range(1, len(row)):
            row[column] = row[column] or row[column - 1]
    return list_table_cells(rows, count)


def measure(kind: str, documents: int) -> tuple[Reader, Reader, int, int]:
    """Reads generated documents; returns our reader, the baseline's, and the numbers of tables and of pages."""
    ours, plumber, tables, pages = Reader(), Reader(), 0, 0
    strategy = "lines" if kind == "ruled" else "text"
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST_SEED, FIRST_SEED + documents):
            path = Path(folder) / f"{kind}-{seed}.pdf"
            known = random_tables.make_random_pdf(path, seed, ruled=kind == "ruled")
            found = {id(ours): read_ours(path, ours), id(plumber): read_plumber(path, known, strategy, plumber)}
            tables, pages = tables + len(known), pages + len(found[id(ours)])
            for reader in (ours, plumber):
                for number, page in found[id(reader)].items():
                    add_page(reader.score, [table for table in known if table.page == number], page)
    return ours, plumber, tables, pages


def measure_prose() -> tuple[float, float, int]:
    """The share of prose pages in columns where we, and pdfplumber's text strategy, find a table; and their number."""
    kinds = list(prose_documents.PROSE)
    ours = plumber = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            for seed in range(FIRST_SEED, FIRST_SEED + PROSE_SEEDS):
                path = prose_documents.make_pdf(Path(folder) / "prose.pdf", kind, seed)
                ours += any(read_ours(path, Reader()).values())
                plumber += any(read_plumber(path, [], "text", Reader()).values())
    count = len(kinds) * PROSE_SEEDS
    return ours / count, plumber / count, count


def measure_real() -> Iterator[dict[str, Any]]:
    """The adjacency F1 and the time a page on real PDFs with known tables, beside pdfplumber's line strategy."""
    folder = question_sets.data_root() / "tables_eu"
    paths = sorted(folder.glob("*.pdf"))
    if not paths:
        report_missing(f"IBID_EVAL_DATA: no tables_eu in {folder.parent}, so no real tables were measured")
        return
    ours, plumber = (list[real_tables.DocumentScore]() for _ in range(2))
    our_seconds = plumber_seconds = pages = 0.0
    for path in paths:
        known = real_tables.read_known(path.with_name(f"{path.stem}-str.xml"))
        start = time.perf_counter()
        ours.append(real_tables.score_document(path.stem, known, dict(read_our_relations(path))))
        middle = time.perf_counter()
        plumber.append(real_tables.score_document(path.stem, known, dict(read_plumber_relations(path))))
        our_seconds, plumber_seconds = our_seconds + middle - start, plumber_seconds + time.perf_counter() - middle
        pages += count_pages(path)
        print(f"{path.stem:10} recall {ours[-1].recall:.3f}  precision {ours[-1].precision:.3f}  of {ours[-1].known}")
    f1, baseline = real_tables.mean_f1(ours), real_tables.mean_f1(plumber)
    yield figure(f"adjacency F1, real, n = {len(paths)} documents", f1, baseline, REAL_GOAL, ok=f1 >= REAL_GOAL)
    our_ms, plumber_ms = (1e3 * seconds / pages for seconds in (our_seconds, plumber_seconds))
    yield at_most(f"ms a page, real, n = {pages:.0f}", our_ms, plumber_ms, TABLE_GOAL)


def read_our_relations(path: Path) -> Iterator[tuple[int, real_tables.Relations]]:
    with open_pdf(path) as pdf:
        for number in range(1, len(pdf) + 1):
            tables, *_ = find_tables(pdf, number)
            grids = [real_tables.make_grid([row.cells for row in table.rows], table.header_rows) for table in tables]
            yield number, sum(map(real_tables.find_relations, grids), real_tables.Relations())


def read_plumber_relations(path: Path) -> Iterator[tuple[int, real_tables.Relations]]:
    import pdfplumber

    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            grids = [real_tables.make_grid(rows, 0) for rows in page.extract_tables()]
            yield page.page_number, sum(map(real_tables.find_relations, grids), real_tables.Relations())
            page.close()


def count_pages(path: Path) -> int:
    with open_pdf(path) as pdf:
        return len(pdf)


def measure_prefilter() -> dict[str, float] | None:
    """Measures the search for tables on pages of the question sets without tables, and the reading of their text."""
    paths = sorted(question_sets.data_root().glob("pages_*/pdf/*.pdf"))
    text_seconds = prefilter_seconds = 0.0
    pages = close = 0
    for path in paths:
        with open_pdf(path) as pdf:
            for number in range(1, len(pdf) + 1):
                tables, seconds, asked = find_tables(pdf, number)
                if not tables:
                    pages, close = pages + 1, close + asked
                    prefilter_seconds += seconds
                    text_seconds += measure_text_reading(pdf, number)
    if not pages:
        return None
    return {
        "prefilter": 1e3 * prefilter_seconds / pages,
        "text": 1e3 * text_seconds / pages,
        "pages": pages,
        "close": close,
    }


def measure_text_reading(pdf: Any, number: int) -> float:
    page = pdf[number - 1]
    start = time.perf_counter()
    page.get_textpage().get_text_range()
    seconds = time.perf_counter() - start
    page.close()
    return seconds


def measure_figures(documents: int) -> Iterator[dict[str, Any]]:
    for kind, goal in GOALS.items():
        ours, plumber, tables, pages = measure(kind, documents)
        cells, f1 = ours.score.known, ours.score.f1
        yield figure(f"cell F1, {kind}, n = {tables} tables, {cells} cells", f1, plumber.score.f1, goal, ok=f1 >= goal)
        our_ms, plumber_ms = (1e3 * reader.seconds / pages for reader in (ours, plumber))
        yield at_most(f"ms a page with tables, {kind}, n = {pages}", our_ms, plumber_ms, TABLE_GOAL)
    yield from measure_real()
    ours_share, plumber_share, count = measure_prose()
    name = f"share of pages of prose in columns with a table, n = {count}"
    yield figure(name, ours_share, plumber_share, PROSE_GOAL, ok=ours_share <= PROSE_GOAL)
    prefilter = measure_prefilter()
    if prefilter:
        counts = f"n = {prefilter['pages']:.0f} ({prefilter['close']:.0f} looked at)"
        name = f"ms on pages without tables beside reading text, {counts}"
        yield at_most(name, prefilter["prefilter"], prefilter["text"], PREFILTER_GOAL)


def main() -> None:
    figures = list(measure_figures(int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS))
    print_figures("tables", figures)


if __name__ == "__main__":
    main()
