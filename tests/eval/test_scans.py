"""A scanned document is found nearly as well as the same document with text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pytest

from functions.adapters.postgres.connection import Database
from functions.local.evaluation import command
from tests.eval import scans
from tests.support.requirements import need_eval_data, need_tesseract


@pytest.mark.parametrize(
    ("name", "documents", "pages", "questions"),
    [
        ("pages_en", ("en-dev-01", "en-dev-04", "en-dev-08"), 8, 55),
        ("pages_fr", ("piaf-dev-geographie-2", "piaf-dev-geographie-1", "piaf-dev-geographie-3"), 5, 134),
    ],
    ids=["English", "French"],
)
def test_scanning_costs_at_most_five_points(
    database: str, pytestconfig: pytest.Config, name: str, documents: Sequence[str], pages: int, questions: int
) -> None:
    """ING-2, EVAL-1: page hit@5, with a scan of the first document; `python -m tests.eval.scans` measures all scans."""
    need_tesseract()
    root = need_eval_data()
    home = pytestconfig.cache.mkdir("ibid")
    with command.open_embedder(home) as embedder, closing(Database(database)) as store:
        found = scans.compare(store, name, embedder, root=root, documents=documents, scanned=documents[:1])
    scans.print_table(found)
    assert (found.pages, found.questions) == (pages, questions)
    assert found.words_found >= 0.9
    assert found.lost <= scans.MAX_LOSS
