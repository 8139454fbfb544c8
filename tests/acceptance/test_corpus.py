"""Part of the robustness corpus through its own server and worker; `make corpus` runs all of it, which takes minutes.

Each pair of an expectation and a kind of file occurs once here: always the same 36 files of 244.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import manifest
from tests.corpus.manifest import Entry, Outcome
from tests.corpus.run import Result, run_corpus
from tests.support.requirements import need_corpus, need_tesseract


@pytest.fixture(scope="module")
def result() -> Result:
    need_tesseract()
    return run_corpus(manifest.choose_some(manifest.read_manifest(need_corpus()), 1))


def test_every_file_has_the_outcome_the_corpus_expects(result: Result) -> None:
    """ING-1, ING-2, ING-11, LIB-4, LIB-5, LIB-10"""
    assert result.deviations == {}


def test_no_file_crashes_the_worker_or_exceeds_its_time_and_memory(result: Result) -> None:
    """ING-11"""
    assert [row for row in result.figures if not row["ok"]] == []


def test_a_file_without_progress_for_over_a_minute_is_named() -> None:
    entry = Entry(Path("slow.pdf"), "ok", frozenset(), None, None, None)
    found = Result(
        ((entry, Outcome("indexed", page_count=1, chunk_count=1, still_seconds=60.1)),), 0, 1, 60.1, has_ocr=True
    )
    assert [row["figure"] for row in found.figures if not row["ok"]] == ["longest without progress, s: slow.pdf"]
