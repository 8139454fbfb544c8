"""Telling English and French apart."""

from __future__ import annotations

import json

import pytest

from functions.core import models
from functions.core.text import languages
from tests.support import requirements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the capital of France?", "en"),
        ("Where is the café of Zoë Müller?", "en"),
        ("Quelle est la capitale de la France ?", "fr"),
        ("Qu’est-ce que l’intelligence artificielle ?", "fr"),
        ("RÉSUMÉ DU RAPPORT SUR LES ÉCOLES", "fr"),
        ("¿Cuál es la capital de España?", "simple"),
        ("Was ist die Hauptstadt von Frankreich?", "simple"),
        ("Где находится столица Франции?", "simple"),
        ("フランスの首都はどこですか", "simple"),
    ],
)
def test_the_language_of_a_sentence_is_detected_by_its_function_words(text: str, expected: str) -> None:
    """LANG-1"""
    assert languages.detect_language(text, default="en") == expected
    assert languages.detect_language(text, default="fr") == expected


@pytest.mark.parametrize("text", ["", "42", "GDP 2019", "Paris", "a b c"])
@pytest.mark.parametrize("default", ["en", "fr", "simple"])
def test_too_few_words_give_the_default(text: str, default: models.Lang) -> None:
    """CHAT-7"""
    assert languages.detect_language(text, default=default) == default


def test_accents_may_be_written_as_combining_marks() -> None:
    assert languages.detect_language("Les e\u0301le\u0300ves e\u0301taient la\u0300", default="en") == "fr"


@pytest.mark.parametrize(("data", "expected"), [("pages_fr", "fr"), ("pages_en", "en")])
def test_the_language_of_real_questions_is_detected_against_a_wrong_default(data: str, expected: models.Lang) -> None:
    """LANG-1"""
    lines = (requirements.need_eval_data(data) / "queries.dev.jsonl").read_text("utf-8").splitlines()
    unlikely: models.Lang = "en" if expected == "fr" else "fr"
    found = [languages.detect_language(json.loads(line)["question"], default=unlikely) for line in lines]
    assert found.count(expected) >= 0.98 * len(found)
