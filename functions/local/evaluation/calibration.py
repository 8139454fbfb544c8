"""Chooses the guard's threshold for a model: `python -m functions.local eval SET… --calibrate`.

The threshold is chosen on the questions of one half of a set's documents, and measured on those of the other half.
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
ALL_SETS = "all sets"
LEAST_THRESHOLD, MOST_THRESHOLD = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class Judged:
    """The evidence found for a question, converted to the scale of the setting `similarity_threshold`.

    The setting applies to languages that the model knows. `halves` are those of the documents that answer the question;
    a question that no document answers is measured in both.
    """

    evidence: float
    halves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence found for three kinds of questions.

    `answerable` were asked of the whole set, `left_out` are the same questions asked without the documents that answer
    them, and `unanswerable` have no answer in the set.
    """

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
    """The refused share of each kind of question, NaN without any; `threshold` is the mean of both halves."""

    threshold: float
    answerable: float
    left_out: float
    unanswerable: float


def collect_evidence(
    database: Database, asked: question_sets.QuestionSet, embedder: ports.Embedder, settings: Settings
) -> Evidence:
    """Indexes the set and asks its questions with and without the documents that answer them.

    An answerable question is asked in the scope of the whole set, and again in the scope of the other documents.
    Raises ConflictError when fewer than two documents answer questions.
    """
    halves = split_documents(asked.questions)
    if len(halves) < len(HALVES):
        raise errors.ConflictError(f"Calibration needs answers in two or more documents, and {asked.name} has fewer.")
    library = load_library(database, asked, embedder, settings)
    embedder.embed([library.server.query_prefix + question.text for question in asked.questions])
    whole = asking.ask_all(database, library, asked.questions, embedder, settings, "hybrid")
    left_out = asking.ask_without_sources(database, library, asked, embedder, settings)

    def judge(one: asking.Asked) -> Judged:
        evidence = one.evidence / one.threshold * settings.similarity_threshold
        documents = one.question.documents
        # When documents of both halves answer a question, the document that is first by name decides.
        return Judged(evidence, (halves[min(documents)],) if documents else HALVES)

    return Evidence(
        tuple(judge(one) for one in whole if one.scores),
        tuple(judge(one) for one in left_out),
        tuple(judge(one) for one in whole if not one.scores),
    )


def split_documents(questions: Sequence[question_sets.Question]) -> dict[str, int]:
    """Assigns the documents to the halves alternately, in the order of their names."""
    names = sorted({name for question in questions for name in question.documents})
    return {name: place % len(HALVES) for place, name in enumerate(names)}


def choose_threshold(answerable: Sequence[float], most_refused: float) -> float:
    """The highest threshold that refuses at most the share `most_refused`; the guard refuses evidence below it.

    It is within the bounds of the column `guard_threshold`: in a small set, evidence may exceed 1.
    Raises ConflictError without any questions.
    """
    if not answerable:
        raise errors.ConflictError(
            "One half of the documents answers no question of this sample. Use a larger --limit."
        )
    threshold = sorted(answerable)[math.floor(most_refused * len(answerable))]
    return min(max(threshold, LEAST_THRESHOLD), MOST_THRESHOLD)


def cross_validate(evidence: Evidence, most_refused: float = scores.FALSE_REFUSALS) -> Refusals:
    """Measures each half at the threshold chosen on the other half, and returns the means."""
    found = []
    for half in HALVES:
        others = [one.evidence for one in evidence.answerable if half not in one.halves]
        found.append(measure_refusals(evidence, choose_threshold(others, most_refused), (half,)))
    return Refusals(*(ranking_scores.mean([getattr(one, name) for one in found]) for name in Refusals.__slots__))


def measure_refusals(evidence: Evidence, threshold: float, halves: Sequence[int] = HALVES) -> Refusals:
    """Measures which shares of the questions in these halves a threshold refuses."""

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
    """Calibrates each set, and all sets together when there are several; prints a table.

    Returns the figures and the threshold of the last line.
    """
    found = {asked.name: collect_evidence(database, asked, embedder, settings) for asked in sets}
    if len(found) > 1:
        found[ALL_SETS] = Evidence.join(list(found.values()))
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
    # The bound is twice the share that the threshold was chosen for, because it was chosen on the other half.
    rows.append(limit(f"{name}: answerable questions refused", refused.answerable, 2 * scores.FALSE_REFUSALS))
    if not math.isnan(refused.left_out):
        rows.append(figure(f"{name}: left out questions refused", refused.left_out, 1.0, None))
    if not math.isnan(refused.unanswerable):
        least = goals.refused_unanswerable.get(name.removeprefix(question_sets.UNANSWERABLE))
        rows.append(scores.reach(f"{name}: unanswerable questions refused", refused.unanswerable, least))
    return rows
