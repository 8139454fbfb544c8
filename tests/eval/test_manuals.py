"""The questions about manuals and a law are sound without these, which a program fetches."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from functions.core.text.languages import detect_language
from tests.eval.manuals import __main__ as program
from tests.eval.manuals import documents, law, packages
from tests.support.documents import make_pdf


def read_rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (documents.QUESTIONS / name).read_text(encoding="utf-8").splitlines()]


ANSWERABLE = read_rows("queries.jsonl")
NEAR_MISSES = read_rows("near_misses.jsonl")
ROWS = [*ANSWERABLE, *NEAR_MISSES]
FRENCH = {document.doc_id for document in documents.DOCUMENTS if document.doc_id.endswith("-fr")}


def test_both_languages_have_questions_of_both_kinds() -> None:
    """EVAL-3"""
    assert all(Counter(row["lang"] for row in ANSWERABLE)[lang] >= 30 for lang in ("en", "fr"))
    assert all(Counter(row["lang"] for row in NEAR_MISSES)[lang] >= 12 for lang in ("en", "fr"))
    assert sum(row["lang"] == "fr" and row["scope_doc_id"] not in FRENCH for row in ANSWERABLE) == 6


def test_every_question_is_asked_once() -> None:
    assert len({row["query_id"] for row in ROWS}) == len({row["question"] for row in ROWS}) == len(ROWS)


def test_a_question_is_in_its_language() -> None:
    marks = {"en": "?", "fr": " ?"}
    assert [row for row in ROWS if not row["question"].endswith(marks[row["lang"]])] == []
    other = {"en": "fr", "fr": "en"}
    assert [row for row in ROWS if detect_language(row["question"]) == other[row["lang"]]] == []


def test_a_question_has_an_answer_and_pages_of_its_manual_or_neither() -> None:
    """EVAL-3"""
    assert {row["scope_doc_id"] for row in ROWS} == {document.doc_id for document in documents.DOCUMENTS}
    assert [row for row in ANSWERABLE if not (row["answer"] and row["evidence"] and row["answerable"])] == []
    pages = [(row["scope_doc_id"], place) for row in ANSWERABLE for place in row["evidence"]]
    assert [name for name, place in pages if place["doc_id"] != name or place["page"] < 1 or not place["text"]] == []
    assert [row for row in NEAR_MISSES if row["answer"] or row["evidence"] or row["answerable"]] == []


def test_manuals_that_cannot_be_fetched_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("IBID_REQUIRE_ALL", raising=False)
    monkeypatch.setattr(program, "FOLDER", tmp_path / "set")
    assert program.main() == 2
    assert capsys.readouterr().err.startswith("MISSING: apt-get download debian-policy=4.6.2.0: ")


def test_manuals_already_fetched_become_a_set_with_the_questions(tmp_path: Path) -> None:
    """EVAL-3"""
    pdf = b"%PDF-1.7"
    manual = packages.Manual("m", "m-doc", "1", "usr/m.pdf.gz", sha256(pdf).hexdigest())
    (tmp_path / "m.pdf").write_bytes(pdf)
    documents.write_set(tmp_path, [manual])
    assert (tmp_path / "corpus.jsonl").read_text() == '{"doc_id": "m", "path": "m.pdf"}\n'
    assert [(tmp_path / name).resolve().parent for name in documents.FILES] == [documents.QUESTIONS] * 2


def test_a_law_is_printed_with_its_titles_articles_and_paragraphs() -> None:
    """EVAL-3: the same bytes each time, because the questions name its pages."""
    article = {"type": "article", "data": {"num": "L1", "texteHtml": "<p>One &amp; two.</p><br/>1&#176; A &lt; B"}}
    printed = law.print_law({"type": "code", "data": {"title": "A  law"}, "children": [article]})
    assert printed == law.print_law({"type": "code", "data": {"title": "A  law"}, "children": [article]})
    with pypdfium2.PdfDocument(printed) as pdf:
        lines = pdf[0].get_textpage().get_text_range().splitlines()
    assert lines == ["A law", "1", "A law", "Article L1", "One & two.", "1° A < B"]


def test_evidence_that_is_not_on_its_page_is_found(tmp_path: Path) -> None:
    """EVAL-3"""
    make_pdf(tmp_path / "m.pdf", "A bird flew.", "A cat slept.")
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "m", "path": "m.pdf"}')
    evidence = [{"doc_id": "m", "page": 1, "text": text} for text in ("A bird flew.", "A cat slept.")]
    row = {"query_id": "q", "question": "?", "lang": "en", "answer": "a", "evidence": evidence}
    (tmp_path / "queries.jsonl").write_text(json.dumps(row))
    assert program.list_misplaced(tmp_path) == ["A cat slept."]
