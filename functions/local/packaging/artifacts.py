"""Builds what is deployed: a zip file for each set of functions that need the same packages.

`python -m functions.local.packaging.artifacts [--target lambda|host]` writes `.build/<target>/<set>.zip`, and does
nothing when they are there already. An artifact holds our code without `functions/local`, the packages that its set
needs at the versions that requirements.txt pins, and the bytecode of both, because Lambda cannot write any: without
it every cold start compiles for a second or two. The packages for Lambda are fetched from the package index, those
for this machine (`host`: the tests run such artifacts) are copied from where this Python has them.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / ".build"
PINS = REPOSITORY / "requirements.txt"
TASK_ROOT = "/var/task"

_DATABASE = ("psycopg[binary]", "pydantic-settings")
_FILES = (*_DATABASE, "supabase")
_WEB = ("fastapi", "mangum", "PyJWT[crypto]")
_ANSWERS = (*_DATABASE, *_WEB, "openai", "jsonschema")  # no numpy: half of it all, for one vector a question
# What the functions of a set import, by themselves; boto3 is part of the Lambda runtime.
SETS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": (*_FILES, *_WEB, "prometheus-client"),
    "documents": (*_FILES, *_WEB, "pypdfium2"),
    "chat": (*_ANSWERS, "uvicorn"),
    "mcp": (*_ANSWERS, "mcp"),
    "ingest": (*_FILES, "openai", "numpy", "pgvector", "pdfplumber", "pypdfium2", "pillow"),
    "schedule": _FILES,
}

# The newest tag first: what manylinux_2_34 allows, Lambda's Amazon Linux 2023 has.
_LAMBDA_PLATFORMS = ("manylinux_2_34_aarch64", "manylinux_2_28_aarch64", "manylinux2014_aarch64")
_NEVER_RUN = frozenset({".pyi", ".pyx", ".pxd", ".c", ".h", ".a", ".lib"})
_LEFT_OUT = frozenset({"RECORD", "sboms"})  # of a distribution's metadata: for installers and scanners only
_ZIPPED_AT = (1980, 1, 1, 0, 0, 0)  # the same files make the same artifact, whenever it is built


class ArtifactError(Exception):
    """A reason, in words, why there are no artifacts."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Python on a machine: what artifacts are for."""

    name: str
    version: tuple[int, int]
    machine: str

    @property
    def folder(self) -> Path:
        return BUILD / self.name

    @property
    def stamp(self) -> str:
        """What is built for it depends on whether there is a Python here that writes its bytecode."""
        return f"{self!r} {find_python(self.version) is not None}"

    @property
    def markers(self) -> dict[str, str]:
        """What differs from this machine where requirements depend on the machine."""
        version = ".".join(map(str, self.version))
        return {"python_version": version, "python_full_version": f"{version}.0", "platform_machine": self.machine}


LAMBDA = Target("lambda", (3, 12), "aarch64")
HOST = Target("host", (sys.version_info[0], sys.version_info[1]), platform.machine())


def build(target: Target) -> Path:
    """The folder with the artifacts for `target`, built unless they are there; raises ArtifactError."""
    target.folder.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(target.folder):
        code = [path for path in sorted((REPOSITORY / "functions").rglob("*")) if _is_deployed(path)]
        wanted = _digest([PINS, Path(__file__), *code], target.stamp)
        if _read(target.folder / "stamp") != wanted:
            (target.folder / "stamp").unlink(missing_ok=True)
            _write_artifacts(target, _provide_packages(target), code)
            (target.folder / "stamp").write_text(wanted)
    return target.folder


def select_packages(roots: Iterable[str], folder: Path, markers: Mapping[str, str]) -> list[Distribution]:
    """The distributions in `folder` that `roots` need, with theirs; raises ArtifactError where one is missing."""
    installed: dict[str, Distribution] = {
        canonicalize_name(found.name): found for found in distributions(path=[str(folder)])
    }
    pending, seen = [Requirement(root) for root in roots], set[tuple[str, str]]()
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name not in installed:
            raise ArtifactError(f"{requirement.name} is not among the packages in {folder}")
        for part in {(name, extra) for extra in ("", *requirement.extras)} - seen:
            seen.add(part)
            pending += _needed_by(installed[name], part[1], markers)
    return [installed[name] for name in sorted({name for name, _ in seen})]


def list_files(package: Distribution) -> list[PurePosixPath]:
    """What a distribution needs to run, relative to its folder: no scripts, tests, stubs, headers or bytecode."""
    found = [PurePosixPath(path) for path in package.files or ()]
    return [
        path for path in found if path.suffix not in _NEVER_RUN and not {"..", "__pycache__", "tests"} & {*path.parts}
    ]


def _needed_by(package: Distribution, extra: str, markers: Mapping[str, str]) -> Iterator[Requirement]:
    for line in package.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None:
            if not extra:
                yield requirement
        elif requirement.marker.evaluate({**markers, "extra": extra}):
            yield requirement


def _provide_packages(target: Target) -> Path:
    """A folder with a zip file of the compiled packages of each set; what is there stays as long as the pins do."""
    folder = target.folder / "packages"
    wanted = _digest([PINS, Path(__file__)], target.stamp)
    if _read(folder / "stamp") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with tempfile.TemporaryDirectory(dir=folder) as name, ThreadPoolExecutor() as pool:
            packages = Path(name)
            if target == HOST:
                copy_installed([root for roots in SETS.values() for root in roots], packages)
                _check_pins(packages)
            else:
                fetch(target, packages, ["-r", str(PINS)])
            _compile(target, packages, beside=True)
            list(pool.map(lambda set_name: _zip_packages(target, packages, folder / f"{set_name}.zip"), SETS))
        (folder / "stamp").write_text(wanted)
    return folder


