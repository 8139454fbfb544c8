"""How the answers of a chat model are judged, and when the compact prompt is good enough."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import pytest

from functions.core import models
from functions.core.citations.cite import cite_sections
from functions.core.citations.sections import WrittenSection
from functions.local.evaluation.answer_scores import AnswerScores, Verdict, count_claims, judge, list_figures, score
from functions.local.evaluation.answering import Written
from functions.local.evaluation.question_sets import Question
from tests.eval.goals import GOALS
from tests.support.fakes.search_hits import make_hit

Mode = Literal["model", "extractive", "guard"]

PAGE = make_hit("The light of the Sun takes eight minutes to reach the Earth.", document="sun")
OTHER = make_hit("The Moon keeps 382 kilograms of rock for the astronauts.", document="moon")


def written(
    *texts: str, gold: str = "eight minutes", mode: Mode = "model", asked: str = "How long does it take?"
) -> Written:
    """An answer with a section for each text, cited from the two passages; `sun` is the gold one."""
    sections, sources = cite_sections([WrittenSection(text, ()) for text in texts], [PAGE, OTHER])
    answer = models.Answer("", sections, sources, "complete", mode)
    question = Question("q", asked, "en", frozenset({"sun"}), answers=(gold,) if gold else ())
    return Written(question, "full", answer, tuple(source.source_id for source in sources), 90, 10, 1.5)


@pytest.mark.parametrize(
    ("text", "gold", "verdict"),
    [
        ("It takes eight minutes.", "eight minutes", "right"),
        ("Minutes, eight of them, pass.", "Eight minutes.", "right"),
        ("It takes some minutes.", "eight minutes", "partly"),
        ("It takes some minutes. There are eight of them.", "eight minutes", "partly"),
        ("It takes hours.", "eight minutes", "wrong"),
        ("Revenue was 1,250 euros.", "1 250", "right"),
        ("Revenue was 12 euros.", "1 250", "wrong"),
        ("Elle est à l'ouest.", "l’ouest", "right"),
        ("Yes, it was.", "yes", "right"),
        ("Anything.", "", "unjudged"),
    ],
)
def test_an_answer_is_judged_by_the_words_of_one_sentence(text: str, gold: str, verdict: Verdict) -> None:
    """EVAL-4"""
    assert judge(written(text, gold=gold)) == verdict


def test_words_of_the_question_need_not_be_repeated() -> None:
    """EVAL-4"""
    asked = "Which car did Toyota build?"
    assert judge(written("The Corona Mark II.", gold="Toyota Corona Mark II", asked=asked)) == "right"
    assert judge(written("Toyota built it.", gold="Toyota Corona Mark II", asked=asked)) == "wrong"


@pytest.mark.parametrize(("mode", "verdict"), [("guard", "refused"), ("extractive", "quoted")])
def test_only_words_of_the_model_are_judged(mode: Mode, verdict: Verdict) -> None:
    """EVAL-4"""
    assert judge(written("It takes eight minutes.", mode=mode)) == verdict


def test_a_claim_stands_if_it_cites_the_gold_passage_and_the_answer_is_not_wrong() -> None:
    """EVAL-4"""
    true, other = "The light of the Sun takes eight minutes.", "The Moon keeps 382 kilograms of rock."
    assert count_claims(written(true, other), "right") == (2, 1)
    assert count_claims(written(true, other), "wrong") == (2, 0)
    assert count_claims(written("It is far away."), "right") == (0, 0)


def test_a_prompt_is_scored_over_all_questions() -> None:
    """EVAL-4: one right answer, one refusal, one error, and a refused question without an answer."""
    right = written("The light of the Sun takes eight minutes.")
    failed = Written(right.question, "full", None, failure="model_unavailable")
    off_topic = Written(Question("o", "?", "en", frozenset()), "full", written(mode="guard").answer)
    found = score([right, written(mode="guard"), failed, off_topic])
    assert dict(found.verdicts) == {"right": 1, "refused": 1, "failed": 1}
    assert (found.unanswerable, found.unanswerable_refused) == (1, 1)
    assert (found.claims, found.held, found.verified, found.citation_recall) == (1, 1, 1, 1 / 3)
    assert (found.prompt_tokens, found.output_tokens, found.first_word) == (180, 20, 1.5)
    assert dict(found.failures) == {"model_unavailable": 1}


def scores(right: int, verified: int, output: int, failed: int = 0) -> AnswerScores:
    verdicts: Counter[Verdict] = Counter({"right": right, "failed": failed})
    return AnswerScores(verdicts, 0, 0, 1, 1, verified, 0.5, 100, output, 1.0, Counter())


@pytest.mark.parametrize(
    ("compact", "missed"),
    [
        (scores(7, 8, 60), []),
        (scores(6, 8, 60), ["right answers"]),
        (scores(7, 7, 60), ["verified citations"]),
        (scores(7, 8, 61), ["output tokens"]),
        (scores(7, 8, 60, failed=1), ["answers that failed"]),
    ],
)
def test_the_compact_prompt_has_goals(compact: AnswerScores, missed: list[str]) -> None:
    """EVAL-4: as many right answers, twice the verified citations, 60 % of the output, no error."""
    figures = list_figures("x", scores(7, 4, 100), compact, GOALS)
    assert [row["figure"] for row in figures if not row["ok"]] == [f"x: compact prompt, {name}" for name in missed]
