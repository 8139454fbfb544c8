"""Ibid's search compared with other systems on one Postgres: `python -m tests.bench.bench_peers [--long]`.

Prints tables and, as its last line, one JSON object. All systems have the same vectors. Quality: nDCG@10 on the
question sets of IBID_EVAL_DATA. Latency: one tenant among many, with the same questions to every system in turn. The
short form has 20,000 chunks and asks 200 questions of each set, `--long` has 100,000 and asks all. The argument
`quality` or `latency` runs that part alone. The other systems are installed under .build/peers at the first run; one
that cannot be installed is left out with a message.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from functions.local.database import embedded_postgres
from functions.local.evaluation import command, question_sets
from functions.runtime.config import Config
from tests.bench.peers import environments, latency, quality
from tests.bench.peers.processes import Bench, Databases
from tests.bench.report import print_figures
from tests.support.requirements import report_missing

SHORT_QUESTIONS = 200
# The same for every system: tables stay in memory and one process builds HNSW indexes there, because containers
# seldom have the shared memory for more. Durability is off.
SETTINGS = {
    **embedded_postgres.FAST_SETTINGS,
    "shared_buffers": "1GB",
    "maintenance_work_mem": "512MB",
    "max_parallel_maintenance_workers": "0",
}


def measure(parts: Sequence[str], *, is_long: bool) -> list[dict[str, Any]]:
    figures: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="ibid-bench-") as name,
        embedded_postgres.start(Path(name).resolve() / "postgres", settings=SETTINGS) as server,
        command.open_embedder(Config().home) as embedder,
    ):
        folder = Path(name).resolve()
        if "quality" in parts:
            systems = environments.list_usable(environments.PEERS)
            bench = Bench(Databases(server, "quality"), embedder, folder, systems)
            figures += quality.list_figures(quality.measure(bench, None if is_long else SHORT_QUESTIONS))
        if "latency" in parts:
            systems = environments.list_usable((*environments.PEERS, environments.LANGCHAIN_INDEXED))
            bench = Bench(Databases(server, "latency"), embedder, folder, systems)
            results = latency.measure(bench, is_long=is_long)
            latency.print_results(results)
            figures += latency.list_figures(results, is_long=is_long)
    return figures


def has_sets() -> bool:
    """Whether the question sets exist; prints a message if not."""
    root = question_sets.data_root()
    missing = [name for name in quality.SETS if not (root / name).is_dir()]
    if missing:
        report_missing(f"IBID_EVAL_DATA: {', '.join(missing)} not in {root}; nothing was measured")
    return not missing


def main() -> None:
    arguments = sys.argv[1:]
    parts = [part for part in ("quality", "latency") if part in arguments] or ["quality", "latency"]
    start, load = time.monotonic(), os.getloadavg()[0]
    figures = measure(parts, is_long="--long" in arguments) if has_sets() else []
    print(f"\n{time.monotonic() - start:.0f} s, load average {load:.1f} before and {os.getloadavg()[0]:.1f} after\n")
    print_figures("peers", figures)


if __name__ == "__main__":
    main()
