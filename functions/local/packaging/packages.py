"""Selects, fetches, copies and compiles the packages that artifacts and layers hold."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from functions.local.packaging import wheels

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / ".build"
PINS = REPOSITORY / "requirements.txt"
TASK_ROOT: Final = "/var/task"  # where Lambda unpacks an artifact

# Lambda's Amazon Linux 2023 runs wheels of manylinux_2_34 and older; pip prefers the first tag that fits.
_LAMBDA_PLATFORMS = ("manylinux_2_34_aarch64", "manylinux_2_28_aarch64", "manylinux2014_aarch64")
_NOT_NEEDED_TO_RUN = frozenset({".pyi", ".pyx", ".pxd", ".c", ".h", ".a", ".lib"})


class PackagingError(Exception):
    """Why an artifact or a layer cannot be built; the message is printed as it is."""


@dataclass(frozen=True, slots=True)
class Target:
    """The Python version and the machine that packages are selected and compiled for."""

    name: str
    version: tuple[int, int]
    machine: str

    @property
    def folder(self) -> Path:
        return BUILD / self.name

    @property
    def stamp(self) -> str:
        """Changes when a Python that can compile for this target is installed or removed."""
        return f"{self!r} {find_python(self.version) is not None}"

    @property
    def markers(self) -> dict[str, str]:
        """The environment markers (PEP 508) that differ from those of this machine."""
        version = ".".join(map(str, self.version))
        return {"python_version": version, "python_full_version": f"{version}.0", "platform_machine": self.machine}


LAMBDA: Final = Target("lambda", (3, 12), "aarch64")
HOST: Final = Target("host", (sys.version_info[0], sys.version_info[1]), platform.machine())


def select_packages(roots: Iterable[str], folder: Path, markers: Mapping[str, str]) -> list[Distribution]:
    """Lists the distributions in `folder` that `roots` require, directly or not, by name.

    Raises PackagingError when one is missing.
    """
    installed: dict[str, Distribution] = {
        canonicalize_name(found.name): found for found in distributions(path=[str(folder)])
    }
    pending, seen = [Requirement(root) for root in roots], set[tuple[str, str]]()
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name not in installed:
            raise PackagingError(f"{requirement.name} is not among the packages in {folder}")
        for part in {(name, extra) for extra in ("", *requirement.extras)} - seen:
            seen.add(part)
            pending += _list_requirements(installed[name], part[1], markers)
    return [installed[name] for name in sorted({name for name, _ in seen})]


def _list_requirements(package: Distribution, extra: str, markers: Mapping[str, str]) -> Iterator[Requirement]:
    for line in package.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None:
            if not extra:
                yield requirement
        elif requirement.marker.evaluate({**markers, "extra": extra}):
            yield requirement


def list_files(package: Distribution) -> list[PurePosixPath]:
    """Lists the files that a distribution needs to run, relative to its folder.

    Scripts, tests, stubs, headers and bytecode are left out.
    """
    found = [PurePosixPath(path) for path in package.files or ()]
    return [
        path
        for path in found
        if path.suffix not in _NOT_NEEDED_TO_RUN and not {"..", "__pycache__", "tests"} & {*path.parts}
    ]


def fetch(target: Target, folder: Path, pins: Iterable[str]) -> None:
    """Installs into `folder` the wheels of `pins` for `target`, if their hashes are known, without their requirements.

    Raises PackagingError when a hash is missing or pip fails.
    """
    print(f"ibid: fetching packages for Python {target.version[0]}.{target.version[1]} on {target.machine} ...")
    version = ".".join(map(str, target.version))
    options = ["--target", str(folder), "--no-compile", "--no-deps", "--only-binary=:all:", "--implementation=cp"]
    options += [f"--python-version={version}", *(f"--platform={name}" for name in _LAMBDA_PLATFORMS)]
    command = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes", *options]
    variables = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as locked:
        try:
            locked.write(wheels.lock(pins))
        except wheels.MissingHashError as error:
            raise PackagingError(str(error)) from error
        locked.flush()
        done = subprocess.run([*command, "-r", locked.name], env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last_lines = "\n".join(done.stderr.strip().splitlines()[-3:])
        raise PackagingError(f"pip could not fetch the packages; the first build needs a network.\n{last_lines}")


def copy_installed(roots: Iterable[str], folder: Path) -> None:
    """Copies `roots` and everything they require from this Python's packages into `folder`.

    Raises PackagingError when one is not installed.
    """
    installed = Path(sysconfig.get_path("purelib"))
    for package in select_packages(roots, installed, HOST.markers):
        for path in list_files(package):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(installed / path, folder / path)


def check_pins(folder: Path) -> None:
    """Raises PackagingError when a package in `folder` has another version than requirements.txt pins."""
    pinned = read_pins()
    for package in distributions(path=[str(folder)]):
        if pinned.get(canonicalize_name(package.name)) != package.version:
            raise PackagingError(
                f"{package.name} {package.version} is installed, but requirements.txt does not pin that version"
            )


def read_pins() -> dict[str, str]:
    """Reads the versions that requirements.txt pins, by canonical package name."""
    lines = (line.partition("#")[0].strip() for line in PINS.read_text(encoding="utf-8").splitlines())
    pins = (Requirement(line) for line in lines if line)
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


def compile_folder(target: Target, folder: Path, *, beside_sources: bool = False) -> None:
    """Writes the bytecode of every module in `folder`, into `__pycache__` folders or beside the sources.

    Prints a warning and writes nothing when this machine has no Python of the target's version.
    """
    python = find_python(target.version)
    if python is None:
        version = ".".join(map(str, target.version))
        print(
            f"ibid: Python {version} is not installed here, so no bytecode is written and cold starts take longer",
            file=sys.stderr,
        )
        return
    # unchecked-hash: the other modes compare bytecode with its source, whose time a deployed zip does not keep.
    modes = ["-q", "-j0", "--invalidation-mode=unchecked-hash", "-s", str(folder), "-p", TASK_ROOT]
    layout = ["-b"] if beside_sources else []
    subprocess.run([python, "-I", "-m", "compileall", *modes, *layout, str(folder)], check=True)


def find_python(version: tuple[int, int]) -> str | None:
    """Finds an interpreter of this version; None when there is none."""
    name = ".".join(map(str, version))
    managed = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{name}.*/bin/python"))
    for python in [sys.executable, f"python{name}", *map(str, managed)]:
        # Each candidate is run, because a version manager's shim may exist and fail.
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
