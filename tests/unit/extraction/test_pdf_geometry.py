"""Turned pages, the boxes on them, and which way most text runs."""

from __future__ import annotations

import math

import pytest

from functions.core.extraction.pdf.geometry import Frame, Matrix, count_turns, find_level_turns, stands_on, turn

PAGE = (10.0, 20.0, 110.0, 220.0)
WORD = (30.0, 50.0, 70.0, 60.0)
QUARTER = math.pi / 2


@pytest.mark.parametrize(
    ("turns", "box"),
    [
        (0, (20.0, 160.0, 60.0, 170.0)),
        (1, (30.0, 20.0, 40.0, 60.0)),
        (2, (40.0, 30.0, 80.0, 40.0)),
        (3, (160.0, 40.0, 170.0, 80.0)),
    ],
)
def test_a_frame_measures_from_the_upper_left_corner_of_the_turned_page(
    turns: int, box: tuple[float, float, float, float]
) -> None:
    frame = Frame.of(PAGE, turns)
    assert (frame.place(WORD), frame.place_all([WORD, WORD])) == (box, [box, box])


def test_a_frame_turned_sideways_is_as_wide_as_the_page_is_high() -> None:
    assert [Frame.of(PAGE, turns).size for turns in range(4)] == [(100, 200), (200, 100)] * 2


def test_a_turn_is_made_about_the_origin_of_page_space() -> None:
    assert [turn((1, 2, 3, 5), turns) for turns in range(4)] == [
        (1, -5, 3, -2),
        (2, 1, 5, 3),
        (-3, 2, -1, 5),
        (-5, -3, -2, -1),
    ]


def test_characters_vote_for_the_turns_that_make_them_upright_and_those_without_an_angle_do_not() -> None:
    assert count_turns([0.0, 0.01, 1.02 * QUARTER, 2 * QUARTER, 3 * QUARTER, -1.0]) == {0: 2, 3: 1, 2: 1, 1: 1}
    assert count_turns([QUARTER] * 3) == {3: 3}
    assert count_turns([]) == {}


@pytest.mark.parametrize(
    ("angles", "turns"),
    [([0.0] * 7 + [QUARTER] * 3, 0), ([0.0] * 6 + [QUARTER] * 4, 1), ([-1.0, -1.0], 1), ([], 1)],
    ids=["clear", "not clear", "unknown", "no text"],
)
def test_text_is_level_after_the_turns_of_a_clear_majority(angles: list[float], turns: int) -> None:
    assert find_level_turns(angles, default=1) == turns


def test_a_matrix_within_another_applies_both_one_after_the_other() -> None:
    inner, outer = Matrix(2, 0, 0, 2, 5, 7), Matrix(0, 1, -1, 0, 100, 0)
    assert inner.within(outer).place_rectangle(WORD) == outer.place_rectangle(inner.place_rectangle(WORD))
    assert (inner.scale, outer.scale) == (2, 1)


def test_a_rectangle_stands_on_the_area_that_contains_its_middle() -> None:
    assert stands_on(WORD, (0, 0, 51, 56))
    assert not stands_on(WORD, (0, 0, 49, 56))
