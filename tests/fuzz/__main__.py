"""Reads mutated PDF and DOCX files: `make fuzz`, or `make fuzz ARGS="--runs 1000 --first 5000"`.

The seeds are generated files and, if there are any, those in IBID_CORPUS_DATA. Prints how the runs ended, and each
exception that is not one of Ibid's own; exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fuzz.run import MAX_SECONDS, Findings, fuzz
from tests.fuzz.seeds import make_seeds
from tests.support import requirements

LARGEST_SEED = 300_000
STEP = 500


def find_seeds(folder: Path) -> list[Path]:
    seeds = make_seeds(folder)
    with suppress(pytest.skip.Exception, pytest.fail.Exception):
        files = sorted(requirements.need_corpus("files").rglob("*.*"))
        seeds += [path for path in files if path.suffix in (".pdf", ".docx") and path.stat().st_size < LARGEST_SEED]
    return seeds


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run, to repeat it")
    options = parser.parse_args()
    total = Findings()
    with tempfile.TemporaryDirectory() as name:
        seeds = find_seeds(Path(name))
        print(f"{len(seeds)} seeds", flush=True)
        for first in range(options.first, options.first + options.runs, STEP):
            found = fuzz(seeds, min(STEP, options.first + options.runs - first), Path(name), first=first)
            total.runs += found.runs
            total.outcomes += found.outcomes
            total.slowest = max(total.slowest, found.slowest)
            for place, fault in found.faults.items():
                print(f"{place}: {fault}")
            total.faults |= found.faults
            print(f"{total.runs} runs, {len(total.faults)} faults, slowest {total.slowest:.1f} s", flush=True)
    for outcome, count in total.outcomes.most_common():
        print(f"{count:8} {outcome}")
    return int(bool(total.faults) or total.slowest > MAX_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
