"""The health report tells the clean files of the question sets from the same files damaged on purpose."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pypdfium2
import pytest

from functions.adapters import tesseract
from functions.adapters.postgres import documents
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.core import ports
from functions.core.extraction.documents import open_document
from functions.core.ingestion.quality import Quality
from functions.core.ingestion.worker import Worker
from functions.core.settings import Settings
from functions.core.text.token_estimate import estimate_tokens
from tests.support import library
from tests.support.damaged_documents import DAMAGES, make_lines_pdf, make_scan_pdf
from tests.support.requirements import need_eval_data, need_tesseract

FEWEST_WORDS = 700
"""Of a shorter document, too few lines end inside a word or a sentence to say that this is damage."""
SETS = ("pages_en/pdf", "pages_fr/pdf", "tables_eu")


class OneVector:
    """An embedder of a single vector, because the quality of the text does not depend on vectors."""

    dimensions = library.DIMENSIONS
    max_input_tokens = 512

    def embed(self, texts: Sequence[str]) -> ports.Matrix:
        return np.tile(np.eye(1, self.dimensions, dtype=np.float32), (len(texts), 1))

    def count_tokens(self, text: str) -> int:
        return estimate_tokens(text)


class OneFile:
    """The part of an object store that a worker uses, over one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def download(self, path: str, target: Path) -> None:
        shutil.copy(self._path, target)


@pytest.fixture
def db(database: str) -> Iterator[Database]:
    opened = Database(database)
    yield opened
    opened.close()


def rate(db: Database, dsn: str, file: Path, *, reads_scans: bool = True) -> Quality:
    """The quality in the health report of a file that is ingested, with or without OCR."""
    document_id = library.add_document(db)
    library.store_object(dsn, library.ADA, document_id)
    store = cast(ports.ObjectStore, OneFile(file))
    recognizer = tesseract.find_tesseract() if reads_scans else None
    server = library.add_server(db)
    outcome = Worker(JobStore(db), store, server, OneVector(), Settings(), recognizer=recognizer).ingest_next()
    assert outcome is not None
    assert outcome.status == "done", (file, outcome)
    with db.as_user(library.ADA) as connection:
        found = documents.find(connection, document_id)["health"]["quality"]
        documents.delete_document(connection, document_id)  # otherwise the same bytes would be a duplicate
    return Quality(**found)


def read_lines(file: Path) -> list[str]:
    """The lines of a PDF that are outside of its tables."""
    lines: list[str] = []
    with open_document(file, "pdf", max_pages=100) as document:
        for page in document.pages():
            text = page.text
            for table in page.tables:
                text = text[: table.start] + " " * (table.end - table.start) + text[table.end :]
            lines += [line.strip() for line in text.splitlines() if line.strip()]
    return lines


def long_texts() -> Iterator[tuple[str, list[str]]]:
    """Every second document that is long enough, as its name and its lines."""
    files = (file for name in SETS for file in sorted(need_eval_data(name).glob("*.pdf")))
    texts = ((file.name, read_lines(file)) for file in files)
    yield from [text for text in texts if sum(len(line.split()) for line in text[1]) >= FEWEST_WORDS][::2]


@pytest.mark.parametrize("name", SETS)
def test_clean_files_are_rated_good(db: Database, database: str, name: str) -> None:
    """LIB-10"""
    need_tesseract()
    rated = {file.name: rate(db, database, file) for file in sorted(need_eval_data(name).glob("*.pdf"))}
    assert {file: quality for file, quality in rated.items() if quality.rating != "good"} == {}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_not(db: Database, database: str, tmp_path: Path, damage: str) -> None:
    """LIB-10: of the documents that are long enough, hardly one is good, and most are bad."""
    ratings: Counter[str] = Counter()
    for name, lines in long_texts():
        damaged = DAMAGES[damage](lines, random.Random(1))
        ratings[rate(db, database, make_lines_pdf(tmp_path / name, damaged)).rating] += 1
    print(damage, dict(ratings))
    assert ratings.total() >= 10
    assert ratings["good"] <= 0.1 * ratings.total()
    assert ratings["bad"] >= 0.6 * ratings.total()


def test_empty_pages_are_not_good(db: Database, database: str, tmp_path: Path) -> None:
    """LIB-10"""
    lines = read_lines(sorted(need_eval_data(SETS[0]).glob("*.pdf"))[0])
    empty = make_lines_pdf(tmp_path / "empty.pdf", lines[:38], blank_pages=2)
    assert rate(db, database, empty) == Quality("bad", {"pages_without_text": "bad"})
    some_empty = make_lines_pdf(tmp_path / "some.pdf", lines[:190], blank_pages=2)
    assert rate(db, database, some_empty) == Quality("check", {"pages_without_text": "check"})


def test_a_page_of_which_only_a_picture_is_known_is_not_good(db: Database, database: str, tmp_path: Path) -> None:
    """LIB-10: a scan behind pages with text, without OCR."""
    lines = read_lines(sorted(need_eval_data(SETS[0]).glob("*.pdf"))[0])
    pages, scan = (
        make_lines_pdf(tmp_path / "text.pdf", lines[:190]),
        make_scan_pdf(tmp_path / "scan.pdf", lines, dpi=72),
    )
    joined = pypdfium2.PdfDocument(pages)
    joined.import_pages(pypdfium2.PdfDocument(scan))
    joined.save(tmp_path / "joined.pdf")
    assert rate(db, database, tmp_path / "joined.pdf", reads_scans=False) == Quality(
        "check", {"pages_not_read": "check"}
    )


def test_a_bad_scan_is_not_good(db: Database, database: str, tmp_path: Path) -> None:
    """LIB-10, ING-2"""
    need_tesseract()
    lines = read_lines(sorted(need_eval_data(SETS[0]).glob("*.pdf"))[0])[:38]
    clean, bad = (make_scan_pdf(tmp_path / f"{dpi}.pdf", lines, dpi=dpi) for dpi in (200, 45))
    assert rate(db, database, clean) == Quality("good", {})
    assert "ocr_confidence" in rate(db, database, bad).reasons
