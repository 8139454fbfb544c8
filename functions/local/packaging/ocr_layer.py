"""Builds a layer with which the ingest function reads scans on Lambda: Tesseract's library, a program, languages.

`python -m functions.local.packaging.ocr_layer [--languages eng+fra]` writes `.build/lambda/layers/ocr.zip`. The
library comes in the wheel of tesserocr; the languages are those of the Tesseract installed here, and good for any
machine.
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

from functions.local.packaging import artifacts
from functions.local.packaging.artifacts import ArtifactError, Target

TESSEROCR: Final = "tesserocr==2.13.0"


def build(target: Target, languages: str) -> Path:
    """The zip file of the layer for `target`, with `languages` like "eng+fra"; raises ArtifactError."""
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
    """The files of `languages` here; raises ArtifactError where Tesseract or one of them is not installed."""
    try:
        said = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        raise ArtifactError("the languages of the layer are taken from an installed Tesseract; there is none") from None
    folder = re.search(r'"(.+)"', said)
    files = [Path(folder[1] if folder else "") / f"{language}.traineddata" for language in languages.split("+")]
    if missing := [file.stem for file in files if not file.exists()]:
        raise ArtifactError(f"Tesseract is installed without {' and '.join(missing)}")
    return files


def _provide_library(target: Target, folder: Path) -> None:
    if target == artifacts.HOST:
        artifacts.copy_installed([TESSEROCR], folder)
    else:
        artifacts.fetch(target, folder, [TESSEROCR])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m functions.local.packaging.ocr_layer", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--languages", default="eng+fra")
    try:
        path = build(artifacts.LAMBDA, parser.parse_args(argv).languages)
    except ArtifactError as error:
        print(f"ibid: {error}", file=sys.stderr)
        return 1
    print(f"ibid: {path.relative_to(artifacts.REPOSITORY)}: {path.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