def _zip_packages(target: Target, packages: Path, path: Path) -> None:
    chosen = select_packages(SETS[path.stem], packages, target.markers)
    with zipfile.ZipFile(path, "w") as archive:
        files = {name for package in chosen for name in list_files(package)}
        for name in sorted(name for name in files if not _LEFT_OUT & {*name.parts}):
            add_file(archive, packages, _prefer_bytecode(packages, name))


def fetch(target: Target, folder: Path, wanted: list[str]) -> None:
    """Installs for `target` what pip is told with `wanted`, and nothing that it needs; raises ArtifactError."""
    print(f"ibid: fetching packages for Python {target.version[0]}.{target.version[1]} on {target.machine} ...")
    version = ".".join(map(str, target.version))
    options = ["--target", str(folder), "--no-compile", "--no-deps", "--only-binary=:all:", "--implementation=cp"]
    options += [f"--python-version={version}", *(f"--platform={name}" for name in _LAMBDA_PLATFORMS)]
    command = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--no-input", *options, *wanted]
    variables = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[-3:])
        raise ArtifactError(f"the packages could not be fetched; this once it needs a network.\n{said}")


def copy_installed(roots: Iterable[str], folder: Path) -> None:
    """Copies `roots` and what they need from this Python; raises ArtifactError where something is not installed."""
    installed = Path(sysconfig.get_path("purelib"))
    for package in select_packages(roots, installed, HOST.markers):
        for path in list_files(package):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(installed / path, folder / path)


def _check_pins(folder: Path) -> None:
    pinned = read_pins()
    for package in distributions(path=[str(folder)]):
        if pinned.get(canonicalize_name(package.name)) != package.version:
            raise ArtifactError(f"{package.name} {package.version} is installed, which requirements.txt does not say")


def read_pins() -> dict[str, str]:
    """Version by name of what requirements.txt pins."""
    lines = (line.partition("#")[0].strip() for line in PINS.read_text(encoding="utf-8").splitlines())
    pins = (Requirement(line) for line in lines if line)
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


def _compile(target: Target, folder: Path, *, beside: bool = False) -> None:
    """Writes bytecode, `beside` the sources or in their `__pycache__`.

    unchecked-hash: the files of a deployed zip have no true times to compare it with.
    """
    python = find_python(target.version)
    if python is None:
        version = ".".join(map(str, target.version))
        print(f"ibid: no Python {version} here, so no bytecode: every cold start will take longer", file=sys.stderr)
        return
    modes = ["-q", "-j0", "--invalidation-mode=unchecked-hash", "-s", str(folder), "-p", TASK_ROOT]
    subprocess.run([python, "-I", "-m", "compileall", *modes, *(["-b"] if beside else []), str(folder)], check=True)


def find_python(version: tuple[int, int]) -> str | None:
    """An interpreter of that version. A name is tried by running it: a version manager's shim may exist and not run."""
    name = ".".join(map(str, version))
    managed = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{name}.*/bin/python"))
    for python in [sys.executable, f"python{name}", *map(str, managed)]:
        try:
            found = subprocess.run(
                [python, "-I", "-c", "import sys; print(*sys.version_info[:2], sep='.')"],
                capture_output=True,
                text=True,
            )
        except OSError:
            continue
        if found.stdout.strip() == name:
            return python
    return None


def _write_artifacts(target: Target, packages: Path, code: list[Path]) -> None:
    """Puts our code, compiled, into a copy of the packages of each set."""
    with tempfile.TemporaryDirectory(dir=target.folder) as name:
        folder = Path(name)
        for path in code:
            copy = folder / path.relative_to(REPOSITORY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        _compile(target, folder)
        for set_name in SETS:
            shutil.copyfile(packages / f"{set_name}.zip", target.folder / f"{set_name}.zip")
            with zipfile.ZipFile(target.folder / f"{set_name}.zip", "a") as archive:
                for path in sorted(filter(Path.is_file, folder.rglob("*"))):
                    add_file(archive, folder, PurePosixPath(path.relative_to(folder)))


def _prefer_bytecode(folder: Path, path: PurePosixPath) -> PurePosixPath:
    """Of packages the bytecode alone is deployed: the sources are as large again, and nothing reads them there."""
    compiled = path.with_suffix(".pyc")
    return compiled if path.suffix == ".py" and (folder / compiled).exists() else path


def add_file(archive: zipfile.ZipFile, folder: Path, name: PurePosixPath) -> None:
    """Everybody may read a file, and run what its owner may run."""
    path = folder / name
    entry = zipfile.ZipInfo(str(name), _ZIPPED_AT)
    entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
    archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=3)


def _is_deployed(path: Path) -> bool:
    parts = path.relative_to(REPOSITORY).parts
    return path.is_file() and parts[1] != "local" and "__pycache__" not in parts and path.suffix != ".md"


def _digest(paths: Iterable[Path], more: str) -> str:
    digest = hashlib.sha256(more.encode())
    for path in paths:
        digest.update(f"\0{path}\0{path.stat().st_mode}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Lets builds that start together take turns; the lock goes away with the process."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m functions.local.packaging.artifacts", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--target", choices=["lambda", "host"], default="lambda")
    options = parser.parse_args(argv)
    try:
        folder = build(LAMBDA if options.target == "lambda" else HOST)
    except ArtifactError as error:
        print(f"ibid: {error}", file=sys.stderr)
        return 1
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        print(f"ibid: {path.relative_to(REPOSITORY)}: {path.stat().st_size / 1e6:.0f} MB, {size / 1e6:.0f} MB unzipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
