"""A scanned document is found nearly as well as its text: some of the scanned twins, among all other documents."""

from __future__ import annotations

from contextlib import closing

import pytest

from functions.adapters.postgres.connection import Database
from functions.local import evaluation
from tests.eval import scans
from tests.requirements import need_eval_data, need_tesseract


@pytest.mark.parametrize(
    ("name", "document", "pages", "questions"),
    [("pages_en", "en-dev-01", 8, 55), ("pages_fr", "piaf-dev-geographie-2", 5, 134)],
)
def test_scanning_costs_at_most_five_points(
    database: str, pytestconfig: pytest.Config, name: str, document: str, pages: int, questions: int
) -> None:
    """ING-2, EVAL-1: page hit@5 of the scan against that of the text; `python -m tests.eval.scans` asks of them all."""
    need_tesseract()
    root = need_eval_data()
    home = pytestconfig.cache.mkdir("ibid")
    with evaluation.open_embedder(home) as embedder, closing(Database(database)) as store:
        found = scans.compare(store, name, embedder, root=root, documents=[document])
    scans.print_table(found)
    assert (found.pages, found.questions) == (pages, questions)
    assert found.words_found >= 0.9
    assert found.lost <= scans.MOST_LOST
