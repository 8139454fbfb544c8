"""Full text search alone must find a passage for every question that shares a word with the set."""

from __future__ import annotations

from contextlib import closing

import pytest

from functions.adapters.laptop.embedder import LocalEmbedder
from functions.adapters.postgres.connection import Database
from functions.core.settings import Settings
from functions.local.evaluation import asking, question_sets
from functions.local.evaluation.library import load_library
from functions.local.evaluation.vector_cache import ConstantEmbedder
from tests.eval import bm25
from tests.eval.goals import GOALS
from tests.support.requirements import need_eval_data

# test_scifact.py asks SciFact, because indexing it takes long.
SETS = (
    "passages/piaf",
    "passages/xquad_en",
    "passages/anthropic_docs",
    "pages_en",
    "pages_fr",
)


@pytest.mark.parametrize("name", SETS)
def test_full_text_search_misses_no_question(database: str, name: str) -> None:
    """RET-2: a passage is found for every question that has a word in common with the set."""
    questions = question_sets.read_set(name, root=need_eval_data())
    embedder = ConstantEmbedder(LocalEmbedder())
    with closing(Database(database)) as store:
        library = load_library(store, questions, embedder, Settings())
        asked = asking.ask_all(store, library, questions.questions, embedder, Settings(), "lexical")
        assert len(asked) == len(questions.questions) > 0
        assert asking.list_missed(store, library, asked) == []
        if questions.name in GOALS.reference:
            bm25.assert_ranks_as_well(questions, asked)
