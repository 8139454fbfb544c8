"""Ingests the files in IBID_CORPUS_DATA with a server and worker as `make run` starts them: `make corpus`.

Prints each outcome, the number of outcomes by expectation, each deviation and, as the last line, a JSON object with the
figures. Exits with 1 when a goal is missed. Arguments are parts of file names, and select the files.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter

from tests.bench.report import print_figures
from tests.corpus.manifest import Entry, Outcome, data_root, read_manifest
from tests.corpus.run import Result, run_corpus


def select_entries(entries: list[Entry], parts: list[str]) -> list[Entry]:
    return [entry for entry in entries if not parts or any(part in str(entry.path) for part in parts)]


def print_outcome(entry: Entry, outcome: Outcome) -> None:
    cost = f"{outcome.seconds:6.1f} s {outcome.peak_bytes / 1e6:5.0f} MB"
    print(f"{cost}  {outcome.status:10} {outcome.code or '':16} {entry.path.name}", flush=True)


def print_summary(result: Result) -> None:
    rows = Counter(
        (e.expect, f"{o.status}{' ' + o.code if o.code else ''}{' (duplicate)' if o.is_duplicate else ''}")
        for e, o in result.outcomes
    )
    print(f"\n{'expected':12} {'outcome':40} files")
    for (expected, outcome), count in sorted(rows.items()):
        print(f"{expected:12} {outcome:40} {count:5}")
    print(f"\ndeviations: {len(result.deviations)}")
    for file, fault in result.deviations.items():
        print(f"  {file}: {fault}")
    print()
    print_figures("corpus", result.figures)


def main() -> int:
    root = data_root()
    if not (root / "manifest.jsonl").exists():
        print(f"MISSING: IBID_CORPUS_DATA: there is no manifest.jsonl in {root}", file=sys.stderr)
        return 2
    entries = select_entries(read_manifest(root), sys.argv[1:])
    if not entries:
        print(f"ibid: no file name in the corpus contains {' or '.join(sys.argv[1:])}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # an exit stops the server
    result = run_corpus(entries, print_outcome)
    print_summary(result)
    return 0 if all(row["ok"] for row in result.figures) else 1


if __name__ == "__main__":
    sys.exit(main())
