"""Every passage of a financial statement holds its title, unit, column heads and the title of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import bench_headers


@pytest.mark.parametrize("seed", range(12))
def test_each_passage_of_a_statement_holds_its_heads_unit_and_groups(tmp_path: Path, seed: int) -> None:
    """ING-6"""
    tallies = bench_headers.measure_statement(tmp_path / "statement.pdf", seed)
    assert [line for tally in tallies.values() for line in tally.wrong] == []
    assert all(tally.count for tally in tallies.values())
