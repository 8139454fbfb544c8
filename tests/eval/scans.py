"""Measures how much worse scanned documents are found: `python -m tests.eval.scans [pages_en pages_fr]`.

The worker indexes a page set twice: as it is, and with scans, which OCR reads, in place of the files that have one. The
questions that these files answer are asked of both. Prints a table and, as the last line, a JSON object; returns 1 when
a set loses more than MAX_LOSS.
"""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import sys
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from functions.adapters import tesseract
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.core import models, ports
from functions.core.extraction.documents import ExtractedDocument, open_document
from functions.core.ingestion.worker import Worker
from functions.core.settings import Settings
from functions.local.evaluation import asking, command, question_sets, ranking_scores
from functions.local.evaluation.library import Library
from functions.local.evaluation.scores import mean_scores
from functions.runtime import policy
from functions.runtime.config import Config
from tests.support import library

SETS = ("pages_en", "pages_fr")
PROCESSES = 2
MAX_LOSS = 0.05  # of hit@5, as a difference of shares
HITS = ("hit_1", "hit_5", "hit_10")

ScannedPage = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The scores of a set with text and with scans.

    `words_found` is the share of the words in the text that OCR reads on the scanned pages. `seconds` is the processor
    time that reading a scanned page takes.
    """

    name: str
    pages: int
    questions: int
    words_found: float
    seconds: float
    text: ranking_scores.RankingScores
    scans: ranking_scores.RankingScores

    @property
    def lost(self) -> float:
        return self.text.hit_5 - self.scans.hit_5


class CachingRecognizer:
    """Reads every picture once, so that pages can be read in parallel before the worker asks for them one by one."""

    def __init__(self, inner: ports.TextRecognizer) -> None:
        self._inner = inner
        self._known: dict[bytes, ports.RecognizedPage] = {}

    def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
        key = hashlib.sha256(png).digest()
        if key not in self._known:
            self._known[key] = self._inner.recognize(png, timeout=timeout)
        return self._known[key]


class OneFile:
    """The part of an object store that a worker uses, over one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def download(self, path: str, target: Path) -> None:
        shutil.copyfile(self._path, target)


def compare(
    database: Database,
    name: str,
    embedder: ports.Embedder,
    *,
    root: Path,
    documents: Collection[str] = (),
    scanned: Collection[str] = (),
) -> Comparison:
    """Measures a set or some `documents` of it; only the documents in `scanned` are replaced and asked about."""
    found = tesseract.find_tesseract()
    assert found is not None, "Tesseract is not installed"
    recognizer = CachingRecognizer(found)
    questions = question_sets.read_set(name, root=root)
    files = {file.doc_id: file.path for file in questions.files if not documents or file.doc_id in documents}
    scan_files = {doc_id: path for doc_id, path in find_scans(root / name).items() if doc_id in (scanned or files)}
    asked = [one for one in questions.questions if one.gold and all(unit[0] in scan_files for unit in one.gold)]
    before = _measure_processor_seconds()
    pages = read_pages(scan_files, recognizer)
    seconds = (_measure_processor_seconds() - before) / len(pages)
    words_found = measure_word_overlap(read_pages({doc_id: files[doc_id] for doc_id in scan_files}, recognizer), pages)
    text, scans = (
        mean_scores(_ask(database, indexed, asked, embedder, recognizer)) for indexed in (files, files | scan_files)
    )
    return Comparison(name, len(pages), len(asked), words_found, seconds, text, scans)


