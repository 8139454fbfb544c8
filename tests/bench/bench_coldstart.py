"""Measures cold starts and artifact sizes of the functions: `python -m tests.bench.bench_coldstart [--long]`.

Each measurement runs in a new process with the files and variables that the function has on Lambda: the unzipped
artifact with its bytecode, and the environment of serverless.yml. It times the import and the first request, with that
for secrets to a store on this machine, and without the start of the interpreter. The baseline is a bare function of the
same libraries with one route and one query, or with one question to a model for functions that ask models; its
environment has the secrets. The functions take turns and the fastest run of each counts, because other load can only
slow a run down. Lambda gives a function of 1,024 MB little more than half a processor.
One function is also compared with itself: with a store as far away as that of AWS, and with its secrets in its
environment. Prints a table and, as the last line, a JSON object.
"""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import jwt

from functions.local.database import embedded_postgres, migrate
from functions.local.packaging import artifacts, packages
from tests.bench import far_store
from tests.bench.report import at_most, figure, print_figures
from tests.handlers import events
from tests.support.fakes.model_server import FakeModelServer
from tests.support.lambda_platform import Platform

SHORT, LONG = 12, 30
MAX_RATIO_TO_BARE = 1.3
MAX_RATIO_TO_ENVIRONMENT = 1.3
MAX_MB = {name: 150.0 if name == "ingest" else 60.0 for name in artifacts.SETS}
SUPABASE = "http://127.0.0.1:9"  # nothing listens on the discard port
JWT_SECRET = "the legacy JWT secret of a Supabase project"
BARE = "bare_function"

_PROBE = """
import time
started, worked = time.perf_counter(), time.process_time()
import importlib, json, sys
module, event = sys.argv[1], json.loads(sys.argv[2])
handler = importlib.import_module(module).handler
imported = time.perf_counter()
answer = handler(event, type("Context", (), {"get_remaining_time_in_millis": lambda self: 29000})())
seconds = imported - started, time.perf_counter() - started, time.process_time() - worked
print(json.dumps([seconds, answer["statusCode"], answer["body"]]))
"""


@dataclass(frozen=True, slots=True)
class Start:
    """A function and its first request; `module` replaces the module of its handler."""

    function: str
    method: str
    path: str
    body: Any = None
    module: str = ""
    secrets: Literal["near", "far", "environment"] = "near"
    """Where they are: in a store on this machine, in one as far away as that of AWS, or in the environment."""


BASELINES = {
    "bare": Start("settings", "GET", "/settings", module=BARE, secrets="environment"),
    "bare with openai": Start("chat", "GET", "/answer", module=BARE, secrets="environment"),
}
STARTS = {
    "settings": Start("settings", "GET", "/api/rag/settings"),
    "conversations": Start("conversations", "GET", "/api/rag/conversations"),
    "chat": Start("chat", "POST", "/api/rag/chat", {"query": "What is the question?"}),
}
STORES = {
    "far": Start("settings", "GET", "/api/rag/settings", secrets="far"),
    "environment": Start("settings", "GET", "/api/rag/settings", secrets="environment"),
}
MORE_STARTS = {
    "notebooks": Start("notebooks", "GET", "/api/rag/notebooks"),
    "documents": Start("documents", "GET", "/api/rag/documents"),
    "search": Start("search", "GET", "/api/rag/search"),
}
BASELINE_OF = {"chat": "bare with openai", "search": "bare with openai"}

Times = tuple[float, float, float]
"""Milliseconds of the import, of import and first request, and of processor time in both."""


