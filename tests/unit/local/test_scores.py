"""Which figures have a goal, and whether they reach it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.local.evaluation.asking import Asked
from functions.local.evaluation.question_sets import Question
from functions.local.evaluation.ranking_scores import RankingScores
from functions.local.evaluation.scores import (
    NO_GOALS,
    Evaluation,
    Goals,
    compare_english,
    list_figures,
    score_answers,
    score_citations,
)
from tests.eval.goals import GOALS


def asked(ndcg: float | None, *, lang: str = "en", is_refused: bool = False) -> Asked:
    scores = None if ndcg is None else RankingScores(ndcg, ndcg, ndcg, ndcg, ndcg, ndcg)
    gold = frozenset() if ndcg is None else frozenset({"p"})
    evidence = 0.3 if is_refused else 0.5
    cited = frozenset() if is_refused else gold
    question = Question("q", "?", lang, gold)
    return Asked(question, scores, scores, 1.0, is_empty=False, evidence=evidence, threshold=0.4, cited=cited)


def evaluation(name: str, hybrid: float, lexical: float, dense: float, lang: str = "en", *more: Asked) -> Evaluation:
    arms = {"hybrid": hybrid, "lexical": lexical, "dense": dense}
    return Evaluation(name, 1, 1, {arm: [asked(ndcg, lang=lang), *more] for arm, ndcg in arms.items()}, [])


def list_missed(found: Evaluation, goals: Goals = GOALS, **references: float) -> list[str]:
    return [row["figure"] for row in list_figures(found, references, goals) if not row["ok"]]


def test_a_search_that_reaches_every_goal_misses_none() -> None:
    """EVAL-2"""
    assert list_missed(evaluation("piaf", 0.87, 0.8, 0.5, "fr"), bm25s=0.8) == []


def test_without_goals_the_scores_of_a_set_are_only_reported() -> None:
    """EVAL-3: every set keeps the goals of the guard and of fusion."""
    found = list_figures(evaluation("piaf", 0.5, 0.5, 0.5, "fr", asked(None, lang="fr")), {"bm25s": 0.8}, NO_GOALS)
    assert [row["figure"] for row in found if row["goal"] is not None] == [
        "piaf: hybrid ndcg to the better arm's",
        "piaf: questions with words of the set and an empty lexical arm",
        "piaf: answerable questions refused",
    ]


@pytest.mark.parametrize(
    ("found", "figure"),
    [
        (evaluation("piaf", 0.80, 0.8, 0.5, "fr"), "piaf: hybrid ndcg"),
        (evaluation("pages_en", 0.97, 0.9, 0.9), "pages_en: hybrid hit_5"),
        (evaluation("mine", 0.78, 0.8, 0.5), "mine: hybrid ndcg to the better arm's"),
        (evaluation("mine", 0.8, 0.7, 0.5), "mine: lexical ndcg to that of bm25s"),
    ],
)
def test_a_missed_goal_is_named(found: Evaluation, figure: str) -> None:
    """EVAL-2"""
    goals = replace(GOALS, reference={"mine": 0.97})
    assert list_missed(found, goals, bm25s=0.75) == [figure]


def test_a_set_in_two_languages_has_a_goal_for_each() -> None:
    """EVAL-1, EVAL-2: French reaches it and English does not."""
    found = evaluation("reports_eu", 0.84, 0.5, 0.5, "en", asked(0.82, lang="fr"))
    assert [row["figure"] for row in list_figures(found) if "ndcg, " in row["figure"]] == [
        "reports_eu: hybrid ndcg, en",
        "reports_eu: hybrid ndcg, fr",
    ]
    assert list_missed(found) == ["reports_eu: hybrid ndcg, en"]


@pytest.mark.parametrize(("lang", "missed"), [("en", ["unanswerable_en: unanswerable questions refused"]), ("fr", [])])
def test_the_share_of_unanswerable_questions_to_refuse_depends_on_the_language(lang: str, missed: list[str]) -> None:
    """RET-8: three in four of them are refused."""
    unanswerable = [asked(None, lang=lang, is_refused=number > 0) for number in range(4)]
    assert list_missed(evaluation(f"unanswerable_{lang}", 0.9, 0.8, 0.8, lang, *unanswerable)) == missed


def test_fusion_is_judged_by_the_mean_over_english_sets() -> None:
    english = [evaluation("a", 0.9, 0.9, 0.5), evaluation("b", 0.88, 0.5, 0.8)]
    others = [evaluation("c", 0.5, 0.8, 0.5, "fr"), evaluation("unanswerable_en", 0.8, 0.8, 0.8)]
    [row] = compare_english([*english, *others], GOALS)
    assert (row["value"], row["ok"]) == (1.05, True)
    assert compare_english(english[:1], GOALS) == []


def test_answers_are_scored_by_what_they_say_and_cite() -> None:
    """EVAL-1: one contains and cites it, one does neither, one is a refusal; unanswerable questions do not count."""
    question = Question("q", "?", "en", frozenset({"x"}), answers=("1519",))
    answers = [
        replace(asked(1.0), question=question, cited=frozenset(cited), contains_answer=contains)
        for cited, contains in (("px", True), ("p", False), ("", False))
    ]
    assert score_answers([*answers, asked(None)]) == (1 / 3, 1 / 3)


def test_citations_are_scored_against_the_evidence() -> None:
    """EVAL-1: citations half right and complete, all wrong, and a refusal."""
    answers = [replace(asked(1.0), cited=frozenset(cited)) for cited in ("px", "x", "")]
    assert score_citations([*answers, asked(None)]) == (1 / 4, 1 / 3)
