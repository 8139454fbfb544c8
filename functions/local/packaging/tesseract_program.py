#!/usr/bin/env python3
"""`bin/tesseract` of the OCR layer: the part of Tesseract's command line that `adapters/tesseract.py` uses.

    tesseract --list-langs
    tesseract stdin stdout -l LANGUAGES --psm MODE tsv

No Tesseract program can be installed on Lambda, but the wheel of tesserocr contains Tesseract's library.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

LAYER = Path(__file__).resolve().parent.parent
sys.path.append(str(LAYER / "python"))


def main(arguments: list[str]) -> int:
    tesserocr = importlib.import_module("tesserocr")  # only the layer has it, so a type checker cannot find it

    trained = os.environ.get("TESSDATA_PREFIX") or str(LAYER / "tessdata")
    match arguments:
        case ["--list-langs"]:
            print(*tesserocr.get_languages(trained)[1], sep="\n")
        case ["stdin", "stdout", "-l", languages, "--psm", mode, "tsv"]:
            with (
                tempfile.NamedTemporaryFile(suffix=".png") as picture,
                tesserocr.PyTessBaseAPI(path=trained, lang=languages, psm=int(mode)) as api,
            ):
                picture.write(sys.stdin.buffer.read())
                picture.flush()
                api.SetImageFile(picture.name)
                sys.stdout.buffer.write(api.GetTSVText(0).encode())
        case _:
            print(f"not supported: {arguments}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
