"""Builds the Lambda layer that lets the ingest function read scans: Tesseract's library, a program and languages.

`python -m functions.local.packaging.ocr_layer [--languages eng+fra]` writes `.build/lambda/layers/ocr.zip`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

from functions.local.packaging import artifacts, packages
from functions.local.packaging.packages import HOST, LAMBDA, REPOSITORY, PackagingError, Target

TESSEROCR: Final = "tesserocr==2.13.0"


def build(target: Target, languages: str) -> Path:
    """Builds the zip file of the layer for `target`, with `languages` like "eng+fra"; raises PackagingError.

    The library comes from the wheel of tesserocr. The language files are copied from the Tesseract installed on this
    machine; they are the same on every architecture.
    """
    trained = find_languages(languages)
    path = target.folder / "layers" / "ocr.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        program = folder / "bin" / "tesseract"
        shutil.copyfile(Path(__file__).with_name("tesseract_program.py"), program)
        program.chmod(0o755)
        (folder / "tessdata").mkdir()
        for file in trained:
            shutil.copy(file, folder / "tessdata")
        _provide_library(target, folder / "python")
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(filter(Path.is_file, folder.rglob("*"))):
                artifacts.add_file(archive, folder, PurePosixPath(file.relative_to(folder)))
    return path


def find_languages(languages: str) -> list[Path]:
    """Lists the language files of the installed Tesseract; raises PackagingError when it or a language is missing."""
    try:
        output = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        raise PackagingError("the layer copies its languages from Tesseract, which is not installed here") from None
    folder = re.search(r'"(.+)"', output)
    files = [Path(folder[1] if folder else "") / f"{language}.traineddata" for language in languages.split("+")]
    if missing := [file.stem for file in files if not file.exists()]:
        raise PackagingError(f"Tesseract is installed without {' and '.join(missing)}")
    return files


def _provide_library(target: Target, folder: Path) -> None:
    if target == HOST:
        packages.copy_installed([TESSEROCR], folder)
    else:
        packages.fetch(target, folder, [TESSEROCR])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m functions.local.packaging.ocr_layer", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--languages", default="eng+fra")
    try:
        path = build(LAMBDA, parser.parse_args(argv).languages)
    except PackagingError as error:
        print(f"ibid: {error}", file=sys.stderr)
        return 1
    print(f"ibid: {path.relative_to(REPOSITORY)}: {path.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
