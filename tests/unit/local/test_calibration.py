"""How the guard's threshold is chosen, and what is measured with it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from functions.core import errors
from functions.core.settings import Settings
from functions.local.evaluation import calibration
from functions.local.evaluation.calibration import HALVES, Evidence, Judged, Refusals
from functions.local.evaluation.question_sets import Question, QuestionSet


def make_judged(half: int, *evidence: float) -> tuple[Judged, ...]:
    return tuple(Judged(value, (half,)) for value in evidence)


@pytest.mark.parametrize(("most", "threshold"), [(0.0, 0.1), (0.24, 0.1), (0.25, 0.2), (0.5, 0.3)])
def test_the_threshold_refuses_at_most_the_share_allowed(most: float, threshold: float) -> None:
    """RET-8"""
    evidence = [0.4, 0.2, 0.1, 0.3]
    assert calibration.choose_threshold(evidence, most) == threshold
    assert sum(value < threshold for value in evidence) <= most * len(evidence)


def test_documents_are_assigned_to_the_halves_alternately() -> None:
    questions = [Question(name, "?", "en", frozenset({name}), frozenset({name})) for name in "cabd"]
    assert calibration.split_documents(questions) == {"a": 0, "b": 1, "c": 0, "d": 1}


def test_a_set_answered_by_one_document_cannot_be_calibrated() -> None:
    question = Question("q", "?", "en", frozenset({"a"}), frozenset({"a"}))
    lone = QuestionSet("lone", (), (), (question,))
    unused: Any = None
    with pytest.raises(errors.ConflictError, match="lone"):
        calibration.collect_evidence(unused, lone, unused, Settings())


def test_each_half_is_measured_at_the_threshold_of_the_other() -> None:
    """RET-8: 0.5 is chosen on the first half and 0.3 on the second."""
    evidence = Evidence(
        answerable=make_judged(0, 0.5, 0.9) + make_judged(1, 0.3, 0.4),
        left_out=make_judged(0, 0.2, 0.35) + make_judged(1, 0.45, 0.55),
        unanswerable=(Judged(0.4, HALVES),),
    )
    found = calibration.cross_validate(evidence, 0.0)
    # At 0.3 the first half refuses (0, 1/2, 0); at 0.5 the second refuses (1, 1/2, 1).
    assert found == Refusals(threshold=0.4, answerable=0.5, left_out=0.5, unanswerable=0.5)


def test_a_kind_without_questions_has_no_share() -> None:
    evidence = Evidence(make_judged(0, 0.5) + make_judged(1, 0.5), make_judged(0, 0.1), ())
    found = calibration.measure_refusals(evidence, 0.4)
    assert (found.answerable, found.left_out) == (0.0, 1.0)
    assert math.isnan(found.unanswerable)


def test_joined_sets_keep_every_question() -> None:
    parts = [
        Evidence(make_judged(0, 0.1), make_judged(0, 0.2), ()),
        Evidence(make_judged(1, 0.3), (), (Judged(0.4, HALVES),)),
    ]
    assert Evidence.join(parts) == Evidence(
        make_judged(0, 0.1) + make_judged(1, 0.3), make_judged(0, 0.2), (Judged(0.4, HALVES),)
    )
