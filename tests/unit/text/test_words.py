from __future__ import annotations

import pytest

from functions.core.text import words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("studies", "study"),
        ("étudiants", "etudiant"),
        ("dépenses", "dépense"),
        ("infor-\nmation", "information"),
        ("co\u00adoperation", "cooperation"),
        ("1,234.5", "1 234,5"),
        ("10\u202f000", "10000"),
        ("14.2", "14,2"),
        ("œuvre", "oeuvres"),
    ],
)
def test_forms_of_a_word_are_the_same_word(one: str, other: str) -> None:
    assert words.keys(one) == words.keys(other) != frozenset()


@pytest.mark.parametrize(("one", "other"), [("14.2", "142"), ("2003", "2004"), ("house", "horse"), ("1.5", "15")])
def test_other_words_and_figures_stay_apart(one: str, other: str) -> None:
    assert words.keys(one) != words.keys(other)


def test_function_words_carry_no_meaning() -> None:
    assert words.keys("What is the of in? Quel est le de la dans?") == frozenset()


def test_a_word_knows_its_place_also_when_a_line_end_broke_it() -> None:
    text = "The infor-\nmation was new"
    assert [text[word.start : word.end] for word in words.content_words(text)] == ["infor-\nmation", "new"]
