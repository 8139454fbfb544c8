"""Reads mutated files, and draws their pages, as the service does."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from functions.core import errors, models
from functions.core.extraction.isolation import DRAWING, READING, IsolatedDocument, PageDrawer
from functions.core.extraction.page_faults import MAX_TOO_COMPLEX, READING_FAILED, FaultTolerantReader
from tests.fuzz import mutations

PAGES = 4
"""How many pages of a file are read and drawn."""
MAX_SECONDS = (PAGES + 2) * READING.seconds + PAGES * DRAWING.seconds
_KINDS: dict[str, models.FileType] = {".pdf": "pdf", ".docx": "docx"}


@dataclass(slots=True)
class Findings:
    """Counts how runs ended, by outcome; `faults` are the exceptions that are not ours, by seed file and run."""

    runs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)
    slowest: float = 0.0


def fuzz(seeds: Sequence[Path], runs: int, folder: Path, *, first: int = 0) -> Findings:
    """Reads `runs` mutated files. Run number n is the same whenever the seeds are the same."""
    findings, drawer = Findings(), PageDrawer()
    try:
        for number in range(first, first + runs):
            seed = seeds[number % len(seeds)]
            path = folder / f"mutated{seed.suffix}"
            path.write_bytes(mutate(seed, number))
            began = time.monotonic()
            for outcome in read_and_draw(path, drawer):
                findings.outcomes[outcome.partition(":")[0]] += 1
                if outcome.startswith("FAULT"):
                    findings.faults[f"{seed.name}, run {number}"] = outcome
            findings.slowest = max(findings.slowest, time.monotonic() - began)
            findings.runs += 1
    finally:
        drawer.close()
    return findings


def mutate(seed: Path, number: int) -> bytes:
    chance = random.Random(number)
    change = mutations.mutate_pdf if seed.suffix == ".pdf" else mutations.mutate_docx
    content = seed.read_bytes()
    for _ in range(chance.choice((1, 1, 3))):
        with suppress(Exception):  # of an archive that the change before has destroyed
            content = change(content, chance) or content
    return content


def read_and_draw(path: Path, drawer: PageDrawer) -> Iterator[str]:
    """How reading a file and drawing its pages ended."""
    kind = _KINDS[path.suffix]
    try:
        with FaultTolerantReader(IsolatedDocument(path, kind, max_pages=2000)) as document:
            for page in document.pages(max(1, document.page_count - PAGES + 1)):
                if READING_FAILED in page.warnings:
                    yield f"FAULT: page {page.number} could not be read"
                yield "too_complex page" if "too_complex" in page.warnings else "page"
            _ = document.document.metadata  # without the tolerance for faults
            yield "read"
    except errors.IbidError as exc:
        yield exc.code
    except Exception as exc:
        yield f"FAULT: {exc!r}"
    for number in range(1, PAGES + 1) if kind == "pdf" else ():
        try:
            drawer.draw(path, number, scale=0.5)
            yield "drawn"
        except errors.IbidError as exc:
            yield f"not drawn, {exc.code}"
        except Exception as exc:
            yield f"FAULT: drawing page {number}: {exc!r}"


assert MAX_TOO_COMPLEX >= PAGES
