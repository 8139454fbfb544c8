"""Queries in the words of a page: the request, and which phrases of a model's reply are searched."""

from __future__ import annotations

import pytest

from functions.core import errors, models
from functions.core.answering import query_rephrasing
from functions.core.answering.query_rephrasing import Rephrasing
from tests.unit.answering.test_follow_ups import Model

QUERY = "What is the current ratio of Acme in 2022?"
PHRASES = ("total current assets", "total current liabilities 2022")


def test_a_rephrasing_reports_its_language_and_usage() -> None:
    """RET-12, OPS-3"""
    found = query_rephrasing.rephrase(QUERY, "en", Model("; ".join(PHRASES)))
    assert found == Rephrasing(tuple((phrase, "en") for phrase in PHRASES), models.Usage(40, 9, "fake"))


@pytest.mark.parametrize(("lang", "name"), [("en", "English"), ("fr", "French")])
def test_the_request_names_the_language_and_has_the_question_on_one_line(lang: models.Lang, name: str) -> None:
    """RET-12: line breaks of a question cannot begin a message of their own."""
    rules, request = query_rephrasing.build_messages("Who\nbuilt it?\n", lang)
    assert (f"phrases in {name}" in rules.content, request.content) == (True, "Question: Who built it?\nPhrases:")


@pytest.mark.parametrize(
    ("reply", "phrases"),
    [
        ("; ".join(PHRASES), PHRASES),
        ("Phrases: " + "; ".join(PHRASES) + "\nThese stand in a balance sheet.", PHRASES),
        ("<think>A ratio.</think>\ncash; cash ; inventories", ("cash", "inventories")),
        ("cash; inventories; receivables; payables", ("cash", "inventories", "receivables")),
        ("total current assets 2021; cash", ("cash",)),
        (f"{'cash ' * 25}; inventories", ("inventories",)),
        (f"{QUERY}; cash", ("cash",)),
        ("I cannot help with that; sorry", ()),
        ("total de l'actif courant et des dettes à court terme de la société", ()),
        ('{"phrases": ["cash"]}', ()),
        ("", ()),
    ],
)
def test_only_short_phrases_without_new_figures_are_searched(reply: str, phrases: tuple[str, ...]) -> None:
    """RET-12"""
    assert query_rephrasing.read_reply(reply, QUERY, "en") == phrases


def test_a_failing_model_leaves_the_query_alone() -> None:
    """RET-12"""
    failing = Model("cash", failure=errors.ModelUnavailableError("no"))
    assert query_rephrasing.rephrase(QUERY, "en", failing) == Rephrasing()


def test_a_long_query_is_not_sent_to_the_model() -> None:
    """RET-12"""
    model = Model("cash")
    assert (query_rephrasing.rephrase("What is it? " * 30, "en", model), model.asked) == (Rephrasing(), [])
