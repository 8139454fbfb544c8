"""Reads the manifest of the robustness corpus, and compares the outcome of each file with its expectation."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.support.requirements import REPOSITORY

Expectation = Literal["ok", "ocr", "no_text", "other_type", "damaged", "wrong_type", "password", "too_big"]

# The error codes that are correct for each expectation; MAY_BE_INDEXED holds those where indexing is correct too.
CORRECT_CODES: dict[Expectation, frozenset[str]] = {
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


# Codes that are correct for single files. The only text of this one is outside its pages, where no reader sees it.
ALSO_CORRECT = {"imagemagick-images.pdf": "no_text"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the corpus; `pages` is given for PDF files.

    `words` are words that a person reads on a scan. `characters` is the length of the text that the reference reader of
    the corpus found, where it is given.
    """

    path: Path
    expect: Expectation
    kinds: frozenset[str]
    pages: int | None
    words: str | None
    characters: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of ingesting a file, with its duration and the peak memory of worker and OCR.

    `still_seconds` is the longest time in which nothing about the document changed: its status, stage or pages read.
    `has_words` says whether the words of a scan were read; None when the entry has no words.
    """

    status: Literal["indexed", "failed", "refused", "unfinished"]
    code: str | None = None
    message: str = ""
    page_count: int | None = None
    chunk_count: int = 0
    seconds: float = 0.0
    still_seconds: float = 0.0
    peak_bytes: int = 0
    is_duplicate: bool = False
    has_words: bool | None = None


def data_root() -> Path:
    """The folder of the corpus: IBID_CORPUS_DATA or its default."""
    return Path(os.environ.get("IBID_CORPUS_DATA") or REPOSITORY / "../shared/corpus").resolve()


def read_manifest(folder: Path) -> list[Entry]:
    lines = (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [_read_entry(folder, json.loads(line)) for line in lines]


def _read_entry(folder: Path, row: dict[str, Any]) -> Entry:
    path = folder / row["file"]
    details = (row.get("pages"), row.get("ocr_contains"), row.get("text_chars"))
    return Entry(path, row["expect"], frozenset(row["kind"]), *details)


def choose_some(entries: Sequence[Entry], count: int) -> list[Entry]:
    """Chooses about `count` files for each pair of expectation and kind, in their order, so that no pair is missing."""
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
    """Describes how the outcome differs from the expectation; None when it does not."""
    if outcome.status == "unfinished":
        return "did not finish in time"
    if outcome.status == "indexed":
        return _find_indexing_fault(entry, outcome, has_ocr)
    if outcome.chunk_count:
        return f"{outcome.status} with {outcome.chunk_count} chunks"
    if not outcome.message.endswith("."):
        return f"{outcome.code} without a sentence: {outcome.message!r}"
    if outcome.code not in CORRECT_CODES[entry.expect] | {ALSO_CORRECT.get(entry.path.name, "")}:
        return f"{outcome.status} as {outcome.code}: {outcome.message}"
    return None


def _find_indexing_fault(entry: Entry, outcome: Outcome, has_ocr: bool) -> str | None:
    if entry.expect not in MAY_BE_INDEXED and not entry.characters:  # files with a word or two may be indexed
        return f"indexed with {outcome.chunk_count} chunks"
    if outcome.chunk_count < 1:
        return "indexed without a chunk"
    if entry.pages is not None and entry.expect in ("ok", "ocr") and outcome.page_count != entry.pages:
        return f"{outcome.page_count} pages instead of {entry.pages}"
    if entry.expect == "ocr" and has_ocr and outcome.has_words is False:
        return f"indexed, but {entry.words!r} was not read"
    return None
