"""The rule that judges answers without a model, and the questions written for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from functions.core import models
from functions.core.citations.cite import cite_extracts, mark_answer
from functions.core.citations.sections import Quotation
from functions.local.evaluation import question_sets
from tests.eval.extracts.__main__ import list_questions
from tests.eval.extracts.emphasis import SETS, judge_emphasis
from tests.eval.extracts.judgement import find_faults
from tests.support.fakes.search_hits import make_hit
from tests.support.requirements import need_eval_data

ROWS = "Costs\n\n| Item | 2001 |\n| --- | --- |\n| Fuel | 10 |\n| Staff | 20 |"


def make_answer(*texts: str, document: str = "doc") -> models.Answer:
    quotations = [
        Quotation(make_hit(text, document=document, page=at), ((0, len(text)),), text) for at, text in enumerate(texts)
    ]
    sections, sources = cite_extracts(quotations)
    return models.Answer(mark_answer(sections), sections, sources, "complete", "extractive", models.Usage())


@pytest.mark.parametrize(
    ("answer", "faults"),
    [
        (make_answer("The fuel cost 10 pounds."), []),
        (make_answer(ROWS), []),
        (make_answer("The costs are:\n- 10 for fuel\n- 20 for staff"), []),
        (make_answer("It cost 12."), ["gold answer missing"]),
        (make_answer("of which 10 were fuel."), ["starts inside a sentence"]),
        (make_answer("It was 10 and not"), ["ends inside a sentence"]),
        (make_answer("It cost 10.", document="other"), ["other document"]),
        (make_answer("It cost 10. It did. It did so. It was so.", "And so it was."), ["too long"]),
        (replace(make_answer(), sections=(models.CitedSection("Nothing.", (), ()),)), ["refused"]),
    ],
    ids=["sentence", "rows", "list", "wrong", "cut before", "cut behind", "foreign", "long", "refused"],
)
def test_an_answer_is_judged_by_what_it_holds_and_how_it_is_cut(answer: models.Answer, faults: list[str]) -> None:
    """CHAT-6, EVAL-3"""
    assert find_faults(answer, [["ten", "10"]], "doc", {"doc": "doc", "other": "other"}) == faults


def test_sixty_questions_are_of_four_kinds_and_two_languages() -> None:
    """EVAL-3"""
    questions = list_questions(need_eval_data())
    assert Counter(asked.kind for asked in questions) == dict.fromkeys(("prose", "table", "definition", "list"), 15)
    assert len({asked.text for asked in questions}) == 60


def test_the_words_in_bold_are_mostly_the_answer() -> None:
    """CHAT-6, EVAL-4"""
    for name in SETS:
        need_eval_data(name)
    asked, emphasized, right = judge_emphasis([question_sets.read_set(name) for name in SETS])
    assert emphasized >= 0.06 * asked
    assert right >= 0.8 * emphasized
