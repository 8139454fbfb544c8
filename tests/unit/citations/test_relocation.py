"""Quotes of earlier answers, searched on pages that may have been reindexed."""

from __future__ import annotations

import pytest

from functions.core.citations import relocation

QUOTE = "Revenue rose by 5 % in 2003."


def find(quote: str, start: int, *texts: str, page: int = 1) -> tuple[int, str] | None:
    """The page and the words found again; `texts` are pages 1, 2, …"""
    pages = {number: relocation.StoredPage(text) for number, text in enumerate(texts, 1)}
    location = relocation.relocate_quote(quote, page, start, pages)
    return None if location is None else (location.page, texts[location.page - 1][location.start : location.end])


def test_the_nearest_of_equal_quotes_is_found() -> None:
    """LIB-8"""
    text = f"{QUOTE} {QUOTE} {QUOTE}"
    pages = {1: relocation.StoredPage(text)}
    for start in (0, 29, 58):
        assert relocation.relocate_quote(QUOTE, 1, start + 3, pages) == relocation.QuoteLocation(
            1, start, start + len(QUOTE)
        )


def test_a_quote_that_moved_to_an_adjacent_page_is_found() -> None:
    """LIB-8"""
    assert find(QUOTE, 0, "Intro.", "Nothing.", f"Now here: {QUOTE}", page=2) == (3, QUOTE)
    assert find(QUOTE, 0, QUOTE, "Nothing.", QUOTE, page=2) == (1, QUOTE)
    assert find(QUOTE, 0, QUOTE, "Nothing.", "Nothing.", page=3) is None


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("Revenue rose\nby 5 % in 2003. More.", "Revenue rose\nby 5 % in 2003."),
        ("The reve-\nnue. Reve-\nnue rose by 5\u00a0% in 2003.", "Reve-\nnue rose by 5\u00a0% in 2003."),
    ],
)
def test_different_line_breaks_do_not_matter(page: str, words: str) -> None:
    """LIB-8"""
    assert find(QUOTE, 0, page) == (1, words)


@pytest.mark.parametrize("page", ["Revenue fell by 5 % in 2003.", "", "Revenue rose by 55 % in 2003."])
def test_different_words_are_not_mistaken_for_the_quote(page: str) -> None:
    """LIB-8"""
    assert find(QUOTE, 0, page) is None


def test_a_short_quote_is_found_only_if_unique_and_whole() -> None:
    """LIB-8"""
    assert find("Yes.", 90, "They said: Yes.") == (1, "Yes.")
    assert find("Yes.", 90, "Yes. Or yes? Yes.") is None
    assert find("art", 0, "The party starts.") is None
    assert find("Yes.", 0, "No.", "Yes.") is None
