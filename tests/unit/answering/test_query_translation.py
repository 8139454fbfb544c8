"""Queries in the library's other language: the request, and which replies of a model are taken for a translation."""

from __future__ import annotations

import pytest

from functions.core import errors, models
from functions.core.answering import query_translation, short_requests
from functions.core.answering.query_translation import Translation
from tests.unit.answering.test_follow_ups import Model

QUERY = "Quel était le chiffre d'affaires de Dupont en 2019 ?"
TRANSLATED = "What was the revenue of Dupont in 2019?"


def test_a_translation_reports_its_language_and_usage() -> None:
    """LANG-4, OPS-3"""
    found = query_translation.translate(QUERY, "en", Model("What was the revenue ", "of Dupont in 2019?"))
    assert found == Translation(TRANSLATED, "en", models.Usage(40, 9, "fake"))
    assert (found.versions, Translation().versions) == (((TRANSLATED, "en"),), ())


@pytest.mark.parametrize(("lang", "name"), [("en", "English"), ("fr", "French")])
def test_the_request_names_the_language_and_has_the_query_on_one_line(lang: models.Lang, name: str) -> None:
    """LANG-4"""
    rules, request = query_translation.build_messages("Who\nbuilt it?\n", lang)
    assert (f"Write the query in {name}" in rules.content, request.content) == (
        True,
        "Query: Who built it?\nTranslation:",
    )


@pytest.mark.parametrize(
    "reply",
    [
        TRANSLATED,
        f"\n {TRANSLATED}\nI kept the name Dupont.",
        f'"{TRANSLATED}"',
        f"« {TRANSLATED} »",
        f"Translation: {TRANSLATED}",
        f"**English translation:** {TRANSLATED}",
        f"Traduction en anglais : {TRANSLATED}",
        f"In English: {TRANSLATED}",
        f"Here is the translation:\n\n{TRANSLATED}",
        f"<think>They ask for\nthe revenue of 2018.</think>\n{TRANSLATED}",
    ],
)
def test_the_translation_is_extracted_from_its_wrapping(reply: str) -> None:
    """LANG-4"""
    assert query_translation.read_reply(reply, QUERY, "en") == TRANSLATED


@pytest.mark.parametrize(
    ("query", "lang", "reply"),
    [
        (
            "How many euros were spent between 2010 and 2012?",
            "fr",
            "Combien d'euros ont été dépensés entre 2010 et 2012 ?",
        ),
        ("Which plants emitted 1,234.5 tonnes?", "fr", "Quelles usines ont émis 1 234,5 tonnes ?"),
        ("Que dit le bail de trois mois ?", "en", "What does the lease of 3 months say?"),
        ("Quelle part des 5,2 milliards ?", "en", "Which share of the 5.2 billion?"),
        ("Que s'est-il passé le 31 mars 2020 ?", "en", "What happened on March 31, 2020?"),
        ("NOx emissions", "fr", "émissions de NOx"),
        ("Je ne peux pas payer mon loyer, que faire ?", "en", "I cannot pay my rent, what can be done?"),
    ],
)
def test_figures_may_be_written_as_the_language_writes_them(query: str, lang: models.Lang, reply: str) -> None:
    """LANG-4"""
    assert query_translation.read_reply(reply, query, lang) == reply


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("", id="nothing"),
        pytest.param("?!", id="no-word"),
        pytest.param(QUERY, id="the-query"),
        pytest.param("Quel était le revenu de Dupont pour l'année 2019 ?", id="other-language"),
        pytest.param("Was war der Umsatz von Dupont im Jahr 2019 und nicht der Gewinn?", id="third-language"),
        pytest.param("I'm sorry, I cannot translate what Dupont did in 2019.", id="refusal"),
        pytest.param("I do not know the revenue of 2019.", id="ignorance"),
        pytest.param("What was the revenue of Dupont?", id="year-lost"),
        pytest.param("What was the revenue of Dupont in 2018?", id="year-changed"),
        pytest.param("The revenue of Dupont in 2019 was 14 million.", id="answer"),
        pytest.param("Dupont 2019", id="too-short"),
        pytest.param(f"{TRANSLATED} " * 5, id="too-long"),
        pytest.param("<think>The query means the revenue of Dupont in 2019", id="thoughts-alone"),
        pytest.param('{"translation": "What was the revenue of Dupont in 2019?"}', id="json"),
        pytest.param("Here is the translation:", id="announcement-alone"),
        pytest.param("What was the revenue\0 of Dupont in 2019?", id="nul"),
        pytest.param("What was the revenue of Dupont in 2019? \ud83d", id="half-an-emoji"),
    ],
)
def test_a_reply_that_is_no_translation_of_the_query_is_ignored(reply: str) -> None:
    """LANG-4"""
    assert query_translation.read_reply(reply, QUERY, "en") is None


@pytest.mark.parametrize(
    "failure", [errors.ModelUnavailableError(), errors.ModelRateLimitedError(), errors.ModelRejectedError()]
)
def test_a_failing_model_translates_nothing(failure: errors.IbidError) -> None:
    """LANG-4"""
    assert query_translation.translate(QUERY, "en", Model(TRANSLATED, failure=failure)) == Translation()


def test_a_slow_translation_is_abandoned_and_its_tokens_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """LANG-4, OPS-3"""
    monkeypatch.setattr(short_requests, "TIME_LIMIT_SECONDS", -1.0)
    found = query_translation.translate(QUERY, "en", Model(TRANSLATED, " It"))
    assert found == Translation(usage=models.Usage(40, 9, "fake"))


def test_a_very_long_reply_is_abandoned() -> None:
    """LANG-4"""
    assert query_translation.translate(QUERY, "en", Model(TRANSLATED, "\n", "x" * 5000)).text is None


def test_a_long_query_is_not_sent_to_the_model() -> None:
    """LANG-4"""
    model = Model(TRANSLATED)
    assert query_translation.translate("Pourquoi ? " * 40, "en", model) == Translation()
    assert model.asked == []


def test_the_key_of_a_query_ignores_its_white_space() -> None:
    assert query_translation.hash_query(" Who\nbuilt it? ") == query_translation.hash_query("Who built it?")
    assert query_translation.hash_query("Who built it?") != query_translation.hash_query("Who built them?")
