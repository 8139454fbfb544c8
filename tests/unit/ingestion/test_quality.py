from __future__ import annotations

from typing import Any

import pytest

from functions.core.ingestion.quality import Quality, rate

CLEAN = {"words": 900, "unlikely_words": 0.03, "broken_sentences": 0.4, "split_words": 0.0, "garbled_pages": []}


def rate_report(**found: Any) -> Quality:
    """The quality of a clean document of ten pages, except for what was found."""
    health = {
        "text": CLEAN,
        "ocr": {"pages": 2, "confidence": 94.0},
        "self_retrieval": {"sentences": 10, "found": 10, "score": 1.0},
        "warnings": {"hidden_text": [4]},
        "pages_without_text": [10],
        "chunks": 40,
        "chunks_not_embedded": 0,
    }
    return rate(health | found, page_count=10)


def test_a_clean_document_is_good() -> None:
    """LIB-10"""
    assert rate_report() == Quality("good", {})
    assert rate_report(text=None, ocr=None, self_retrieval=None) == Quality("good", {})


@pytest.mark.parametrize(
    ("name", "look", "bad"),
    [
        ("unlikely_words", {"text": CLEAN | {"unlikely_words": 0.12}}, {"text": CLEAN | {"unlikely_words": 0.3}}),
        ("garbled_pages", {"text": CLEAN | {"garbled_pages": [3]}}, {"text": CLEAN | {"garbled_pages": [3, 4, 5]}}),
        ("broken_sentences", {"text": CLEAN | {"broken_sentences": 2}}, {"text": CLEAN | {"broken_sentences": 8}}),
        ("split_words", {"text": CLEAN | {"split_words": 4}}, {"text": CLEAN | {"split_words": 20}}),
        ("pages_without_text", {"pages_without_text": [1, 2, 3]}, {"pages_without_text": [1, 2, 3, 4, 5, 6]}),
        ("pages_not_read", {"warnings": {"ocr_failed": [2]}}, {"warnings": {"reading_failed": [2, 5, 6]}}),
        ("ocr_confidence", {"ocr": {"confidence": 80.0}}, {"ocr": {"confidence": 50.0}}),
        ("chunks_not_embedded", {"chunks_not_embedded": 1}, {"chunks_not_embedded": 20}),
    ],
)
def test_each_figure_can_make_a_document_one_to_look_at_or_a_bad_one(
    name: str, look: dict[str, Any], bad: dict[str, Any]
) -> None:
    """LIB-10"""
    assert (rate_report(**look), rate_report(**bad)) == (
        Quality("check", {name: "check"}),
        Quality("bad", {name: "bad"}),
    )


def test_sentences_that_are_not_found_are_a_reason_to_look_only() -> None:
    """LIB-10"""
    assert rate_report(self_retrieval={"score": 0.0}) == Quality("check", {"self_retrieval": "check"})


def test_the_worst_figure_decides() -> None:
    """LIB-10"""
    found = rate_report(ocr={"confidence": 80.0}, pages_without_text=list(range(1, 9)))
    assert found == Quality("bad", {"pages_without_text": "bad", "ocr_confidence": "check"})


def test_a_page_that_two_warnings_name_counts_once() -> None:
    """LIB-10"""
    assert rate_report(warnings={"ocr_failed": [1, 2], "page_unreadable": [1, 2]}).rating == "check"
