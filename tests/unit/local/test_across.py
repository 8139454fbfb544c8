"""Which questions are asked of documents in another language, and which goals their figures have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from functions.local.evaluation.across import Crossed, list_figures, read_crossings
from functions.local.evaluation.asking import Asked
from functions.local.evaluation.question_sets import Question
from functions.local.evaluation.ranking_scores import RankingScores
from functions.local.evaluation.scores import Goals

GOALS = Goals(across_hit_8=0.9, across_refused=0.1, across_off_topic={"fr": 0.75})


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def query(name: str, lang: str, *, gold: bool = True) -> dict[str, Any]:
    evidence = [{"doc_id": "d", "passage_id": "p"}] if gold else []
    return {"query_id": name, "question": f"{name}?", "evidence": evidence, "lang": lang}


def write_set(root: Path, name: str, *queries: Mapping[str, Any]) -> None:
    write_lines(root / name / "corpus.jsonl", [{"passage_id": "p", "doc_id": "d", "title": None, "text": "text"}])
    write_lines(root / name / "queries.jsonl", queries)


def list_crossings(root: Path, **translated: str) -> list[tuple[str, str, str, list[str]]]:
    """The kind, direction, set and words of each crossing, with French translations of questions of the set `mine`."""
    rows = [{"query_id": i, "set": "mine", "lang": "fr", "question": text} for i, text in translated.items()]
    write_lines(root / "translated.jsonl", rows)
    found = read_crossings(root / "translated.jsonl", root=root)
    return [(one.kind, one.direction, one.questions.name, [q.text for q in one.questions.questions]) for one in found]


def crossed(kind: Any, name: str, *, ranks: Sequence[float], refused: int = 0) -> Crossed:
    """Answerable questions with these scores, or off-topic ones for scores below zero; the first ones are refused."""
    asked = []
    for number, rank in enumerate(ranks):
        scores = RankingScores(*[rank] * 6) if rank >= 0 else None
        evidence = 0.0 if number < refused else 1.0
        asked.append(Asked(Question("q", "?", "fr", frozenset()), scores, scores, 1.0, False, evidence, threshold=0.5))
    return Crossed(name, kind, "fr", "fr→en", asked)


def test_translated_questions_are_asked_of_their_own_set(tmp_path: Path) -> None:
    """LANG-4, EVAL-3"""
    write_set(tmp_path, "mine", query("a", "en"), query("b", "en"))
    write_set(tmp_path, "other", query("a", "en"))
    assert list_crossings(tmp_path, a="Quoi ?") == [("translated", "fr→en", "mine", ["Quoi ?"])]


def test_a_translation_keeps_the_evidence_of_the_original(tmp_path: Path) -> None:
    """EVAL-3"""
    write_set(tmp_path, "mine", query("a", "en"))
    list_crossings(tmp_path, a="Quoi ?")
    [found] = read_crossings(tmp_path / "translated.jsonl", root=tmp_path)
    assert found.questions.questions == (Question("a", "Quoi ?", "fr", frozenset({"p"}), frozenset({"d"})),)


def test_questions_in_another_language_than_most_of_a_set_are_asked_as_they_are(tmp_path: Path) -> None:
    """LANG-4"""
    write_set(tmp_path, "reports", query("a", "en"), query("b", "fr"), query("c", "en"))
    assert list_crossings(tmp_path) == [("own", "fr→en", "reports", ["b?"])]


def test_questions_without_an_answer_are_asked_of_sets_in_the_other_language(tmp_path: Path) -> None:
    """RET-8, LANG-4"""
    write_set(tmp_path, "mine", query("a", "en"))
    index = {"set": "mine", "index_doc_ids": ["d"]}
    (tmp_path / "unanswerable_index.json").write_text(json.dumps({lang: {"pages": index} for lang in ("en", "fr")}))
    for lang in ("en", "fr"):
        write_lines(tmp_path / f"unanswerable_{lang}.jsonl", [query(f"nothing {lang}", lang, gold=False)])
    assert list_crossings(tmp_path, a="Quoi ?") == [
        ("translated", "fr→en", "mine", ["Quoi ?"]),
        ("off-topic", "fr→en", "mine", ["nothing fr?"]),
    ]


def test_several_sets_have_their_goals_together() -> None:
    """EVAL-2"""
    one, two = crossed("translated", "one", ranks=[1.0]), crossed("translated", "two", ranks=[0.0], refused=1)
    figures = list_figures([one, two, crossed("translated", "all", ranks=[1.0, 0.0], refused=1)], GOALS)
    assert [(row["figure"], row["value"]) for row in figures if not row["ok"]] == [
        ("across_languages: translated fr→en, all: hit_8", 0.5),
        ("across_languages: translated fr→en, all: refused", 0.5),
    ]


def test_a_set_that_is_alone_has_the_goals() -> None:
    """EVAL-2"""
    figures = list_figures([crossed("own", "reports", ranks=[0.0] * 10, refused=1)], GOALS)
    assert [(row["figure"].rpartition(": ")[2], row["value"], row["ok"]) for row in figures] == [
        ("hit_8", 0.0, False),
        ("ndcg", 0.0, True),
        ("refused", 0.1, True),
    ]


def test_questions_without_an_answer_have_a_goal_by_their_language() -> None:
    """EVAL-2, RET-8"""
    [row] = list_figures([crossed("off-topic", "mine", ranks=[-1, -1], refused=1)], GOALS)
    assert (row["figure"], row["value"], row["baseline"], row["ok"]) == (
        "across_languages: off-topic fr→en, mine: refused",
        0.5,
        0.75,
        False,
    )
