"""No mutated file raises an exception but Ibid's own, or takes more than the limits."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

from functions.core.extraction.isolation import PageDrawer
from tests.fuzz.run import MAX_SECONDS, fuzz, read_and_draw
from tests.fuzz.seeds import make_seeds


def test_mutated_files_raise_no_unexpected_exception_and_stay_within_the_limits(tmp_path: Path) -> None:
    """LIM-1; `make fuzz` is the long form."""
    findings = fuzz(make_seeds(tmp_path), 210, tmp_path)
    assert (findings.runs, findings.faults) == (210, {})
    assert findings.slowest < MAX_SECONDS
    assert min(findings.outcomes[outcome] for outcome in ("read", "drawn", "corrupt")) > 10


def test_an_unexpected_exception_is_a_finding(tmp_path: Path) -> None:
    drawer = Mock(spec=PageDrawer)
    drawer.draw.side_effect = IndexError("list index out of range")
    outcomes = list(read_and_draw(make_seeds(tmp_path)[0], drawer))
    assert "FAULT: drawing page 1: IndexError('list index out of range')" in outcomes
