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


@pytest.mark.parametrize(
    ("text", "lang"), [("Who built it?", "en"), ("Qui l'a construite, cette tour ?", "fr"), ("NOx 2010", None)]
)
def test_a_language_is_certain_only_if_words_point_to_it(text: str, lang: str | None) -> None:
    """LANG-1"""
    assert languages.detect_certain_language(text) == lang


@pytest.mark.parametrize(
    ("lang", "other", "are_foreign"),
    [("en", "fr", True), ("fr", "en", True), ("fr", "fr", False), ("fr", "simple", False)],
)
def test_only_english_and_french_are_foreign_to_each_other(lang: str, other: str, are_foreign: bool) -> None:
    """LANG-4"""
    assert (languages.are_foreign(lang, other), languages.are_foreign(other, lang)) == (are_foreign, are_foreign)


@pytest.mark.parametrize(
    ("query", "lang"),
    [
        ("taux de chômage Finlande 2000", "fr"),
        ("Chiffre d'affaires 2019", "fr"),
        ("émissions d’ammoniac", "fr"),
        ("cas de brucellose Espagne", "fr"),
        ("rate of return", "en"),
        ("unemployment Finland 2000", "en"),
        ("De Gaulle biography", "en"),
        ("Charles de Gaulle biography", "en"),
        ("L'Oréal revenue", "en"),
        ("café opening hours", "en"),
        ("2019", "en"),
        ("Wie hoch ist die Miete?", "simple"),
    ],
)
def test_one_small_word_tells_the_language_of_a_few_keywords(query: str, lang: str) -> None:
    """LANG-1"""
    assert languages.guess_language(query) == lang
