"""Search quality on scientific claims, with the tables and functions of the product."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from functions.adapters.postgres.connection import Database
from functions.core.settings import Settings
from functions.local.evaluation import command, question_sets, report
from functions.local.evaluation.scores import mean_scores
from tests.eval import bm25
from tests.support.requirements import need_eval_data

NDCG = 0.865
"""The least nDCG@10 on a part of the set. `make eval ARGS=passages/scifact` measures all of it and takes far longer."""


def read_part() -> question_sets.QuestionSet:
    """Reads every sixth claim, the abstracts that answer them, and every eighteenth of the other abstracts."""
    found = question_sets.read_set("scifact", root=need_eval_data("passages"))
    questions = found.questions[::6]
    gold = {unit for question in questions for unit in question.gold}
    others = [passage for passage in found.passages if passage.id not in gold]
    kept = {passage.id for passage in others[::18]} | gold
    passages = tuple(passage for passage in found.passages if passage.id in kept)
    return replace(found, passages=passages, questions=questions)


def test_the_hybrid_search_ranks_better_than_either_arm(database: str, pytestconfig: pytest.Config) -> None:
    """EVAL-1: by nDCG@10, which also reaches its goal."""
    questions = read_part()
    home = pytestconfig.cache.mkdir("ibid")  # a change of the search does not change the vectors
    with command.open_embedder(home) as embedder, closing(Database(database)) as store:
        found = command.evaluate(store, questions, embedder, Settings())
    report.print_report(found)
    scores = {arm: mean_scores(asked).ndcg for arm, asked in found.arms.items()}
    assert (found.document_count, len(found.arms["hybrid"])) == (len(questions.passages), 135)
    assert scores["hybrid"] >= NDCG
    assert scores["hybrid"] > max(scores["lexical"], scores["dense"])
    assert found.missed_by_words == []
    bm25.assert_ranks_as_well(questions, found.arms["lexical"])
