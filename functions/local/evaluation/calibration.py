"""Where the guard's threshold should lie: `python -m functions.local eval SET… --calibrate`.

Each question that a set answers is asked twice: of the whole set, and of the set without the documents that answer it.
The threshold is chosen on the questions of one half of the documents and measured on those of the other, and the other
way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from functions.adapters.postgres.connection import Database
from functions.core import errors, ports
from functions.core.settings import Settings
from functions.local.evaluation import asking, question_sets, ranking_scores, scores
from functions.local.evaluation.library import load_library
from functions.runtime import policy

HALVES = (0, 1)
TOGETHER = "all sets"


@dataclass(frozen=True, slots=True)
class Judged:
    """The evidence of a question, as the setting `similarity_threshold` counts it: for a language the model speaks.

    Questions of a document are in its half; what has no document is measured in both.
    """

    evidence: float
    halves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of questions that can be answered, that could be but for their documents, and that cannot."""

    answerable: tuple[Judged, ...]
    left_out: tuple[Judged, ...]
    unanswerable: tuple[Judged, ...]

    @classmethod
    def join(cls, parts: Sequence[Evidence]) -> Evidence:
        return cls(
            tuple(one for part in parts for one in part.answerable),
            tuple(one for part in parts for one in part.left_out),
            tuple(one for part in parts for one in part.unanswerable),
        )


@dataclass(frozen=True, slots=True)
class Refusals:
    """The share refused of each kind, NaN where there are none, at the threshold (the mean of both halves')."""

    threshold: float
    answerable: float
    left_out: float
    unanswerable: float


def collect_evidence(
    database: Database, asked: question_sets.QuestionSet, embedder: ports.Embedder, settings: Settings
) -> Evidence:
    """Indexes the set and asks its questions, with and without the documents that answer them.

    Raises ConflictError when these are fewer than two.
    """
    halves = split_documents(asked.questions)
    if len(halves) < len(HALVES):
        raise errors.ConflictError(f"{asked.name} has no questions of two documents to compare.")
    library = load_library(database, asked, embedder, settings)
    embedder.embed([question.text for question in asked.questions])
    whole = asking.ask_all(database, library, asked.questions, embedder, settings, "hybrid")
    left_out = asking.ask_without_sources(database, library, asked, embedder, settings)

    def judge(one: asking.Asked) -> Judged:
        evidence = one.evidence / one.threshold * settings.similarity_threshold
        documents = one.question.documents
        # A question of documents in both halves is in that of the first.
        return Judged(evidence, (halves[min(documents)],) if documents else HALVES)

    return Evidence(
        tuple(judge(one) for one in whole if one.scores),
        tuple(judge(one) for one in left_out),
        tuple(judge(one) for one in whole if not one.scores),
    )


def split_documents(questions: Sequence[question_sets.Question]) -> dict[str, int]:
    """The half that each document is in: every other one, in the order of their names."""
    names = sorted({name for question in questions for name in question.documents})
    return {name: place % len(HALVES) for place, name in enumerate(names)}


def choose_threshold(answerable: Sequence[float], most_refused: float) -> float:
    """The highest threshold that refuses at most that share of the questions; refused is what lies below it.

    Raises ConflictError where there are none.
    """
    if not answerable:
        raise errors.ConflictError("No question of one half of the documents can be answered: ask more of the set.")
    return sorted(answerable)[math.floor(most_refused * len(answerable))]


def cross_validate(evidence: Evidence, most_refused: float = scores.FALSE_REFUSALS) -> Refusals:
    """Each half at the threshold of the other, on average."""
    found = []
    for half in HALVES:
        others = [one.evidence for one in evidence.answerable if half not in one.halves]
        found.append(measure_refusals(evidence, choose_threshold(others, most_refused), (half,)))
    return Refusals(*(ranking_scores.mean([getattr(one, name) for one in found]) for name in Refusals.__slots__))


def measure_refusals(evidence: Evidence, threshold: float, halves: Sequence[int] = HALVES) -> Refusals:
    """What a threshold refuses of the questions in these halves."""

    def share(judged: Sequence[Judged]) -> float:
        wanted = [one.evidence for one in judged if not set(halves).isdisjoint(one.halves)]
        return ranking_scores.mean([float(value < threshold) for value in wanted])

    return Refusals(threshold, share(evidence.answerable), share(evidence.left_out), share(evidence.unanswerable))


def run(
    database: Database,
    sets: Sequence[question_sets.QuestionSet],
    embedder: ports.Embedder,
    settings: Settings,
    model: str = policy.LOCAL_SERVER.model,
    goals: scores.Goals = scores.NO_GOALS,
) -> tuple[list[dict[str, Any]], float]:
    """Prints a table, a line for each set and, where there are several, for all; returns the figures and its last
    threshold.
    """
    found = {asked.name: collect_evidence(database, asked, embedder, settings) for asked in sets}
    if len(found) > 1:
        found[TOGETHER] = Evidence.join(list(found.values()))
    print(f"\nevidence with {model}, passages of {settings.chunk_tokens} tokens")
    print(f"{'':24}{'questions':>10}{'threshold':>10}{'answerable':>11}{'left out':>10}{'unanswerable':>13}")
    figures: list[dict[str, Any]] = []
    threshold = settings.similarity_threshold
    for name, evidence in found.items():
        chosen = cross_validate(evidence)
        threshold = chosen.threshold
        _print_row(name, evidence, chosen)
        _print_row("  at the setting", evidence, measure_refusals(evidence, settings.similarity_threshold))
        figures += _list_figures(name, chosen, goals)
    return figures, threshold


def _print_row(name: str, evidence: Evidence, refused: Refusals) -> None:
    shares = (refused.answerable, refused.left_out, refused.unanswerable)
    cells = ["-" if math.isnan(share) else f"{share:.3f}" for share in shares]
    head = f"{name:24}{len(evidence.answerable):10}{refused.threshold:10.3f}"
    print(f"{head}{cells[0]:>11}{cells[1]:>10}{cells[2]:>13}")


def _list_figures(name: str, refused: Refusals, goals: scores.Goals) -> list[dict[str, Any]]:
    limit, figure = scores.limit, scores.figure
    rows = [figure(f"{name}: threshold", refused.threshold, Settings().similarity_threshold, None)]
    # Twice what was chosen for: half of the questions tell the threshold of the other half only so well.
    rows.append(limit(f"{name}: answerable questions refused", refused.answerable, 2 * scores.FALSE_REFUSALS))
    if not math.isnan(refused.left_out):
        rows.append(figure(f"{name}: left out questions refused", refused.left_out, 1.0, None))
    if not math.isnan(refused.unanswerable):
        least = goals.refused_unanswerable.get(name.removeprefix(question_sets.UNANSWERABLE))
        rows.append(scores.reach(f"{name}: unanswerable questions refused", refused.unanswerable, least))
    return rows
