"""The systems that are compared, and a virtual environment for each foreign one, created when it is needed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.requirements import REPOSITORY, report_missing

HOME = REPOSITORY / ".build" / "peers"
IBID = "ibid"


@dataclass(frozen=True, slots=True)
class System:
    """A search to measure, run by `module` of this package with the packages of `requirements-<packages>.txt`.

    With `loaded_as` it searches the database that this system has filled, and with `index` a copy of it on which that
    statement was run.
    """

    name: str
    module: str
    packages: str | None = None
    arguments: tuple[str, ...] = ()
    loaded_as: str = ""
    index: str = ""

    @property
    def is_loader(self) -> bool:
        return not self.loaded_as


SUPABASE = System("supabase function", "supabase_function")
LANGCHAIN = System("langchain-postgres", "langchain_store", "langchain")
LLAMA_INDEX = System("llama-index", "llama_index_store", "llama-index")
LLAMA_INDEX_FUSION = System("llama-index fusion", "llama_index_store", "llama-index", ("fusion",), LLAMA_INDEX.name)
HAYSTACK = System("haystack", "haystack_store", "haystack")
# The library does not document this index, but a database administrator would add it.
LANGCHAIN_INDEXED = System(
    "langchain-postgres, owner indexed",
    "langchain_store",
    "langchain",
    (),
    LANGCHAIN.name,
    "create index on passages (owner)",
)
PEERS = (SUPABASE, LANGCHAIN, LLAMA_INDEX, LLAMA_INDEX_FUSION, HAYSTACK)


def list_usable(systems: tuple[System, ...]) -> list[System]:
    """Installs the systems' packages where needed; lists the systems that can run, and reports the others.

    Exits when IBID_REQUIRE_ALL=1 and one cannot be installed.
    """
    failures = {name: why for name in {s.packages for s in systems if s.packages} if (why := install(name))}
    if failures:
        reasons = "; ".join(f"{name} ({why})" for name, why in sorted(failures.items()))
        report_missing(f"packages of peers that are left out: {reasons}")
    return [system for system in systems if system.packages not in failures]


def find_python(system: System) -> Path:
    return HOME / system.packages / "bin" / "python" if system.packages else Path(sys.executable)


def install(name: str) -> str:
    """Creates the environment `name` unless it exists; returns why that failed, or an empty string."""
    folder, requirements = HOME / name, Path(__file__).parent / f"requirements-{name}.txt"
    stamp = hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()
    if _read(folder / "installed") == stamp:
        return ""
    print(f"installing {name} into {folder.relative_to(REPOSITORY)} ...", file=sys.stderr)
    python = str(folder / "bin" / "python")
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(requirements)],
    ):
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    (folder / "installed").write_text(stamp)
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
