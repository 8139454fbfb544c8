from __future__ import annotations

from dataclasses import replace

import pytest

from functions.core.retrieval.context import choose_context, order_for_reading
from functions.core.settings import Settings
from tests.support.fakes.search_hits import make_hit

REPORT = (
    "In the year under review the company opened new branches in the north and closed its old warehouse at the harbour."
    " Sales rose by 12 percent to 340 million, the number of employees by a tenth. The board thanks everybody who has"
    " worked for this success and looks forward to the years that are to come, in which it wants to grow further."
)


def test_one_source_has_a_limited_number_of_passages() -> None:
    """RET-4"""
    hits = [make_hit(f"text {n}", document=f"d{n // 4}", index=n, page=n + 1) for n in range(12)]
    chosen = choose_context(hits, Settings(passages_per_source=2, context_passages=5), 100)
    assert [(h.source_id, h.chunk_index) for h in chosen] == [("d0", 0), ("d0", 1), ("d1", 4), ("d1", 5), ("d2", 8)]


@pytest.mark.parametrize(("source_count", "of_the_best"), [(0, 8), (1, 8), (2, 7), (4, 5), (5, 4), (1000, 4)])
def test_among_few_sources_one_may_have_more_passages(source_count: int, of_the_best: int) -> None:
    """RET-4: one place is left for each of the others."""
    hits = [make_hit(f"text {n}", document="best", index=n, page=n + 1) for n in range(20)]
    assert len(choose_context(hits, Settings(passages_per_source=4, context_passages=8), source_count)) == of_the_best


def test_a_passage_mostly_inside_a_better_one_is_dropped() -> None:
    """RET-4"""
    whole = make_hit("a" * 100, index=0)
    inside = replace(
        make_hit("c" * 60, index=1), start_offset=whole.start_offset + 30, end_offset=whole.start_offset + 90
    )
    beside = replace(make_hit("b" * 60, index=2), start_offset=whole.end_offset - 20, end_offset=whole.end_offset + 40)
    assert choose_context([whole, inside, beside], Settings(), 100) == (whole, beside)


@pytest.mark.parametrize(
    "text",
    [
        REPORT,
        REPORT.upper().replace(" ", "\n").replace(",", ";"),
        REPORT.replace("harbour", "port"),
        "Dear reader, " + REPORT,
    ],
    ids=["same", "typography", "one word", "salutation"],
)
def test_near_duplicates_of_two_documents_are_included_once(text: str) -> None:
    """RET-4"""
    one, other = make_hit(REPORT, document="d1"), make_hit(text, document="d2")
    assert choose_context([one, other], Settings(), 100) == (one,)


@pytest.mark.parametrize(
    "text",
    [
        REPORT.replace("12 percent", "13 percent"),
        REPORT.replace("340 million", "34O million"),
        REPORT[: len(REPORT) // 2],
        "東京は日本の首都であり、" + "人口は約一千四百万人である。",
    ],
    ids=["another figure", "no figure", "half", "another language"],
)
def test_passages_that_differ_in_a_number_or_in_many_words_are_both_included(text: str) -> None:
    """RET-4"""
    one, other = make_hit(REPORT, document="d1"), make_hit(text, document="d2")
    assert choose_context([one, other], Settings(), 100) == (one, other)


def test_texts_without_spaces_are_compared_by_their_characters() -> None:
    """RET-4"""
    text = "東京は日本の首都であり、人口は約一千四百万人である。" * 3
    one, other = make_hit(text, document="d1"), make_hit(text.replace("、", ""), document="d2")
    assert choose_context([one, other], Settings(), 100) == (one,)
    short = make_hit("大阪は西日本の中心である。", document="d3")
    assert choose_context([one, short], Settings(), 100) == (one, short)


def test_passages_of_one_or_two_words_are_duplicates_only_when_equal() -> None:
    hits = [make_hit(text, document=text) for text in ("Oslo", "oslo.", "Oslo Bergen", "Bergen", "...")]
    assert [hit.text for hit in choose_context(hits, Settings(), 100)] == ["Oslo", "Oslo Bergen", "Bergen", "..."]


def test_consecutive_passages_are_placed_side_by_side_in_order() -> None:
    """RET-4"""
    ranked = [("a", 5), ("b", 1), ("a", 9), ("a", 6), ("c", 3), ("a", 4), ("b", 3)]
    hits = [make_hit(f"{document}{index}", document=document, index=index) for document, index in ranked]
    assert [hit.text for hit in order_for_reading(hits)] == ["a4", "a5", "a6", "b1", "a9", "c3", "b3"]
    assert order_for_reading([]) == ()
