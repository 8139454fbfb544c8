"""The translated questions fit the question sets, and are measured on documents in the other language."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from functions.core.text.languages import detect_language
from functions.local.evaluation import across, command, question_sets
from functions.local.evaluation.library import load_library
from tests.eval.__main__ import TRANSLATIONS
from tests.support.requirements import need_eval_data

ROWS = [json.loads(line) for line in TRANSLATIONS.read_text(encoding="utf-8").splitlines()]
TEXTS = {
    "soupe": "La soupe à l'oignon se prépare avec des oignons, du bouillon et du fromage râpé.",
    "pain": "Le pain lève parce que la levure transforme le sucre en gaz carbonique.",
}
QUESTIONS = {"soupe": "Quel fromage met-on dans la soupe à l'oignon ?", "pain": "Pourquoi le pain lève-t-il ?"}
TRANSLATED = {"soupe": "How is French onion soup made?", "pain": "Why does bread rise?"}


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def cuisine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with one French set, and English translations of its questions."""
    folder = tmp_path / "sets" / "cuisine"
    folder.mkdir(parents=True)
    corpus = [{"passage_id": name, "doc_id": name, "title": name, "text": text} for name, text in TEXTS.items()]
    queries = [
        {"query_id": name, "question": text, "evidence": [{"doc_id": name, "passage_id": name}], "lang": "fr"}
        for name, text in QUESTIONS.items()
    ]
    translated = [
        {"query_id": name, "set": "cuisine", "lang": "en", "question": text} for name, text in TRANSLATED.items()
    ]
    write_lines(folder / "corpus.jsonl", corpus)
    write_lines(folder / "queries.jsonl", queries)
    write_lines(tmp_path / "translated.jsonl", translated)
    monkeypatch.setenv("IBID_EVAL_DATA", str(tmp_path / "sets"))
    monkeypatch.setenv("IBID_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_set_is_indexed_once_for_its_own_and_the_translated_questions(
    cuisine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LANG-4, EVAL-2: the figures are in the table and in the last line."""
    counted = Mock(wraps=load_library)
    monkeypatch.setattr(command, "load_library", counted)
    standards = command.Standards(translations=cuisine / "translated.jsonl")
    command.main(["cuisine", across.NAME], standards)
    *table, last = capsys.readouterr().out.splitlines()
    found = {row["figure"]: row["value"] for row in json.loads(last)["figures"] if across.NAME in row["figure"]}
    label = "across_languages: translated en→fr, cuisine"
    assert (counted.call_count, found[f"{label}: hit_8"]) == (1, 1.0)
    assert [*found] == [f"{label}: {figure}" for figure in ("hit_8", "ndcg", "refused")]
    assert [line.split()[:4] for line in table if line.startswith("translated")] == [
        ["translated", "en→fr", "cuisine", "2"]
    ]


def test_translated_questions_do_not_choose_a_threshold(cuisine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """RET-8"""
    standards = command.Standards(translations=cuisine / "translated.jsonl")
    assert command.main([across.NAME, "--calibrate", "--save"], standards) == 2
    assert "neither calibrated" in capsys.readouterr().err


def test_both_directions_have_at_least_65_questions() -> None:
    counted = Counter(row["lang"] for row in ROWS)
    assert (set(counted), min(counted.values()) >= 65) == ({"en", "fr"}, True)


def test_a_translation_holds_nothing_of_the_sets() -> None:
    assert [row for row in ROWS if [*row] != ["query_id", "set", "lang", "question"]] == []
    assert len({(row["set"], row["query_id"]) for row in ROWS}) == len(ROWS)


def test_a_translated_question_is_a_question_in_its_language() -> None:
    marks = {"en": "?", "fr": " ?"}
    assert [row for row in ROWS if not row["question"].endswith(marks[row["lang"]])] == []
    other = {"en": "fr", "fr": "en"}
    assert [row for row in ROWS if detect_language(row["question"]) == other[row["lang"]]] == []


def test_every_translation_belongs_to_an_answerable_question_in_the_other_language() -> None:
    """EVAL-3"""
    root = need_eval_data()
    sets = [question_sets.read_set(name, root=root) for name in question_sets.list_sets(root)]
    originals = {(one.name, question.id): question for one in sets for question in one.questions}
    found = [originals[row["set"], row["query_id"]] for row in ROWS]
    assert [one for one in found if not one.gold] == []
    assert [one.lang for one in found] == [{"en": "fr", "fr": "en"}[row["lang"]] for row in ROWS]
    assert {one.text for one in found} & {row["question"] for row in ROWS} == set()


def test_the_questions_of_both_languages_are_asked_of_six_sets() -> None:
    """LANG-4"""
    found = across.read_crossings(TRANSLATIONS, root=need_eval_data())
    assert Counter((one.kind, one.direction) for one in found) == {
        ("translated", "fr→en"): 3,
        ("translated", "en→fr"): 2,
        ("own", "fr→en"): 1,
        ("off-topic", "fr→en"): 4,
        ("off-topic", "en→fr"): 2,
    }
