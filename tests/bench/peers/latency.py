"""Measures how fast each search answers one tenant among many, and whether it finds ten rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.core import ports
from functions.local.evaluation import question_sets, ranking_scores
from tests.bench.peers import datasets, tenants
from tests.bench.peers.environments import IBID, LANGCHAIN, SUPABASE, System
from tests.bench.peers.processes import Bench, Process, open_all
from tests.bench.peers.quality import list_passages
from tests.bench.report import figure

SETS = ("passages/scifact", "passages/xquad_en")
OURS = System(IBID, "ibid_search")
SHORT_UNITS, LONG_UNITS = 20_000, 100_000
SHORT_QUESTIONS, LONG_QUESTIONS = 50, 200
WARM_UP = 10
DEPTH = 10
SEED = 7
# The least multiples of Ibid's p50, for tenants of at most SMALL; the second applies only to the long form.
LANGCHAIN_GOAL, SUPABASE_GOAL = 3.0, 50.0
SMALL = 0.05


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer of one system to one question: milliseconds, number of rows, and how many belong to the tenant."""

    ms: float
    rows: int
    own_rows: int


Results = dict[tuple[str, float], list[Asked]]
"""The answers by the name of the system and the share of the tenant."""


def measure(bench: Bench, *, is_long: bool) -> Results:
    """Asks every system the same questions of the same tenants in turn."""
    count = LONG_UNITS if is_long else SHORT_UNITS
    dataset, asked = make_dataset(bench.embedder, count, LONG_QUESTIONS if is_long else SHORT_QUESTIONS)
    folder = datasets.write(bench.folder / "latency", dataset)
    owners = {unit.passage: unit.owner for unit in dataset.units}
    systems = [OURS, *bench.systems]
    bench.databases.fill(systems, folder, "english")
    results: Results = defaultdict(list)
    with open_all(systems, bench.databases, folder, "english", DEPTH) as processes:
        for tenant, questions in asked:
            for turn, question in enumerate([*questions[-WARM_UP:], *questions]):
                for process in _rotate(processes, turn):
                    answer = ask(process, question, tenant, owners)
                    if turn >= WARM_UP:
                        results[process.name, tenant.share].append(answer)
    bench.databases.drop([system.name for system in systems])
    return results


def ask(process: Process, question: int, tenant: tenants.Tenant, owners: Mapping[str, str]) -> Asked:
    answer = process.ask(question, tenant.owner)
    first = answer.passages[:DEPTH]
    return Asked(answer.ms, len(first), sum(owners[passage] == tenant.owner for passage in first))


def make_dataset(
    embedder: ports.Embedder, count: int, questions: int
) -> tuple[datasets.Dataset, list[tuple[tenants.Tenant, list[int]]]]:
    """Makes the units of all tenants, and chooses the questions for each tenant."""
    texts: list[str] = []
    topics: list[tuple[str, str, tuple[int, ...]]] = []
    for name in SETS:
        asked = question_sets.read_set(name)
        answers: dict[question_sets.Unit, list[int]] = defaultdict(list)
        for number, question in enumerate(asked.questions, start=len(texts)):
            for passage in question.gold:
                answers[passage].append(number)
        texts += [question.text for question in asked.questions]
        pairs = zip(asked.passages, list_passages(asked), strict=True)
        topics += [(p.text, unit.text, tuple(answers[p.id])) for p, unit in pairs if p.id in answers]
    vectors = embedder.embed([whole for _, whole, _ in topics])
    made = [tenants.Topic(text, vector, own) for (text, _, own), vector in zip(topics, vectors, strict=True)]
    units, unit_vectors, asking = tenants.make_units(made, count, SEED)
    dataset = datasets.Dataset(tuple(units), unit_vectors, tuple(texts), embedder.embed(texts))
    return dataset, [(tenant, tenants.choose_questions(tenant, len(texts), questions, SEED)) for tenant in asking]


def _rotate(processes: Sequence[Process], turn: int) -> list[Process]:
    """Rotates the order, because the first system finds the coldest caches."""
    start = turn % len(processes)
    return [*processes[start:], *processes[:start]]


def print_results(results: Results) -> None:
    print(f"\n{'':36} {'tenant':>6} {'p50 ms':>9} {'p95 ms':>9} {'rows of 10':>11} {'least':>6} {'of the tenant':>14}")
    for (name, share), asked in sorted(results.items(), key=lambda item: (-item[0][1], item[0][0] != IBID)):
        times, rows = [one.ms for one in asked], [one.rows for one in asked]
        own = ranking_scores.mean([float(one.own_rows) for one in asked])
        print(
            f"{name:36} {share:6.0%}"
            f" {ranking_scores.percentile(times, 0.5):9.2f} {ranking_scores.percentile(times, 0.95):9.2f}"
            f" {ranking_scores.mean(list(map(float, rows))):11.2f} {min(rows):6} {own:14.2f}"
        )


def list_figures(results: Results, *, is_long: bool) -> list[dict[str, Any]]:
    """Lists each peer's p50 as a multiple of Ibid's, and how many of ten rows belong to the tenant, for each system."""
    rows = []
    for (name, share), asked in results.items():
        ours, theirs = (ranking_scores.percentile([one.ms for one in results[who, share]], 0.5) for who in (IBID, name))
        filled = ranking_scores.mean([float(one.own_rows) for one in asked])
        goal = find_goal(name, share, is_long=is_long)
        if name != IBID:
            label = f"{name}: p50 ms to Ibid's, tenant of {share:.0%}"
            rows.append(figure(label, theirs, ours, goal))
        label = f"{name}: rows of the tenant's of {DEPTH}, tenant of {share:.0%}"
        rows.append(figure(label, filled, DEPTH, 1.0 if name == IBID else None))
    return rows


def find_goal(name: str, share: float, *, is_long: bool) -> float | None:
    if name == LANGCHAIN.name and share <= SMALL:
        return LANGCHAIN_GOAL
    if name == SUPABASE.name and share <= SMALL and is_long:
        return SUPABASE_GOAL
    return None
