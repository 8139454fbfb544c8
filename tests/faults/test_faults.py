"""Whatever fails outside, a flow succeeds or says what is wrong; nothing is lost, and all works again afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.plant import Plant, open_plant
from tests.faults.run import list_cells, run_cell

TELLING = [
    ("database restart", "ask, streamed"),
    ("database refused", "search"),
    ("database disk full", "save a note"),
    ("storage 5xx", "ingest"),
    ("model 429", "ask"),
    ("model malformed", "re-index"),
    ("clock jump", "ingest"),
    ("duplicated events", "ingest"),
    ("lost events", "upload"),
]


@pytest.fixture(scope="module")
def plant() -> Iterator[Plant]:
    with open_plant() as opened:
        yield opened


@pytest.mark.parametrize(("fault", "flow"), TELLING, ids=map(" - ".join, TELLING))
def test_a_fault_outside_is_reported_clearly_and_costs_nothing(plant: Plant, fault: str, flow: str) -> None:
    """ING-10, ING-11, OPS-2, SEC-6; `make faults` runs every flow under every fault."""
    cell = run_cell(plant, fault, flow)
    assert (cell.is_clear, cell.lost) == (True, ""), cell


def test_every_telling_pair_is_one_of_the_long_form() -> None:
    assert set(TELLING) <= set(list_cells())
