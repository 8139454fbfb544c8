"""Compares Ibid's search with other Postgres searches: `python -m tests.bench.bench_peers [quality|latency] [--long]`.

All systems use the same Postgres server and the same vectors. Quality is nDCG@10 on the question sets in
IBID_EVAL_DATA. Latency is measured for one tenant among many, and every system is asked the same questions in turn. The
short form has 20,000 chunks and asks 200 questions of each set; `--long` has 100,000 chunks and asks all questions. The
first run installs the peers under .build/peers, and names those that cannot be installed and are left out. Prints
tables and, as the last line, a JSON object.
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
# All systems get these settings: tables and HNSW builds fit in memory, and one process builds an index, because few
# containers have enough shared memory for several. The data need not survive a power cut.
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
    """Whether all question sets are present; reports the missing ones."""
    root = question_sets.data_root()
    missing = [name for name in quality.SETS if not (root / name).is_dir()]
    if missing:
        report_missing(f"IBID_EVAL_DATA: {', '.join(missing)} not found in {root}, so nothing was measured")
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
