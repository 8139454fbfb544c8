"""The phrases of the rephrased questions are such as the product accepts from a model."""

from __future__ import annotations

from functions.local.evaluation import question_sets
from tests.eval import rephrased
from tests.support.requirements import need_eval_data


def test_every_rephrased_question_belongs_to_the_set_and_keeps_a_phrase() -> None:
    """RET-12, EVAL-3"""
    questions = {one.id: one for one in question_sets.read_set(rephrased.SET, root=need_eval_data()).questions}
    phrases = rephrased.read_phrases()
    assert len(phrases) == 59
    assert [id_ for id_ in phrases if not rephrased.find_versions(questions[id_], phrases[id_])] == []
