"""Which questions ask several things, what each part is searched as, and which ask for all of something."""

from __future__ import annotations

import pytest

from functions.core.retrieval.question_forms import asks_for_all, split_question


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "When was the Eiffel Tower built and who designed it?",
            ("When was the Eiffel Tower built", "who designed it (Eiffel Tower)?"),
        ),
        (
            "Who founded Normandy? When did they arrive in France?",
            ("Who founded Normandy?", "When did they arrive in France (Normandy)?"),
        ),
        ("What is the rent and in which month is it due?", ("What is the rent", "in which month is it due (rent)?")),
        ("What is the rent, and how much is the deposit?", ("What is the rent", "how much is the deposit?")),
        (
            "Quelle est la capitale du Canada et quelle est la monnaie du Japon ?",
            ("Quelle est la capitale du Canada", "quelle est la monnaie du Japon ?"),
        ),
        (
            "Combien de salariés compte Alstom, et où sont-ils employés ?",
            ("Combien de salariés compte Alstom", "où sont-ils employés (Alstom)?"),
        ),
        (
            "Who signed the lease and when did it start and what is the rent?",
            ("Who signed the lease", "when did it start (signed lease)?", "what is the rent?"),
        ),
    ],
)
def test_a_question_that_asks_several_things_has_a_part_for_each(question: str, parts: tuple[str, ...]) -> None:
    """RET-13"""
    assert split_question(question) == parts


@pytest.mark.parametrize(
    "question",
    [
        "When does the lease end?",
        "How and why did the reactor fail?",
        "What are the capital and the population of France?",
        "Who is the man who came and who left?",
        "Quel est le traité qui lie la France et qui fut signé en 1920 ?",
        "The lease began in 2019. When does it end?",
        "Who came and who left and who stayed and who paid?",
        "",
    ],
)
def test_a_question_that_asks_one_thing_or_too_many_is_searched_as_a_whole(question: str) -> None:
    """RET-13"""
    assert split_question(question) == ()


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("How many contracts end in 2027?", True),
        ("List all suppliers in Lyon.", True),
        ("Please list the tenants", True),
        ("Which are all the sites with a boiler?", True),
        ("Give me a list of the risks", True),
        ("Combien de contrats prennent fin en 2027 ?", True),
        ("Liste tous les fournisseurs", True),
        ("Donnez-moi la liste des sites.", True),
        ("Quels sont tous les sites équipés ?", True),
        ("When does the lease end?", False),
        ("How much is the deposit?", False),
        ("Who is on the list of suppliers?", False),
        ("Combien de temps dure le bail ?", False),
        ("Quels sont les loyers ?", False),
    ],
)
def test_questions_for_all_or_the_number_of_something_are_told_apart(question: str, asks: bool) -> None:
    """CHAT-13"""
    assert asks_for_all(question) is asks
