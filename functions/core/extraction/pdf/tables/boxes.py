"""Finds the boxes that ruling lines enclose: broken lines are joined first, then pdfplumber looks for boxes."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from functions.core.extraction.pdf.geometry import Box
from functions.core.extraction.pdf.tables.ruling_lines import SNAP, Rule, stack_equal

_MAX_CROSSINGS = 6_000
"""pdfplumber's time grows with the square of the crossings of lines; with so many it takes a second."""
_REACH = SNAP + 0.001
"""Points: how far beyond its ends a line crosses others; just over `SNAP`, so that rounding excludes none."""

Edge = dict[str, Any]
"""A line in pdfplumber's form."""


def find_boxes(rules: Sequence[Rule]) -> list[list[Box]]:
    """The boxes that `rules` enclose, those of one table in one list, from the top of the page down."""
    rules = merge_rules(rules)
    for find_sides in (_find_missing_ends, _find_missing_sides):
        sides = find_sides(rules)
        if sides:
            rules = merge_rules([*rules, *sides])
    rules = drop_loose(rules)
    if not rules:
        return []
    from pdfplumber import table as plumber

    points = plumber.edges_to_intersections([_as_edge(rule) for rule in rules], SNAP, SNAP)
    if len(points) > _MAX_CROSSINGS:
        return []
    boxes: list[list[Box]] = plumber.cells_to_tables(plumber.intersections_to_cells(points))
    return boxes


def merge_rules(rules: Iterable[Rule]) -> list[Rule]:
    """Joins nearly overlapping rules, as pdfplumber's `merge_edges` does, but several times faster.

    Parallel rules up to `SNAP` apart move to their mean place, all to exactly the same number, so that one pass is
    enough; then rules in one line that touch are joined.
    """
    horizontal, vertical = split_rules(rules)
    return [*_join_in_line(_align(horizontal)), *_join_in_line(_align(vertical))]


def split_rules(rules: Iterable[Rule]) -> tuple[list[Rule], list[Rule]]:
    """The horizontal rules and the vertical ones."""
    horizontal: list[Rule] = []
    vertical: list[Rule] = []
    for rule in rules:
        (horizontal if rule.is_horizontal else vertical).append(rule)
    return horizontal, vertical


def _align(rules: Sequence[Rule]) -> Iterator[Rule]:
    cluster_of: dict[float, int] = {}
    number, last = 0, 0.0
    for at in sorted({rule.at for rule in rules}):
        number += bool(cluster_of) and at > last + SNAP
        cluster_of[at], last = number, at
    clusters: list[list[Rule]] = [[] for _ in range(number + 1)]
    for rule in rules:
        clusters[cluster_of[rule.at]].append(rule)
    for cluster in clusters:
        mean = sum([rule.at for rule in cluster]) / max(len(cluster), 1)
        for is_horizontal, _, start, end in cluster:
            yield Rule(is_horizontal, mean, start, end)


def _join_in_line(rules: Iterable[Rule]) -> Iterator[Rule]:
    joined: Rule | None = None
    for rule in sorted(rules, key=lambda rule: (rule.at, rule.start)):
        if joined is None or rule.at != joined.at or rule.start > joined.end + SNAP:
            if joined is not None:
                yield joined
            joined = rule
        elif rule.end > joined.end:
            joined = joined._replace(end=rule.end)
    if joined is not None:
        yield joined


def drop_loose(rules: Sequence[Rule]) -> list[Rule]:
    """Drops rules that cross fewer than two others, repeatedly, until all that remain can be sides of boxes."""
    horizontal, vertical = split_rules(rules)
    while len(horizontal) > 1 and len(vertical) > 1:
        places = [rule.at for rule in horizontal]  # in order, as merged rules are
        crossed_at: list[set[float]] = [set() for _ in horizontal]
        kept_vertical: list[Rule] = []
        for rule in vertical:
            crossed = [
                number
                for number in range(bisect_left(places, rule.start - _REACH), bisect_right(places, rule.end + _REACH))
                if horizontal[number].start - _REACH <= rule.at <= horizontal[number].end + _REACH
            ]
            if crossed and places[crossed[0]] != places[crossed[-1]]:
                kept_vertical.append(rule)
                for number in crossed:
                    crossed_at[number].add(rule.at)
        kept_horizontal = [rule for rule, crossings in zip(horizontal, crossed_at, strict=True) if len(crossings) > 1]
        if len(kept_horizontal) == len(horizontal) and len(kept_vertical) == len(vertical):
            return [*horizontal, *vertical]
        horizontal, vertical = kept_horizontal, kept_vertical
    return []


def _find_missing_ends(rules: Sequence[Rule]) -> list[Rule]:
    """The missing lower (or upper) line of tables: as wide as the horizontal rule where vertical rules begin."""
    horizontal, vertical = split_rules(rules)
    found: list[Rule] = []
    for _, group in itertools.groupby(sorted(vertical, key=_round_ends), _round_ends):
        sides = list(group)
        first, last, top, bottom = min(rule.at for rule in sides), max(rule.at for rule in sides), *sides[0][2:]
        between = [rule for rule in horizontal if rule.start < last and rule.end > first]
        ends = [[rule for rule in between if abs(rule.at - end) <= SNAP] for end in (top, bottom)]
        for near, others, end in ((ends[0], ends[1], bottom), (ends[1], ends[0], top)):
            wide = [rule for rule in near if rule.start < first - SNAP and rule.end > last + SNAP]
            if wide and not others and (len(sides) > 1 or _crosses_several(sides[0], between)):
                found.append(Rule(True, end, wide[0].start, wide[0].end))
    return found


def _crosses_several(side: Rule, rungs: Sequence[Rule]) -> bool:
    """Whether a line is crossed by several others between its ends, as the one vertical line of a table is."""
    return sum(side.start + SNAP < rung.at < side.end - SNAP for rung in rungs) > 1


def _round_ends(rule: Rule) -> tuple[int, int]:
    return round(rule.start / SNAP), round(rule.end / SNAP)


def _find_missing_sides(rules: Sequence[Rule]) -> list[Rule]:
    """The outer lines of tables drawn without them: they connect the ends of two equal rules that a third crosses."""
    horizontal, vertical = split_rules(rules)
    return [*_connect_ends(horizontal, vertical), *_connect_ends(vertical, horizontal)]


def _connect_ends(sides: Sequence[Rule], rungs: Sequence[Rule]) -> Iterator[Rule]:
    for one, two in itertools.chain.from_iterable(map(itertools.pairwise, stack_equal(sides))):
        low, high, first, last = one.start + SNAP, one.end - SNAP, one.at + SNAP, two.at - SNAP
        if any(low < at < high and start <= first and end >= last for _, at, start, end in rungs):
            for place in (one.start, one.end):
                yield Rule(not one.is_horizontal, place, one.at, two.at)


def _as_edge(rule: Rule) -> Edge:
    if rule.is_horizontal:
        return {"x0": rule.start, "x1": rule.end, "top": rule.at, "bottom": rule.at, "orientation": "h"}
    return {"x0": rule.at, "x1": rule.at, "top": rule.start, "bottom": rule.end, "orientation": "v"}
