"""A user's own question set, measured with every mode of the evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.core import ports
from functions.core.settings import Settings
from functions.local.evaluation import ablation, calibration, command, question_sets, report, scores

PASSAGES = {
    "sun": ("Astronomy", "The Sun is a star of spectral type G. Its light takes eight minutes to reach the Earth."),
    "moon": ("Astronomy", "The Moon has no atmosphere. Apollo astronauts brought 382 kilograms of rock home."),
    "bread": ("Kitchen", "Bread rises because yeast turns sugar into carbon dioxide. Salt slows the yeast down."),
    "soup": ("Cuisine", "La soupe à l'oignon se prépare avec des oignons, du bouillon et du fromage râpé."),
}
QUESTIONS = {
    "sun": "How long does the light of the Sun take to reach the Earth?",
    "moon": "How much rock did the Apollo astronauts bring home?",
    "bread": "Why does bread rise with yeast?",
    "soup": "Avec quels ingrédients se prépare la soupe à l'oignon ?",
}


@pytest.fixture
def asked(tmp_path: Path) -> question_sets.QuestionSet:
    """EVAL-3: a set in the documented format, outside IBID_EVAL_DATA."""
    corpus = [
        {"passage_id": name, "doc_id": f"{name}.txt", "title": title, "text": text}
        for name, (title, text) in PASSAGES.items()
    ]
    queries = [
        {
            "query_id": name,
            "question": text,
            "evidence": [{"doc_id": f"{name}.txt", "passage_id": name}],
            "lang": "fr" if name == "soup" else "en",
        }
        for name, text in QUESTIONS.items()
    ]
    for path, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (tmp_path / path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return question_sets.read_set(str(tmp_path))


@pytest.fixture
def store(database: str) -> Iterator[Database]:
    with closing(Database(database)) as opened:
        yield opened


@pytest.fixture
def embedder(tmp_path: Path) -> Iterator[ports.Embedder]:
    with command.open_embedder(tmp_path) as opened:
        yield opened


def test_a_set_is_read_with_the_documents_of_its_questions(asked: question_sets.QuestionSet) -> None:
    """EVAL-3"""
    assert [(one.id, one.gold, one.documents) for one in asked.questions] == [
        (name, frozenset({name}), frozenset({f"{name}.txt"})) for name in PASSAGES
    ]
    assert [(one.id, one.title, one.text, one.doc_id) for one in asked.passages] == [
        (name, *PASSAGES[name], f"{name}.txt") for name in PASSAGES
    ]


def test_a_set_is_measured_by_language(
    store: Database, asked: question_sets.QuestionSet, embedder: ports.Embedder, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVAL-1, EVAL-3"""
    found = command.evaluate(store, asked, embedder, Settings())
    assert scores.mean_scores(found.arms["hybrid"]).ndcg == 1.0
    assert [row["figure"] for row in scores.list_figures(found) if not row["ok"]] == []
    report.print_report(found)
    report.print_difference(found, found)
    printed = capsys.readouterr().out
    assert [line.split()[:3] for line in printed.splitlines() if line.startswith("hybrid  ")] == [
        ["hybrid", "en", "3"],
        ["hybrid", "fr", "1"],
        ["hybrid", "all", "4"],
    ]
    assert "fr    +0.0000 [+0.0000, +0.0000]" in printed


def test_the_guard_is_calibrated_on_the_set(
    store: Database, asked: question_sets.QuestionSet, embedder: ports.Embedder
) -> None:
    """RET-8: every question has less evidence without its document than with it."""
    found = calibration.collect_evidence(store, asked, embedder, Settings())
    assert [len(kind) for kind in (found.answerable, found.left_out, found.unanswerable)] == [4, 4, 0]
    pairs = zip(found.answerable, found.left_out, strict=True)
    assert all(left_out.evidence < answerable.evidence for answerable, left_out in pairs)
    assert calibration.cross_validate(found).left_out == 1.0


def test_a_saved_threshold_is_used_by_the_installation(
    database: str,
    store: Database,
    asked: question_sets.QuestionSet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """RET-8: `eval SET --calibrate --save`"""
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("IBID_HOME", str(tmp_path))
    command.main([str(tmp_path), "--calibrate", "--save"])
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])["figures"]
    found = next(row["value"] for row in figures if row["figure"].endswith(": threshold"))
    with store.as_worker() as connection:
        thresholds = [server.guard_threshold for server in stored_settings.list_servers(connection)]
    assert thresholds == [pytest.approx(found, abs=1e-3)]


def test_the_ablation_reports_every_variant(
    store: Database, asked: question_sets.QuestionSet, embedder: ports.Embedder
) -> None:
    """EVAL-1"""
    figures = ablation.run(store, asked, embedder, Settings())
    variants = ablation.list_variants(asked, Settings())
    assert [row["figure"] for row in figures] == [f"{asked.name}: ndcg, {variant.name}" for variant in variants]
    assert (figures[0]["ratio"], all(0 < row["value"] <= 1 for row in figures)) == (1.0, True)
