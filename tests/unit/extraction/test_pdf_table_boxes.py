"""Boxes of ruling lines: the same as pdfplumber's functions find, in less time."""

from __future__ import annotations

import random

import pytest
from pdfplumber import table as plumber

from functions.core.extraction.pdf.tables import boxes
from functions.core.extraction.pdf.tables.ruling_lines import SNAP, Rule


def make_rules(seed: int, count: int) -> list[Rule]:
    """Lines on a coarse grid, some slightly off it, some with gaps."""
    chance = random.Random(seed)
    rules = []
    for _ in range(count):
        start, length = 40 * chance.randrange(8), 40 * chance.randrange(1, 6)
        at = 40 * chance.randrange(10) + chance.choice((0.0, 0.0, 0.25, 1.5))
        rules.append(Rule(chance.random() < 0.5, at, start + chance.choice((0.0, 2.0, 8.0)), float(start + length)))
    return rules


def as_edges(rules: list[Rule]) -> list[boxes.Edge]:
    sizes = {"width": 0.0, "height": 0.0}
    return [boxes._as_edge(rule) | sizes for rule in rules]


@pytest.mark.parametrize("seed", range(10))
def test_rules_are_merged_as_pdfplumber_merges_them(seed: int) -> None:
    rules = make_rules(seed, 60)
    edges = as_edges(rules)
    for _ in range(2):  # after one pass pdfplumber leaves lines apart whose places differ in the last digit
        edges = plumber.merge_edges(edges, SNAP, SNAP, SNAP, SNAP)
    merged = as_edges(boxes.merge_rules(rules))
    sides = ("orientation", "x0", "x1", "top", "bottom")
    assert [[edge[side] for side in sides] for edge in merged] == [
        [pytest.approx(edge[side]) if side != "orientation" else edge[side] for side in sides] for edge in edges
    ]


@pytest.mark.parametrize("seed", range(10))
def test_loose_rules_are_sides_of_no_box(seed: int) -> None:
    rules = boxes.merge_rules(make_rules(seed, 40))
    kept = boxes.drop_loose(rules)
    cells = [
        plumber.intersections_to_cells(plumber.edges_to_intersections(as_edges(some), SNAP, SNAP))
        for some in (rules, kept)
    ]
    assert cells[0] == cells[1]
    assert len(kept) < len(rules)


def test_lines_that_cross_nothing_make_no_boxes() -> None:
    rules = [Rule(True, 20.0 * n, 0.0, 100.0) for n in range(5)] + [Rule(False, 300.0, 0.0, 9.0 * n) for n in range(5)]
    assert boxes.find_boxes(rules) == []
