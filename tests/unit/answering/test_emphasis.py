"""The figure or date of a quoted sentence or row that is shown in bold."""

from __future__ import annotations

import pytest

from functions.core.answering.extracts import choice
from functions.core.citations.cite import cite_extracts
from tests.support.fakes.search_hits import make_hit

TABLE = "| Year | Sales | Staff |\n| --- | --- | --- |\n| 2019 | 1,250 | 31 |\n| 2020 | 1,400 | 38 |"


def emphasis_of(question: str, *texts: str) -> list[str]:
    hits = [make_hit(text, document=f"doc {at}") for at, text in enumerate(texts)]
    return [quotation.emphasis for quotation in choice.extract_answer(question, hits)]


@pytest.mark.parametrize(
    ("question", "sentence", "emphasis"),
    [
        ("When was the harbour rebuilt?", "The harbour was rebuilt on 4 May 1921 after 3 storms.", "4 May 1921"),
        ("Quand le port a-t-il été rebâti ?", "Le port a été rebâti le 1er mai 1921.", "1er mai 1921"),
        ("What percentage of homes is heated with wood?", "Of 90 homes, 12.5 % are heated with wood.", "12.5 %"),
        ("How much did the new boiler cost?", "The new boiler of 2019 cost €1.2 million.", "€1.2 million"),
        ("Combien d'élèves compte l'école ?", "En 2012, l'école compte 1 204 élèves.", "1 204"),
        ("How many people work in the mill?", "In 1998 the mill had 3 floors; 42 people work there.", "42"),
    ],
)
def test_the_only_figure_of_the_form_that_is_asked_for_is_emphasized(
    question: str, sentence: str, emphasis: str
) -> None:
    """CHAT-6"""
    assert emphasis_of(question, sentence) == [emphasis]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("When was the harbour rebuilt?", "The harbour was built in 1921 and rebuilt in 1946."),
        ("When was the harbour of 1921 rebuilt?", "The harbour of 1921 was rebuilt soon."),
        ("How many people work in the mill?", "The mill of the people has 3 floors."),
        ("Who rebuilt the harbour?", "The harbour was rebuilt by Ada Byron in 1946."),
        ("How much did the boiler cost?", "The boiler cost 100 EUR, and 120 EUR and 100 EUR with its pipes."),
        ("Why was the harbour rebuilt?", "The harbour was rebuilt in 1946 for 3 reasons."),
    ],
)
def test_nothing_is_emphasized_where_several_or_none_could_be_the_answer(question: str, sentence: str) -> None:
    """CHAT-6"""
    assert emphasis_of(question, sentence) == [""]


def test_the_cell_below_the_column_that_is_asked_for_is_emphasized() -> None:
    """CHAT-6"""
    assert emphasis_of("How many staff were there in 2019?", TABLE)[0] == "31"


def test_figures_that_stand_twice_in_a_quotation_are_not_emphasized() -> None:
    """CHAT-6"""
    text = "In 1946 the mill burned. It was rebuilt in 1946."
    assert emphasis_of("When was the mill rebuilt?", text) == [""]


def test_only_the_best_quotation_is_emphasized() -> None:
    """CHAT-6"""
    first, second = (f"The harbour was rebuilt in {year}." for year in (1921, 1946))
    assert emphasis_of("When was the harbour rebuilt?", first, second) == ["1921", ""]


def test_each_question_in_a_question_has_its_emphasis() -> None:
    """CHAT-6"""
    texts = ("The harbour was rebuilt in 1921.", "The mill burned on 4 May 1946.")
    assert emphasis_of("When was the harbour rebuilt, and when did the mill burn?", *texts) == ["1921", "4 May 1946"]


def test_the_section_of_an_answer_has_the_emphasis_of_its_quotation() -> None:
    """CHAT-6, API-1"""
    quotations = choice.extract_answer("When was it rebuilt?", [make_hit("It was rebuilt in 1921.")])
    sections, _ = cite_extracts(quotations)
    assert [(section.text, section.emphasis) for section in sections] == [("It was rebuilt in 1921.", "1921")]
