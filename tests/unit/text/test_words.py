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
def test_forms_of_a_word_have_the_same_key(one: str, other: str) -> None:
    assert words.keys(one) == words.keys(other) != frozenset()


@pytest.mark.parametrize(("one", "other"), [("14.2", "142"), ("2003", "2004"), ("house", "horse"), ("1.5", "15")])
def test_different_words_and_numbers_have_different_keys(one: str, other: str) -> None:
    assert words.keys(one) != words.keys(other)


def test_function_words_have_no_key() -> None:
    assert words.keys("What is the of in? Quel est le de la dans?") == frozenset()


def test_a_word_broken_at_a_line_end_has_the_right_offsets() -> None:
    text = "The infor-\nmation was new"
    assert [text[word.start : word.end] for word in words.content_words(text)] == ["infor-\nmation", "new"]


def test_names_and_numbers_are_what_a_translation_keeps() -> None:
    """LANG-4"""
    found = words.names_and_numbers("Les usines de Lyon ont émis 1 234,5 tonnes selon Eurostat.")
    assert found == words.keys("Lyon 1,234.5 Eurostat")
