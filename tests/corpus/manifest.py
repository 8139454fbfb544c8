"""The robustness corpus as its manifest describes it, and whether the outcome of a file is the expected one."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.support.requirements import REPOSITORY

Expectation = Literal["ok", "ocr", "no_text", "other_type", "damaged", "wrong_type", "password", "too_big"]

# The error codes that name the fault of a file correctly; `indexed` where reading the file is also right.
PLAIN_CODES: dict[Expectation, frozenset[str]] = {
    "ok": frozenset(),
    "ocr": frozenset({"no_text", "empty"}),
    "no_text": frozenset({"no_text", "empty"}),
    "other_type": frozenset({"unsupported_type"}),
    "damaged": frozenset({"corrupt", "empty"}),
    "wrong_type": frozenset({"unsupported_type"}),
    "password": frozenset({"encrypted"}),
    "too_big": frozenset({"too_large", "too_many_pages"}),
}
MAY_BE_INDEXED: frozenset[Expectation] = frozenset({"ok", "ocr", "other_type", "damaged", "wrong_type", "too_big"})


# The only text of this file is outside its pages, where no reader sees it.
ALSO_RIGHT = {"imagemagick-images.pdf": "no_text"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the corpus; `pages` is given for PDF files, `words` (what a person reads) for scans.

    `characters` is the length of the text that the corpus' reference reader found, if it was counted.
    """

    path: Path
    expect: Expectation
    kinds: frozenset[str]
    pages: int | None
    words: str | None
    characters: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a file, and the peak memory of worker and OCR meanwhile.

    `read_words` is None if there are no words to look for.
    """

    status: Literal["indexed", "failed", "refused", "unfinished"]
    code: str | None = None
    message: str = ""
    page_count: int | None = None
    chunk_count: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0
    duplicate: bool = False
    read_words: bool | None = None


def data_root() -> Path:
    """The folder of the corpus: IBID_CORPUS_DATA, or the folder beside the repository."""
    return Path(os.environ.get("IBID_CORPUS_DATA") or REPOSITORY / "../shared/corpus").resolve()


def read_manifest(folder: Path) -> list[Entry]:
    lines = (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [_read_entry(folder, json.loads(line)) for line in lines]


def _read_entry(folder: Path, row: dict[str, Any]) -> Entry:
    path = folder / row["file"]
    known = (row.get("pages"), row.get("ocr_contains"), row.get("text_chars"))
    return Entry(path, row["expect"], frozenset(row["kind"]), *known)


def choose_some(entries: Sequence[Entry], count: int) -> list[Entry]:
    """At most `count` files per pair of expectation and kind, in order, so that every pair occurs."""
    taken: dict[tuple[str, str], int] = {}
    chosen = []
    for entry in entries:
        pairs = [(entry.expect, kind) for kind in entry.kinds]
        if any(taken.get(pair, 0) < count for pair in pairs):
            chosen.append(entry)
            for pair in pairs:
                taken[pair] = taken.get(pair, 0) + 1
    return chosen


def find_deviation(entry: Entry, outcome: Outcome, *, has_ocr: bool) -> str | None:
    """How the outcome differs from what the corpus expects, in words; None if it does not."""
    if outcome.status == "unfinished":
        return "not finished in time"
    if outcome.status == "indexed":
        return _find_fault_of_indexed(entry, outcome, has_ocr)
    if outcome.chunk_count:
        return f"{outcome.status} with {outcome.chunk_count} chunks"
    if not outcome.message.endswith("."):
        return f"{outcome.code} without a sentence: {outcome.message!r}"
    if outcome.code not in PLAIN_CODES[entry.expect] | {ALSO_RIGHT.get(entry.path.name, "")}:
        return f"{outcome.status} as {outcome.code}: {outcome.message}"
    return None


def _find_fault_of_indexed(entry: Entry, outcome: Outcome, has_ocr: bool) -> str | None:
    if entry.expect not in MAY_BE_INDEXED and not entry.characters:  # one or two words count as text
        return f"indexed with {outcome.chunk_count} chunks"
    if outcome.chunk_count < 1:
        return "indexed without a chunk"
    if entry.pages is not None and entry.expect in ("ok", "ocr") and outcome.page_count != entry.pages:
        return f"{outcome.page_count} pages instead of {entry.pages}"
    if entry.expect == "ocr" and has_ocr and outcome.read_words is False:
        return f"indexed, but {entry.words!r} was not read"
    return None
