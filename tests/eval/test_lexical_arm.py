"""The lexical arm alone finds passages for every question in plain words."""

from __future__ import annotations

from contextlib import closing

import pytest

from functions.adapters.laptop.embedder import LocalEmbedder
from functions.adapters.postgres.connection import Database
from functions.core.settings import Settings
from functions.local.evaluation import asking, question_sets, scores
from functions.local.evaluation.library import load_library
from functions.local.evaluation.vector_cache import BlindEmbedder
from tests.eval import bm25
from tests.support.requirements import need_eval_data

# SciFact is asked in test_scifact.py, because indexing it takes long.
SETS = (
    "passages/piaf",
    "passages/xquad_en",
    "passages/anthropic_docs",
    "pages_en",
    "pages_fr",
)


@pytest.mark.parametrize("name", SETS)
def test_the_lexical_arm_finds_a_passage_for_every_question(database: str, name: str) -> None:
    """RET-2: for every question that shares a word with the set."""
    questions = question_sets.read_set(name, root=need_eval_data())
    embedder = BlindEmbedder(LocalEmbedder())
    with closing(Database(database)) as store:
        library = load_library(store, questions, embedder, Settings())
        asked = asking.ask_all(store, library, questions.questions, embedder, Settings(), "lexical")
        assert len(asked) == len(questions.questions) > 0
        assert asking.list_missed(store, library, asked) == []
        if questions.name in scores.REFERENCE_SETS:
            bm25.assert_ranks_alike(questions, asked)
