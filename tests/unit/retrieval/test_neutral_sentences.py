"""The sentences that similarities are measured with are parallel, varied, and in no question set."""

from __future__ import annotations

import re

import pytest

from functions.core.retrieval.neutral_sentences import NeutralSentence, read_neutral_sentences
from functions.core.text.languages import detect_language
from functions.local.evaluation import question_sets
from tests.support.requirements import need_eval_data

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
SHARED = 8
"""Consecutive words that a sentence has in common with a text that it was copied from."""


def list_words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def list_runs(text: str) -> set[tuple[str, ...]]:
    words = list_words(text)
    return {tuple(words[start : start + SHARED]) for start in range(len(words) - SHARED + 1)}


def test_there_are_160_pairs_of_which_half_are_questions() -> None:
    found = read_neutral_sentences()
    assert (len(found), sum(one.is_question for one in found)) == (160, 80)
    assert len({text for one in found for text in (one.en, one.fr)}) == 320


def test_a_question_is_a_question_in_both_languages() -> None:
    assert [one for one in read_neutral_sentences() if one.is_question != one.fr.endswith(" ?")] == []


def test_a_sentence_has_8_to_25_words_in_both_languages() -> None:
    texts = [text for one in read_neutral_sentences() for text in (one.en, one.fr)]
    assert [text for text in texts if not 8 <= len(list_words(text)) <= 25] == []


def test_a_sentence_is_in_the_language_of_its_column() -> None:
    found = read_neutral_sentences()
    assert [one.en for one in found if detect_language(one.en) == "fr"] == []
    assert [one.fr for one in found if detect_language(one.fr) == "en"] == []


def test_a_pair_is_read_in_both_languages() -> None:
    assert read_neutral_sentences()[0] == NeutralSentence(
        "How long should bread dough rest before it goes into the oven?",
        "Combien de temps la pâte à pain doit-elle reposer avant de passer au four ?",
        is_question=True,
    )


@pytest.mark.parametrize("part", ["questions", "passages"])
def test_no_sentence_is_taken_from_a_question_set(part: str) -> None:
    root = need_eval_data()
    sets = [question_sets.read_set(name, root=root) for name in question_sets.list_sets(root)]
    taken = {run for one in sets for item in getattr(one, part) for run in list_runs(item.text)}
    ours = [text for one in read_neutral_sentences() for text in (one.en, one.fr)]
    assert [text for text in ours if list_runs(text) & taken] == []
