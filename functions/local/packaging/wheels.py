"""Knows the hash of every wheel that may be installed, with nothing but the standard library.

`wheels.sha256` lists them in the format of sha256sum, for each version that a requirements file pins, for Python 3.11
to 3.14 on Linux and on Macs with an Apple processor. So pip refuses a file that the package index did not have when the
list was made. `make lock` writes the list anew after a pin has changed.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[3]
LIST: Final = Path(__file__).with_name("wheels.sha256")
FILE: Final = "tests/requirements.txt"
"""Includes the other two."""

_PIN = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;]+)")
_PYTHONS = {"py3", "cp311", "cp312", "cp313", "cp314"}
_PLATFORM = re.compile(r"any|manylinux\w*_(x86_64|aarch64)|macosx_\w+_(arm64|universal2)")


class MissingHashError(Exception):
    """A pinned version is not in the list; the message is printed as it is."""


def lock(lines: Iterable[str]) -> str:
    """Requirements with the hashes of their wheels, as pip reads them; raises MissingHashError."""
    hashes: dict[tuple[str, str], list[str]] = {}
    for digest, wheel in (line.split() for line in LIST.read_text(encoding="utf-8").splitlines()):
        hashes.setdefault(_read_wheel(wheel), []).append(digest)
    return "".join(f"{line} {_describe(_read_pin(line), hashes)}\n" for line in lines)


def read_requirements(path: Path) -> Iterator[str]:
    """The requirements of a file and of those that it includes, without comments."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            yield from read_requirements(path.parent / line[3:].strip())
        elif requirement := line.partition("#")[0].strip():
            yield requirement


def _describe(pin: tuple[str, str], hashes: dict[tuple[str, str], list[str]]) -> str:
    if pin not in hashes:
        raise MissingHashError(
            f"{'=='.join(pin)} could not be installed, because {LIST.name} does not have its hashes: run make lock"
        )
    return " ".join(f"--hash=sha256:{digest}" for digest in hashes[pin])


def _read_pin(line: str) -> tuple[str, str]:
    pin = _PIN.match(line)
    if pin is None:
        raise MissingHashError(f"{line} could not be installed, because it is not pinned to one version")
    return _normalize(pin["name"]), pin["version"]


def _read_wheel(file_name: str) -> tuple[str, str]:
    name, version = file_name.split("-")[:2]
    return _normalize(name), version


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def is_wanted(file_name: str) -> bool:
    """Whether a file is a wheel for one of the Pythons and platforms."""
    if not file_name.endswith(".whl"):
        return False
    pythons, abi, platforms = (part.split(".") for part in file_name.removesuffix(".whl").rsplit("-", 3)[1:])
    fits = bool(_PYTHONS & {*pythons}) or "abi3" in abi
    return fits and not abi[0].endswith("t") and any(_PLATFORM.fullmatch(platform) for platform in platforms)


def fetch(index: str, pin: tuple[str, str]) -> list[str]:
    """The lines of the list for a version, from an index that answers in JSON (PEP 691)."""
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    with urllib.request.urlopen(urllib.request.Request(f"{index}/{pin[0]}/", headers=accept), timeout=60) as answer:
        files = json.load(answer)["files"]
    wheels = [file for file in files if is_wanted(file["filename"]) and _read_wheel(file["filename"]) == pin]
    if not wheels:
        raise MissingHashError(f"the package index has no wheel of {'=='.join(pin)}")
    return [f"{file['hashes']['sha256']}  {file['filename']}" for file in wheels]


def main() -> int:
    from functions.local.packaging import local_models

    # private, but pip has no other place from which the address of the public index can be read
    public = importlib.import_module("pip._internal.models.index").PyPI.simple_url
    index = os.environ.get("PIP_INDEX_URL", public).rstrip("/")
    lines = [*read_requirements(REPOSITORY / FILE), local_models.MINILM_REQUIREMENT]
    pins = sorted({_read_pin(line) for line in lines})
    try:
        with ThreadPoolExecutor(8) as pool:
            found = [line for fetched in pool.map(lambda pin: fetch(index, pin), pins) for line in fetched]
    except (OSError, MissingHashError) as error:
        print(f"ibid: the hashes could not be fetched: {error}", file=sys.stderr)
        return 1
    LIST.write_text("".join(f"{line}\n" for line in sorted(found, key=lambda line: line.split()[1].lower())))
    print(f"ibid: {LIST.relative_to(REPOSITORY)} has the hashes of {len(found)} wheels of {len(pins)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
