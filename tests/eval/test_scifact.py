"""Retrieval quality on scientific claims, through the tables and functions that serve users."""

from __future__ import annotations

from contextlib import closing

import pytest

from functions.adapters.postgres.connection import Database
from functions.core.settings import Settings
from functions.local import evaluation, evaluation_goals, evaluation_sets, evaluation_tables
from tests.eval import bm25
from tests.requirements import need_eval_data


def test_the_right_abstract_is_found_for_a_claim(database: str, pytestconfig: pytest.Config):
    """EVAL-1: nDCG@10 of the hybrid search on all of SciFact dev, which is more than words alone find."""
    questions = evaluation_sets.read_set("scifact", root=need_eval_data("passages"))
    home = pytestconfig.cache.mkdir("ibid")  # vectors stay the same however the search changes
    with evaluation.open_embedder(home) as embedder, closing(Database(database)) as store:
        found = evaluation.evaluate(store, questions, embedder, Settings(), ("hybrid", "lexical"))
    evaluation_tables.print_report(found)
    scores = {arm: evaluation_goals.mean_scores(asked).ndcg for arm, asked in found.arms.items()}
    assert (found.document_count, len(found.arms["hybrid"])) == (5183, 809)
    assert scores["hybrid"] >= evaluation_goals.GOALS["scifact", "ndcg"]
    assert scores["hybrid"] > scores["lexical"]
    assert found.missed_by_words == []
    bm25.assert_ranks_alike(questions, found.arms["lexical"])