def find_scans(folder: Path) -> dict[str, Path]:
    """Finds the scan of each document that has one."""
    rows = map(json.loads, (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["doc_id"]: folder / row["scan_path"] for row in rows if "scan_path" in row}


def read_pages(files: Mapping[str, Path], recognizer: ports.TextRecognizer) -> dict[ScannedPage, str]:
    """Reads the text of every page of these PDF files."""

    def read(page: ScannedPage) -> str:
        with _open(files[page[0]], recognizer) as document:
            return next(document.pages(page[1])).text

    pages: list[ScannedPage] = []
    for doc_id, path in files.items():
        with _open(path, recognizer) as document:
            pages += ((doc_id, number) for number in range(1, document.page_count + 1))
    with ThreadPoolExecutor(PROCESSES) as pool:  # Tesseract works in processes of its own
        return dict(zip(pages, pool.map(read, pages), strict=True))


def measure_word_overlap(text: Mapping[ScannedPage, str], scanned: Mapping[ScannedPage, str]) -> float:
    """Measures which share of the words of the pages OCR reads on the scanned pages, letter for letter."""
    words = {page: Counter(found.replace("\u00ad", "-\n").split()) for page, found in text.items()}
    common = sum((counted & Counter(scanned[page].split())).total() for page, counted in words.items())
    return common / sum(counted.total() for counted in words.values())


def _open(path: Path, recognizer: ports.TextRecognizer) -> ExtractedDocument:
    return open_document(path, "pdf", max_pages=Settings().max_pages, recognizer=recognizer)


def _ask(
    database: Database,
    files: Mapping[str, Path],
    questions: Sequence[question_sets.Question],
    embedder: ports.Embedder,
    recognizer: ports.TextRecognizer,
) -> list[asking.Asked]:
    user = models.User(str(uuid.uuid4()), False, {})
    server = stored_settings.ensure_default_server(database, policy.LOCAL_SERVER)
    store, names = JobStore(database), {}
    for doc_id, path in files.items():
        document_id = library.add_document(database, user, path.name)
        job_id = store.enqueue_stored_object(library.object_path(user, document_id), "1", None)
        objects = cast(ports.ObjectStore, OneFile(path))
        worker = Worker(store, objects, server, embedder, Settings(), recognizer=recognizer)
        outcome = worker.ingest_next(job_id)
        assert outcome is not None
        assert outcome.status == "done", f"{path}: {outcome.code}"
        names[document_id] = doc_id
    with database.autocommit() as connection:
        connection.execute("vacuum analyze")
    indexed = Library(user, server, names, 0)
    return asking.ask_all(database, indexed, questions, embedder, Settings(), "hybrid")


def _measure_processor_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def print_table(found: Comparison) -> None:
    print(f"\n{found.name}: {found.pages} scanned pages, {found.questions} questions")
    print(f"{found.words_found:.3f} of the words of the text, {found.seconds:.2f} s a page and core")
    print(f"{'':8}{'hit@1':>8}{'hit@5':>8}{'hit@10':>8}")
    rows = {kind: [getattr(scores, hit) for hit in HITS] for kind, scores in _group_scores(found).items()}
    rows["lost"] = [text - scan for text, scan in zip(rows["text"], rows["scans"], strict=True)]
    for kind, values in rows.items():
        print(f"{kind:8}" + "".join(f"{value:8.4f}" for value in values))


def _group_scores(found: Comparison) -> dict[str, ranking_scores.RankingScores]:
    return {"text": found.text, "scans": found.scans}


def list_figures(found: Comparison) -> list[dict[str, Any]]:
    rows = [(f"points of {hit} lost", getattr(found.text, hit) - getattr(found.scans, hit)) for hit in HITS]
    return [_figure(f"{found.name}: {name}", lost, has_goal=name == "points of hit_5 lost") for name, lost in rows]


def _figure(name: str, lost: float, *, has_goal: bool) -> dict[str, Any]:
    return {
        "figure": name,
        "value": round(lost, 4),
        "baseline": MAX_LOSS,
        "ratio": round(lost / MAX_LOSS, 4),
        "goal": 1.0 if has_goal else None,
        "ok": not has_goal or lost <= MAX_LOSS,
    }


def main(argv: Sequence[str]) -> int:
    figures: list[dict[str, Any]] = []
    with command.open_database() as database, command.open_embedder(Config().home) as embedder:
        for name in argv or SETS:
            found = compare(database, name, embedder, root=question_sets.data_root())
            print_table(found)
            figures += list_figures(found)
    print(json.dumps({"name": "scans", "figures": figures}))
    return 0 if all(row["ok"] for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
