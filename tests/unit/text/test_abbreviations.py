"""The abbreviations that a text defines."""

from __future__ import annotations

import pytest

from functions.core.text import abbreviations


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("We depreciate property, plant and equipment (“PP&E”).", {"PP&E": "property, plant and equipment"}),
        ("The European\nCentral Bank (ECB) said", {"ECB": "European Central Bank"}),
        ("la Banque centrale européenne (BCE)", {"BCE": "Banque centrale européenne"}),
        ("by gross domestic product (the “GDP”)", {"GDP": "gross domestic product"}),
        ("the Treaty on the Functioning of the Union (TFU)", {"TFU": "Treaty on the Functioning of the Union"}),
        ("extravehicular activity (EVA)", {"EVA": "extravehicular activity"}),
        ("DPO (days payable outstanding) fell", {"DPO": "days payable outstanding"}),
        ("iron (III), see Note (A), a firm (the “Company”), Smith (UK), sales rose (Q3)", {}),
    ],
)
def test_an_abbreviation_is_found_with_the_words_that_it_stands_for(text: str, found: dict[str, str]) -> None:
    """RET-2"""
    assert abbreviations.find_abbreviations(text) == found


def test_the_other_form_is_listed_where_only_one_is() -> None:
    known = {"PP&E": "property, plant and equipment", "ECB": "European Central Bank", "EU": "European Union"}
    text = "PP&E of the European\nCentral Bank, European Union (EU)"
    assert abbreviations.list_other_forms(text, known) == ["property, plant and equipment", "ECB"]


def test_the_first_definition_of_an_abbreviation_counts() -> None:
    known = abbreviations.learn({"ECB": "European Central Bank"}, "the Every Cat Bites (ECB) and the Swiss Bank (SB)")
    assert known == {"ECB": "European Central Bank", "SB": "Swiss Bank"}
