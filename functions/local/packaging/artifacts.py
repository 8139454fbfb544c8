"""Builds the zip files that are deployed: one for each set of functions that need the same packages.

`python -m functions.local.packaging.artifacts [--target lambda|host]` writes `.build/<target>/<set>.zip`.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from functions.local.packaging import packages, wheels
from functions.local.packaging.packages import HOST, LAMBDA, PINS, REPOSITORY, PackagingError, Target

_DATABASE = ("psycopg[binary]", "pydantic-settings")
_FILES = (*_DATABASE, "supabase")
_WEB = ("fastapi", "mangum", "PyJWT[crypto]")
# Without numpy, which would be half of such an artifact: a question needs one vector.
_ANSWERS = (*_DATABASE, *_WEB, "openai", "jsonschema")
# The packages that the functions of each set import directly; boto3 is part of the Lambda runtime.
SETS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": (*_FILES, *_WEB, "prometheus-client"),
    "documents": (*_FILES, *_WEB, "pypdfium2"),
    "chat": (*_ANSWERS, "uvicorn"),
    "mcp": (*_ANSWERS, "mcp"),
    "ingest": (*_FILES, "openai", "numpy", "pgvector", "pdfplumber", "pypdfium2", "pillow"),
    "schedule": _FILES,
}

_UNUSED_METADATA = frozenset({"RECORD", "sboms"})  # only installers and scanners read these
_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)  # fixed, so that the same files make the same artifact whenever it is built


def build(target: Target) -> Path:
    """Builds the artifacts for `target` unless they are up to date, and returns their folder.

    An artifact holds our code without `functions/local`, the packages that its set needs at the pinned versions, and
    the bytecode of both: Lambda cannot write any, so every cold start would compile for one or two seconds. Packages
    for Lambda come from the package index, and those for this machine (HOST, for tests) from the running Python.
    Raises PackagingError when a package is missing.
    """
    target.folder.mkdir(parents=True, exist_ok=True)
    with _lock(target.folder):
        code = [path for path in sorted((REPOSITORY / "functions").rglob("*")) if _is_deployed(path)]
        wanted = _digest([PINS, *_list_builders(), *code], target.stamp)
        if _read(target.folder / "stamp") != wanted:
            (target.folder / "stamp").unlink(missing_ok=True)
            _write_artifacts(target, _provide_packages(target), code)
            (target.folder / "stamp").write_text(wanted)
    return target.folder


def _provide_packages(target: Target) -> Path:
    """Returns a folder with one zip file of compiled packages for each set, rebuilt only when the pins change."""
    folder = target.folder / "packages"
    wanted = _digest([PINS, *_list_builders()], target.stamp)
    if _read(folder / "stamp") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with tempfile.TemporaryDirectory(dir=folder) as name, ThreadPoolExecutor() as pool:
            unpacked = Path(name)
            if target == HOST:
                packages.copy_installed([root for roots in SETS.values() for root in roots], unpacked)
                packages.check_pins(unpacked)
            else:
                packages.fetch(target, unpacked, wheels.read_requirements(PINS))
            packages.compile_folder(target, unpacked, beside_sources=True)
            list(pool.map(lambda set_name: _zip_packages(target, unpacked, folder / f"{set_name}.zip"), SETS))
        (folder / "stamp").write_text(wanted)
    return folder


def _zip_packages(target: Target, unpacked: Path, path: Path) -> None:
    chosen = packages.select_packages(SETS[path.stem], unpacked, target.markers)
    with zipfile.ZipFile(path, "w") as archive:
        files = {name for package in chosen for name in packages.list_files(package)}
        for name in sorted(name for name in files if not _UNUSED_METADATA & {*name.parts}):
            add_file(archive, unpacked, _prefer_bytecode(unpacked, name))


def _write_artifacts(target: Target, zipped_packages: Path, code: list[Path]) -> None:
    """Appends our compiled code to a copy of the zipped packages of each set."""
    with tempfile.TemporaryDirectory(dir=target.folder) as name:
        folder = Path(name)
        for path in code:
            copy = folder / path.relative_to(REPOSITORY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        packages.compile_folder(target, folder)
        for set_name in SETS:
            shutil.copyfile(zipped_packages / f"{set_name}.zip", target.folder / f"{set_name}.zip")
            with zipfile.ZipFile(target.folder / f"{set_name}.zip", "a") as archive:
                for path in sorted(filter(Path.is_file, folder.rglob("*"))):
                    add_file(archive, folder, PurePosixPath(path.relative_to(folder)))


def _prefer_bytecode(folder: Path, path: PurePosixPath) -> PurePosixPath:
    """Replaces the source of a package by its bytecode: nothing on Lambda reads the sources, which are as large."""
    compiled = path.with_suffix(".pyc")
    return compiled if path.suffix == ".py" and (folder / compiled).exists() else path


def add_file(archive: zipfile.ZipFile, folder: Path, name: PurePosixPath) -> None:
    """Adds a file that everybody may read, and execute if its owner may."""
    path = folder / name
    entry = zipfile.ZipInfo(str(name), _ENTRY_TIME)
    entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
    archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=3)


def _is_deployed(path: Path) -> bool:
    parts = path.relative_to(REPOSITORY).parts
    return path.is_file() and parts[1] != "local" and "__pycache__" not in parts and path.suffix != ".md"


def _list_builders() -> tuple[Path, Path]:
    """The modules that decide what an artifact holds: when they change, everything is built again."""
    return Path(__file__), Path(packages.__file__)


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
def _lock(folder: Path) -> Iterator[None]:
    """Lets one build at a time use `folder`; the lock ends with the process."""
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
    except PackagingError as error:
        print(f"ibid: {error}", file=sys.stderr)
        return 1
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        print(f"ibid: {path.relative_to(REPOSITORY)}: {path.stat().st_size / 1e6:.0f} MB, {size / 1e6:.0f} MB unzipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
