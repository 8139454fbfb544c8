"""Figures of an answer that its passages do not hold, in both languages and every notation."""

from __future__ import annotations

import pytest

from functions.core import figures


def missing(answer: str, passage: str) -> tuple[str, ...]:
    return figures.find_unsupported(answer, figures.find_values(passage))


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Il vaut 1 234,5 €.", "It is worth 1,234.5 euros."),
        ("It is worth €1,234.50.", "Il vaut 1\u202f234,5 €."),
        ("10'000 francs", "10\u00a0000 francs"),
        ("1,234,567 tons", "1.234.567 Tonnen"),
        ("1234 tons", "1.234 tons"),
        ("12.5 %", "12,5 pour cent"),
        ("12.5 %", "12.500 %"),
        ("0,125", "0.125"),
        ("10–12 jours", "de 10 à 12 jours"),
        ("from 10 to 12 days", "10-12 days"),
        ("2019–20", "l'exercice 2019-2020"),
        ("2019-2020", "the year 2019/20"),
        ("le 3e étage", "the 3rd floor"),
        ("the 3rd floor", "le troisième étage"),
        ("1er mai", "1 mai"),
        ("17 mai 2019", "2019-05-17"),
        ("2019-05-17", "May 17, 2019"),
        ("17/05/2019", "le 17 mai 2019"),
        ("05/17/2019", "17 May 2019"),
        ("17.05.2019", "17/05/19"),
        ("−5 °C", "-5 °C"),
        ("-5 °C", "moins 5 degrés"),
        ("-1,234", "(1 234)"),
        ("a fall of 5 %", "-5 %"),
        ("-10 to -5", "-10--5"),
        ("3,2 millions d'euros", "3 200 000 €"),
        ("12 000 000 €", "12 M€"),
        ("25 et 97", "vingt-cinq et quatre-vingt-dix-sept"),
        ("4 kW", "four kilowatts"),
        ("12 kg", "douze kilos"),
        ("345 at Lyon", "Lyon 12 345 678"),
        ("12 345 678", "Lyon 12 345 678"),
        ("3, 2 and 1", "3,2,1"),
        ("version 4.2.1", "4.2.1"),
        ("١٢", "12"),
    ],
)
def test_another_notation_of_a_figure_is_the_same_figure(answer: str, passage: str) -> None:
    assert missing(answer, passage) == ()


@pytest.mark.parametrize(
    ("answer", "passage", "found"),
    [
        ("42 % of them", "41 % of them", ("42 %",)),
        ("Il vaut 1\u202f234,5\u00a0€.", "1 235,5 €", ("1\u202f234,5\u00a0€",)),
        ("It cost $1,000.", "It cost $1,500.", ("$1,000",)),
        ("10 %", "10,5 %", ("10 %",)),
        ("10.5 %", "105 %", ("10.5 %",)),
        ("-5 °C", "5 °C", ("-5 °C",)),
        ("10-12 jours", "de 10 à 13 jours", ("12",)),
        ("2019-05-17", "17 June 2019", ("2019-05-17",)),
        ("in 2019", "in 2018 and 2020", ("2019",)),
        ("the 4th of 5kg", "the 3rd of 6 kg", ("4th", "5kg")),
        ("3.2 million", "3.1 million", ("3.2 million",)),
        ("7 %, then 7 %", "", ("7 %",)),
        ("mid-2019", "", ("2019",)),
    ],
)
def test_a_changed_figure_is_named_as_it_stands(answer: str, passage: str, found: tuple[str, ...]) -> None:
    assert missing(answer, passage) == found


@pytest.mark.parametrize(
    "text",
    [
        "1. First\n2) Second\n(3) Third",
        "- 1. First\n- **2.** Second\n**3. Third**",
        "## 2.1 Scope\n### 3) Method",
        "First (1), then (2, 3).",
        "CO2, H1N1, Q3, v1.2 and A320",
    ],
)
def test_ordinals_of_lists_and_headings_and_names_are_no_figures(text: str) -> None:
    assert missing(text, "") == ()


def test_only_the_number_of_a_list_item_is_passed_over() -> None:
    assert missing("1. It rose by 7 % in\n2019. Later\n5.5 % more", "") == ("7 %", "2019", "5.5 %")
