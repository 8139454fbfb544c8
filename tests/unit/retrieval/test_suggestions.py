"""Suggested questions are read from passages, of different sources first, and ask for nothing known."""

from __future__ import annotations

import pytest

from functions.core.retrieval.suggestions import Passage, suggest_questions

TEXT = "Either party may end the lease at the end of a month by giving three months notice in writing."
ASKED = "What does “{}” say about “{}”?"


def make_passage(heading: str | None = "5. Notice period", text: str = TEXT, source: str = "lease.pdf") -> Passage:
    return Passage(source, heading, text, "en")


def test_a_heading_becomes_a_question_about_its_document() -> None:
    """WEB-3"""
    assert suggest_questions([make_passage()], "en") == [ASKED.format("lease.pdf", "Notice period")]
    assert suggest_questions([make_passage("REPAIRS")], "fr") == ["Que dit « lease.pdf » à propos de « Repairs » ?"]


def test_a_question_that_the_document_answers_itself_is_taken_as_it_is() -> None:
    text = f"Who may end the lease? {TEXT}"
    assert suggest_questions([make_passage(None, text)], "en") == ["Who may end the lease?"]
    assert suggest_questions([make_passage(None, text)], "fr") == []


def test_sources_take_turns() -> None:
    """WEB-3"""
    passages = [make_passage(heading) for heading in ("Rent", "Deposit", "Repairs")]
    passages.append(make_passage("Chimney", source="house.pdf"))
    asked = [("lease.pdf", "Rent"), ("house.pdf", "Chimney"), ("lease.pdf", "Deposit")]
    assert suggest_questions(passages, "en") == [ASKED.format(*one) for one in asked]


@pytest.mark.parametrize(
    "heading",
    [
        None,
        "",
        "Introduction",
        "Table of contents",
        "7.",
        "1",
        "2024",
        "x" * 71,
        "Thanks!",
        "4.1. Purpose",
        "Specific Options",
        "Objectif",
    ],
)
def test_a_heading_that_says_nothing_becomes_no_question(heading: str | None) -> None:
    assert suggest_questions([make_passage(heading)], "en") == []


def test_a_running_header_is_suggested_once_and_a_chapter_by_its_title() -> None:
    """WEB-3"""
    passages = [make_passage(f"Chapter 5. Checkbook {page}") for page in (87, 88)]
    assert suggest_questions(passages, "en") == [ASKED.format("lease.pdf", "Checkbook 87")]


def test_what_was_asked_is_not_suggested_again() -> None:
    passages = [make_passage("Notice period"), make_passage("Periods of notice"), make_passage("Deposit")]
    assert suggest_questions(passages, "en", "Which notice period ends it?") == [ASKED.format("lease.pdf", "Deposit")]
