"""The scores of rankings, checked against hand-computed values and a second implementation."""

from __future__ import annotations

import importlib.util
import math
import random
from types import SimpleNamespace

import pytest

from functions.local.evaluation import ranking_scores
from functions.local.evaluation.ranking_scores import RankingScores
from tests.support.requirements import need_eval_data

SECOND = 1 / math.log2(3)
THIRD = 1 / math.log2(4)


@pytest.mark.parametrize(
    ("ranking", "gold", "scores"),
    [
        pytest.param("abc", "a", RankingScores(1, 1, 1, 1, 1, 1), id="first"),
        pytest.param("abc", "c", RankingScores(THIRD, 1 / 3, 0, 1, 1, 1), id="third"),
        pytest.param("aabbc", "c", RankingScores(THIRD, 1 / 3, 0, 1, 1, 1), id="repeats-count-once"),
        pytest.param("abcdef", "f", RankingScores(1 / math.log2(7), 1 / 6, 0, 0, 1, 1), id="sixth"),
        pytest.param("abcdefghi", "i", RankingScores(1 / math.log2(10), 1 / 9, 0, 0, 0, 1), id="ninth"),
        pytest.param("abcdefghijk", "k", RankingScores(0, 0, 0, 0, 0, 0), id="eleventh"),
        pytest.param("abc", "bx", RankingScores(SECOND / (1 + SECOND), 1 / 2, 0, 1, 1, 1), id="one-of-two"),
        pytest.param("bxa", "bx", RankingScores(1, 1, 1, 1, 1, 1), id="both"),
        pytest.param("", "a", RankingScores(0, 0, 0, 0, 0, 0), id="nothing-found"),
    ],
)
def test_a_ranking_is_scored(ranking: str, gold: str, scores: RankingScores) -> None:
    """EVAL-1"""
    found = ranking_scores.score_ranking(ranking, set(gold))
    assert [getattr(found, name) for name in RankingScores.__slots__] == pytest.approx(
        [getattr(scores, name) for name in RankingScores.__slots__]
    )


def test_scores_equal_those_of_the_script_of_the_question_sets() -> None:
    """EVAL-1"""
    path = need_eval_data("score.py")
    spec = importlib.util.spec_from_file_location("score", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    generator = random.Random(7)
    for _ in range(200):
        ranking = generator.choices("abcdefghijklmnopqrstuvwxyz", k=15)
        gold = set(generator.choices("abcdefghijklmnopqrstuvwxyz", k=3))
        query = {"evidence": [{"doc_id": "d", "passage_id": unit} for unit in gold]}
        record = {"results": [{"doc_id": "d", "passage_id": unit} for unit in ranking]}
        theirs = SimpleNamespace(**script.retrieval(query, record, "passage", None))
        expected = [theirs.__dict__[name] for name in ("nDCG@10", "MRR@10", "hit@1", "hit@5", "hit@10")]
        ours = ranking_scores.score_ranking(ranking, gold)
        assert [ours.ndcg, ours.mrr, ours.hit_1, ours.hit_5, ours.hit_10] == pytest.approx(expected)


def test_the_mean_is_computed_for_each_score_separately() -> None:
    scores = [RankingScores(1, 1, 1, 1, 1, 1), RankingScores(0, 0.5, 0, 0, 0, 1)]
    assert ranking_scores.mean_scores(scores) == RankingScores(0.5, 0.75, 0.5, 0.5, 0.5, 1)


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 2), (0.51, 3), (0.95, 4), (1.0, 4)])
def test_a_percentile_is_one_of_the_values(share: float, value: int) -> None:
    assert ranking_scores.percentile([4, 2, 3, 1], share) == value


def test_an_empty_sample_has_no_mean_and_no_percentile() -> None:
    assert math.isnan(ranking_scores.mean([]))
    assert math.isnan(ranking_scores.percentile([], 0.5))


def test_a_constant_difference_has_no_spread() -> None:
    assert ranking_scores.paired_difference([0.5, 0.75, 1], [0.25, 0.5, 0.75]) == (0.25, 0.25, 0.25)


def test_the_interval_of_a_difference_contains_its_mean() -> None:
    ours = [float(number % 2) for number in range(100)]
    mean, low, high = ranking_scores.paired_difference(ours, [0.4] * 100)
    assert mean == pytest.approx(0.1)
    assert -0.02 < low < mean < high < 0.22
