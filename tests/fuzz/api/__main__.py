"""Sends generated requests to a laptop's server: `make fuzz-api`, or `make fuzz-api ARGS="--examples 5"`.

Prints the statuses of each operation and every answer that breaks a rule; exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.api.callers import open_callers
from tests.fuzz.api.run import Findings, fuzz
from tests.support.database import MAJORS, Clusters
from tests.support.fakes.model_server import FakeModelServer
from tests.support.local_server import run_local_server


def run(examples: int) -> Findings:
    clusters = Clusters()
    try:
        dsn = clusters.get(MAJORS[0]).clone()
        with (
            tempfile.TemporaryDirectory(prefix="ibid-fuzz-") as home,
            FakeModelServer(dimensions=64) as model,
            run_local_server(dsn, Path(home)) as server,
            open_callers(server) as callers,
        ):
            document = server.http.get("/openapi.json").json()
            return fuzz(document, server.base_url, callers, model.base_url, examples=examples)
    finally:
        clusters.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz-api", description=__doc__.partition("\n")[0])
    parser.add_argument("--examples", type=int, default=40, help="valid, and as many invalid, requests per operation")
    found = run(parser.parse_args().examples)
    for label, statuses in sorted(found.statuses.items()):
        print(f"{label:80} {', '.join(f'{status}: {count}' for status, count in sorted(statuses.items()))}")
    for fault, request in found.faults.items():
        print(f"FAULT {fault}\n      {request}")
    print(f"{found.requests} requests, {len(found.faults)} faults")
    return int(bool(found.faults))


if __name__ == "__main__":
    sys.exit(main())
