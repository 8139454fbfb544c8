"""Runs every flow under every fault and prints what was observed: `make faults ARGS="--fault storage"`.

Exits with 1 if an outcome was unclear, or something was lost.
"""

from __future__ import annotations

import argparse
import sys

from tests.faults.flows import FLOWS
from tests.faults.plant import open_plant
from tests.faults.run import Cell, list_cells, run_cell


def describe(cell: Cell) -> str:
    after = f"LOST: {cell.lost}" if cell.lost else f"well after {cell.recovery_seconds:.1f} s"
    return f"| {cell.fault} | {cell.flow} | {cell.outcome} | {after} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--fault", default="", help="only faults whose name contains this")
    parser.add_argument("--flow", default="", choices=["", *FLOWS])
    options = parser.parse_args()
    chosen = [c for c in list_cells() if options.fault in c[0] and options.flow in ("", c[1])]
    print("| fault | flow | meanwhile | afterwards |\n|---|---|---|---|", flush=True)
    bad = 0
    with open_plant() as plant:
        for fault, flow in chosen:
            cell = run_cell(plant, fault, flow)
            bad += not cell.ok
            print(describe(cell), flush=True)
    print(f"{len(chosen)} cells, {bad} not as they should be")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
