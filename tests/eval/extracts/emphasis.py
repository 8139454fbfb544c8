"""How often the words in bold are the answer, where the right passage was found."""

from __future__ import annotations

from collections.abc import Sequence

from functions.core.answering.extracts import choice
from functions.core.text import words
from functions.local.evaluation import question_sets
from tests.support.fakes.search_hits import make_hit

SETS = ("passages/xquad_en", "passages/piaf")


def judge_emphasis(sets: Sequence[question_sets.QuestionSet]) -> tuple[int, int, int]:
    """The questions asked of their right passages, the answers with words in bold, and those whose words are right."""
    asked = emphasized = right = 0
    for each in sets:
        texts = {passage.id: passage.text for passage in each.passages}
        for question in each.questions:
            hits = [make_hit(texts[unit]) for unit in question.gold if isinstance(unit, str)]
            quoted = choice.extract_answer(question.text, hits, lang=question.lang)
            shown = next((quotation.emphasis for quotation in quoted if quotation.emphasis), "")
            asked += 1
            emphasized += shown != ""
            right += any(_are_same(shown, answer) for answer in question.answers)
    return asked, emphasized, right


def _are_same(shown: str, answer: str) -> bool:
    """Whether one of the two has all the content words of the other: "1921" and "in May 1921"."""
    these, those = words.keys(shown), words.keys(answer)
    return bool(these and those) and (these <= those or those <= these)
