"""What may name a document, and what a file name says."""

from __future__ import annotations

import pytest

from functions.core.text import titles


@pytest.mark.parametrize(
    "text",
    [
        "On Rivers",
        "Annual Report 2007",
        "2019 Annual Report",
        "May 2019 results",
        "THE BOEING COMPANY",
        "Form follows function",
        "Section 5 of the Act",
        "Les Misérables",
        "IFRS 16",
    ],
)
def test_a_text_that_names_a_document_is_a_title(text: str) -> None:
    """ING-3"""
    assert titles.is_title(text)


@pytest.mark.parametrize(
    "text",
    [
        "FORM 10-K",
        "UNITED STATES\nSECURITIES AND EXCHANGE COMMISSION\nWashington, D.C. 20549",
        "Current Report Pursuant to Section 13 or 15(d)",
        "logo.eps",
        "Microsoft Word - x.doc",
        "cost-20200830",
        "tm2028925-1_10k - none - 15.796875s",
        "untitled",
        "Table of Contents",
        "Table des matières",
        "PART II",
        "Appendix 1",
        "2. BACKGROUND",
        "Annual Report",
        "Communiqué de presse",
        "December 31, 2019",
        "31 décembre 2019",
        "Strictly confidential",
        "• a number of rebates",
        "- 12 -",
    ],
)
def test_what_stands_in_the_place_of_a_title_is_none(text: str) -> None:
    """ING-3"""
    assert not titles.is_title(text)


@pytest.mark.parametrize(
    ("stem", "words"),
    [
        ("acme_2019_annual_report", "Acme 2019 Annual Report"),
        ("3M_2018_10K", "3M 2018 10K"),
        ("BESTBUY_2024Q2_10Q", "Bestbuy 2024 Q2 10Q"),
        ("AcmeRapport2021", "Acme Rapport 2021"),
        ("bail_commercial_v2", "Bail Commercial"),
        ("0001193125-18-000123", ""),
        ("d4f6a8b2c1e9", ""),
        ("IMG_20200101", ""),
        ("scan0012", ""),
        ("eu-dev-01", ""),
    ],
)
def test_a_file_name_says_its_words_and_years(stem: str, words: str) -> None:
    """RET-1"""
    assert titles.name_of_file(stem) == words


def test_a_name_is_repeated_only_for_words_that_are_new() -> None:
    joined = titles.join_names("Annual report", "", "Report (annual)", "acme 2019 annual report")
    assert joined == "Annual report – acme 2019 annual report"
