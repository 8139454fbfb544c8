"""Prints the figures of a benchmark as a table and, as the last line, a JSON object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def figure(
    name: str, value: float, baseline: float, goal: float | None = None, *, ok: bool | None = None
) -> dict[str, Any]:
    """A figure whose ratio to its baseline must be at least `goal`, unless `ok` is given; None: it is only reported."""
    # Imported late, because it imports the database client, and some processes measure their own memory.
    from functions.local.evaluation import scores

    row = scores.figure(name, value, baseline, goal)
    return row if ok is None else row | {"ok": ok}


def at_most(name: str, value: float, baseline: float, goal: float = 1.0) -> dict[str, Any]:
    """A figure whose ratio to its baseline must not exceed `goal`."""
    return figure(name, value, baseline, goal, ok=value <= goal * baseline)


def print_figures(name: str, figures: Sequence[dict[str, Any]]) -> None:
    width = max((len(row["figure"]) for row in figures), default=0)
    print(f"{'figure':{width}} {'value':>10} {'baseline':>10} {'ratio':>8} {'goal':>5}  ok")
    for row in figures:
        ratio, goal = ("" if row[key] is None else row[key] for key in ("ratio", "goal"))
        print(f"{row['figure']:{width}} {row['value']:10} {row['baseline']:10} {ratio:>8} {goal:>5}  {row['ok']}")
    print(json.dumps({"name": name, "figures": figures}))
