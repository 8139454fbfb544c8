"""Measures what 1,000 pages take in the database: `python -m tests.bench.bench_size`.

Two kinds of library are indexed by the worker: documents of one short page, with about two passages (abstracts), and
the PDFs of the question sets, with nine pages of about five passages on average. Without IBID_EVAL_DATA, the texts are
generated. The vectors have 384 dimensions. Sizes include indexes and TOAST after a vacuum; what the empty tables take
is left out. The baseline of each table is the sum. Prints a table and, as the last line, a JSON object.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from functions.adapters.laptop.embedder import LocalEmbedder
from functions.adapters.postgres.connection import Database
from functions.core.settings import Settings
from functions.local.evaluation import command, library, question_sets
from functions.local.evaluation.question_sets import QuestionSet, SourceFile
from functions.local.evaluation.vector_cache import ConstantEmbedder
from tests.acceptance.support import prose
from tests.bench.report import at_most, figure, print_figures

PAGES = 1000
BOOKS, BOOK_PAGES = 20, 9
GOAL_MEGABYTES = 20.0
LEAST_MEGABYTES = 0.1  # tables that take less are not listed

_SIZES = """
select c.relname as name, pg_total_relation_size(c.oid) as bytes
from pg_class c where c.relnamespace = 'rag'::regnamespace and c.relkind = 'r' order by 2 desc, 1
"""
_COUNTS = "select sum(page_count)::int as pages, sum(chunk_count)::int as passages from rag.documents"


def write_abstracts(folder: Path) -> Iterator[SourceFile]:
    """Writes documents of one page: abstracts of SciFact or, without them, generated paragraphs."""
    found = sorted(question_sets.data_root().glob("passages/scifact/corpus.jsonl*"))
    rows = list(question_sets.read_lines(found[0]))[:PAGES] if found else []
    texts = [f"{row['title']}\n\n{row['text']}" for row in rows]
    texts += [prose.write_paragraph(str(n), 16) for n in range(len(texts), PAGES)]
    for number, text in enumerate(texts):
        path = folder / f"abstract {number}.txt"
        path.write_text(text)
        yield SourceFile(path.stem, path)


def find_books(folder: Path) -> Iterator[SourceFile]:
    """The PDFs of the question sets or, without them, generated ones."""
    found = sorted(question_sets.data_root().glob("pages_*/pdf/*.pdf"))
    for path in found or [prose.make_book(folder / f"book {n}.pdf", BOOK_PAGES) for n in range(BOOKS)]:
        yield SourceFile(path.stem, path)


def read_sizes(database: Database) -> dict[str, int]:
    with database.autocommit() as connection:
        return {row["name"]: row["bytes"] for row in connection.execute(_SIZES).fetchall()}


def count_pages(database: Database) -> tuple[int, int]:
    """Counts the pages and the passages of all libraries."""
    with database.autocommit() as connection:
        row = connection.execute(_COUNTS).fetchone()
    assert row is not None
    return row["pages"] or 0, row["passages"] or 0


def list_figures(name: str, files: Sequence[SourceFile]) -> list[dict[str, Any]]:
    """Indexes the files for as many users as it takes to have enough pages; returns what they take."""
    with command.open_database() as database:
        empty = read_sizes(database)
        while count_pages(database)[0] < PAGES:
            questions = QuestionSet(name, (), tuple(files), ())
            library.load_library(database, questions, ConstantEmbedder(LocalEmbedder()), Settings())
        pages, passages = count_pages(database)
        taken = {table: (size - empty[table]) / pages / 1e3 for table, size in read_sizes(database).items()}
    total = sum(taken.values())
    return [
        at_most(f"{name}: MB per 1,000 pages", total, GOAL_MEGABYTES),
        figure("  passages a page", passages / pages, 1),
        *(figure(f"  MB of {table}", size, total) for table, size in taken.items() if size >= LEAST_MEGABYTES),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name:
        folder = Path(name).resolve()
        figures = list_figures("documents of one short page", list(write_abstracts(folder)))
        figures += list_figures("documents of many pages", list(find_books(folder)))
    print_figures("size", figures)


if __name__ == "__main__":
    main()
