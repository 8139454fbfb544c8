"""Which questions show what the guard refuses, and which goals their figures have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from functions.local.evaluation.asking import Asked
from functions.local.evaluation.question_sets import Question, QuestionSet
from functions.local.evaluation.ranking_scores import RankingScores
from functions.local.evaluation.refusals import Case, Refusals, list_figures, read_cases
from functions.local.evaluation.scores import Goals

GOALS = Goals(refused_off_topic={"en": 0.9}, near_misses_refused=0.6, gold_in_context=0.95)


def write_lines(path: Path, *rows: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def query(name: str, **evidence: Any) -> dict[str, Any]:
    return {"query_id": name, "question": f"{name}?", "evidence": [evidence] if evidence else [], "lang": "en"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """English pages and passages, and a report; the index leaves out the passage b."""
    write_lines(tmp_path / "pages" / "corpus.jsonl", {"doc_id": "d", "path": "d.pdf"})
    write_lines(tmp_path / "pages" / "queries.jsonl", query("page", doc_id="d", page=1))
    passages = [{"passage_id": name, "doc_id": name, "text": name} for name in "ab"]
    write_lines(tmp_path / "passages" / "corpus.jsonl", *passages)
    queries = [query(name, doc_id=name, passage_id=name) for name in "ab"]
    write_lines(tmp_path / "passages" / "queries.jsonl", *queries)
    write_lines(tmp_path / "unanswerable_en.jsonl", query("nothing"))
    index = {
        "pages": {"set": "pages", "index_doc_ids": ["d"]},
        "passages": {"set": "passages", "excluded_doc_ids": ["b"]},
    }
    (tmp_path / "unanswerable_index.json").write_text(json.dumps({"en": index}))
    write_lines(tmp_path / "reports_eu" / "corpus.jsonl", {"doc_id": "r", "path": "r.pdf"})
    write_lines(tmp_path / "reports_eu" / "queries.jsonl", query("report", doc_id="r", page=1))
    write_lines(tmp_path / "reports_eu" / "near_misses.jsonl", query("near") | {"scope_doc_id": "r"})
    return tmp_path


def describe(case: Case) -> tuple[str, bool, list[str], list[str], list[str]]:
    library = [passage.id for passage in case.documents.passages] + [file.doc_id for file in case.documents.files]
    return (case.name, case.in_document, library, [q.id for q in case.answerable], [q.id for q in case.unanswerable])


def test_questions_are_asked_in_libraries_of_several_sizes_and_in_single_documents(root: Path) -> None:
    """RET-8, EVAL-3: an article that answers an off-topic question is in none of them."""
    found = [describe(case) for case in read_cases(root) if case.lang == "en"]
    assert found == [
        ("pages", True, ["d"], ["page"], ["nothing"]),
        ("pages", False, ["d"], ["page"], ["nothing"]),
        ("pages and passages", False, ["a", "d"], ["a"], ["nothing"]),
        ("everything", False, ["a"], ["a"], ["nothing"]),
        ("reports", True, ["r"], ["report"], ["near"]),
        ("reports", False, ["r"], ["report"], ["near"]),
    ]


def asked(evidence: Sequence[float], context: float | None = None) -> list[Asked]:
    scores = None if context is None else RankingScores(*[context] * 6)
    question = Question("q", "?", "en", frozenset())
    return [Asked(question, scores, scores, 1.0, False, value, threshold=0.5) for value in evidence]


def refusals(*, near: bool = False, in_document: bool = False) -> Refusals:
    case = Case("reports", "en", QuestionSet("s", (), (), ()), in_document, (), (), near)
    return Refusals(case, 40, asked([0.3, 0.6, 0.7, 0.8], 1.0), asked([0.1, 0.4, 0.45, 0.9]))


def test_the_curve_has_both_refused_shares_at_multiples_of_the_threshold() -> None:
    """RET-8"""
    assert [refusals().refused_shares(factor) for factor in (0.5, 1.0, 1.5)] == [
        (0.0, 0.25),
        (0.25, 0.75),
        (0.75, 0.75),
    ]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (refusals(), {"answerable refused": (0.25, 0.05), "off-topic refused": (0.75, 0.9)}),
        (refusals(near=True), {"answerable refused": (0.25, 0.05), "near misses refused": (0.75, 1.0)}),
        (
            refusals(near=True, in_document=True),
            {
                "answerable refused": (0.25, 0.05),
                "near misses refused": (0.75, 0.6),
                "gold page in the context": (1.0, 0.95),
            },
        ),
    ],
    ids=["off-topic", "near-misses-of-the-library", "near-misses-of-a-document"],
)
def test_each_scope_has_its_goals(found: Refusals, expected: Mapping[str, tuple[float, float]]) -> None:
    """RET-8: values and what they are compared with; 1.0 where there is no goal."""
    rows = {row["figure"].rpartition(": ")[2]: (row["value"], row["baseline"]) for row in list_figures([found], GOALS)}
    assert rows == expected


def test_a_set_may_allow_more_false_refusals_than_the_default() -> None:
    """RET-8"""
    rows = [list_figures([refusals()], Goals(answerable_refused=most))[0] for most in (0.25, 0.2)]
    assert [(row["baseline"], row["ok"]) for row in rows] == [(0.25, True), (0.2, False)]