class Bench:
    """Starts functions; raises SystemExit when a first request does not succeed."""

    def __init__(self, platform: Platform, folder: Path, far: far_store.FarStore) -> None:
        self._platform = platform
        self._far = far
        self._extra = folder / "bare"
        self._extra.mkdir()
        source = shutil.copy(Path(__file__).with_name(f"{BARE}.py"), self._extra)
        py_compile.compile(str(source), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        self._headers = {"authorization": f"Bearer {issue_token()}"}

    def measure(self, start: Start) -> Times:
        environment = self._platform.environment(start.function)
        if start.secrets == "environment":
            environment |= {**self._platform.variables, "SECRETS": ""}
        elif start.secrets == "far":
            environment |= self._far.variables
        module = start.module or environment["_HANDLER"].removesuffix(".handler").replace("/", ".")
        query = "q=question" if start.function == "search" else ""
        event = events.http(start.method, start.path, start.body, headers=self._headers, query=query)
        root = environment["LAMBDA_TASK_ROOT"]
        python = [f"{environment['PATH'].split(':')[0]}/python", "-c", _PROBE]
        done = subprocess.run(
            [*python, module, json.dumps(event)],
            cwd=root,
            env=environment | {"PYTHONPATH": f"{environment['LAMBDA_RUNTIME_DIR']}:{self._extra}"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"{module} did not start:\n{done.stderr}")
        (imported, answered, worked), status, body = json.loads(done.stdout.splitlines()[-1])
        if status != 200:
            raise SystemExit(f"{module} answered {status}: {body}")
        return imported * 1000, answered * 1000, worked * 1000


def issue_token() -> str:
    claims = {"sub": str(uuid4()), "role": "authenticated", "aud": "authenticated", "exp": int(time.time()) + 3600}
    return jwt.encode(claims | {"iss": f"{SUPABASE}/auth/v1"}, JWT_SECRET, "HS256")


def run(folder: Path, starts: Mapping[str, Start], rounds: int) -> tuple[dict[str, Times], float]:
    """Measures each start `rounds` times; returns the best times by name, and the calls of a start to the far store."""
    with embedded_postgres.start(folder / "postgres") as server, FakeModelServer() as model:
        migrate.migrate(server.dsn)
        variables = {
            "DATABASE_URL": server.dsn,
            "SUPABASE_URL": SUPABASE,
            "SUPABASE_SECRET_KEY": "none",
            "SUPABASE_JWT_SECRET": JWT_SECRET,
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.base_url,
            "CHAT_MODEL": "fake",
            "EMBEDDING_MODEL": "fake",
            "EMBEDDING_DIMENSIONS": str(model.dimensions),
        }
        found: dict[str, list[Times]] = {name: [] for name in starts}
        with Platform(folder / "lambda", variables) as platform, far_store.run(platform.store, folder / "far") as far:
            bench = Bench(platform, folder, far)
            for _ in range(1 + rounds):  # one round more, which fills the file cache
                for name, start in starts.items():
                    found[name].append(bench.measure(start))
    times = {name: tuple(map(min, zip(*rows, strict=True))) for name, rows in found.items()}
    return times, len(far.requests) / (1 + rounds)


def list_figures(found: Mapping[str, Times]) -> list[dict[str, Any]]:
    rows = []
    for name, (imported, answered, worked) in found.items():
        if name in BASELINES | STORES:
            continue
        bare_imported, bare_answered, bare_worked = found[BASELINE_OF.get(name, "bare")]
        rows.append(at_most(f"{name}: import and first request, ms", answered, bare_answered, MAX_RATIO_TO_BARE))
        rows.append(figure("  of these on the processor", worked, bare_worked))
        rows.append(figure("  import alone", imported, bare_imported))
    return rows


def compare_stores(found: Mapping[str, Times], calls: float) -> list[dict[str, Any]]:
    """What reading secrets adds to a cold start."""
    (_, answered, worked), (_, own, own_worked) = found["far"], found["environment"]
    name = f"settings: secrets from a store that takes {1000 * far_store.SECONDS:.0f} ms, to from the environment, ms"
    return [
        at_most(name, answered, own, MAX_RATIO_TO_ENVIRONMENT),
        figure("  of these on the processor", worked, own_worked),
        at_most("  calls to the store", calls, 1.0),
    ]


def list_sizes(target: packages.Target) -> list[dict[str, Any]]:
    """The unzipped sizes of the artifacts in MB."""
    folder = artifacts.build(target)
    rows = []
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist()) / 1e6
        title = f"{path.stem} artifact ({target.name}), MB unzipped"
        rows.append(at_most(title, size, MAX_MB[path.stem]))
    return rows


def main() -> None:
    is_long = "--long" in sys.argv[1:]
    starts = BASELINES | STARTS | STORES | (MORE_STARTS if is_long else {})
    with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name:
        found, calls = run(Path(name).resolve(), starts, LONG if is_long else SHORT)
    load = figure("load of the machine, last minute, to its processors", os.getloadavg()[0], os.cpu_count() or 1)
    figures = [*list_figures(found), *compare_stores(found, calls), *list_sizes(packages.HOST)]
    print_figures("coldstart", [*figures, load])


if __name__ == "__main__":
    main()
