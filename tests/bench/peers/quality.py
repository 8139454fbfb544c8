"""Measures which search ranks best, on question sets with known answers and with the same vectors for every system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from functions.adapters.postgres.connection import Database
from functions.core.settings import Settings
from functions.local.database import migrate
from functions.local.evaluation import asking, question_sets, ranking_scores
from functions.local.evaluation.library import Library, load_library
from tests.bench.peers import datasets
from tests.bench.peers.environments import IBID
from tests.bench.peers.processes import Bench, Process
from tests.bench.report import figure

SETS = {"passages/scifact": "english", "passages/xquad_en": "english", "passages/piaf": "french"}
GOAL = 1.08
PASSAGES, CHUNKS = "whole passages", "Ibid's chunks"
# Enough rows for ten distinct passages; a passage has one row, or several chunks.
DEPTHS = {PASSAGES: 10, CHUNKS: 30}
_CHUNKS = """
select coalesce(c.search_text, c.search_prefix || c.text) as search_text, g.document_id::text as document_id
from rag.chunks c join rag.generations g on g.id = c.generation
where c.owner_id = %s order by c.id
"""

Scores = dict[str, list[float]]
"""nDCG@10 of each question, by the name of the system."""


def measure(bench: Bench, limit: int | None) -> dict[str, Scores]:
    """Measures the scores on each set; peers are measured with whole passages and again with Ibid's chunks."""
    bench.databases.create(IBID)
    migrate.migrate(bench.databases.dsn(IBID))
    database = Database(bench.databases.dsn(IBID))
    found: dict[str, Scores] = {}
    try:
        for name, language in SETS.items():
            asked = question_sets.read_set(name, limit=limit)
            asked = replace(asked, questions=tuple(question for question in asked.questions if question.gold))
            library = load_library(database, asked, bench.embedder, Settings())
            hits = asking.ask_all(database, library, asked.questions, bench.embedder, Settings(), "hybrid")
            found[name] = {IBID: [one.scores.ndcg for one in hits if one.scores]}
            for kind, units in ((PASSAGES, list_passages(asked)), (CHUNKS, list_chunks(database, library))):
                for system, scores in _measure_peers(bench, asked, units, language, DEPTHS[kind]).items():
                    found[name][f"{system}, {kind}"] = scores
            print_scores(name, found[name])
    finally:
        database.close()
        bench.databases.drop([IBID])
    return found


def list_passages(asked: question_sets.QuestionSet) -> list[datasets.Unit]:
    """Joins title and text of each passage; of a long one, the embedding model reads only the beginning."""
    return [
        datasets.Unit(passage.id, "\n".join(filter(None, (passage.title, passage.text))), "")
        for passage in asked.passages
    ]


def list_chunks(database: Database, library: Library) -> list[datasets.Unit]:
    """Reads the text of each chunk as Ibid indexes it, with its title."""
    with database.as_worker() as connection:
        rows = connection.execute(_CHUNKS, (library.user.id,)).fetchall()
    return [datasets.Unit(library.names[row["document_id"]], row["search_text"], "") for row in rows]


def _measure_peers(
    bench: Bench,
    asked: question_sets.QuestionSet,
    units: Sequence[datasets.Unit],
    language: str,
    depth: int,
) -> Scores:
    texts = tuple(question.text for question in asked.questions)
    embed = bench.embedder.embed
    dataset = datasets.Dataset(tuple(units), embed([unit.text for unit in units]), texts, embed(texts))
    folder = datasets.write(bench.folder / "quality", dataset)
    bench.databases.fill(bench.systems, folder, language)
    scores: Scores = {}
    for system in bench.systems:
        with Process(system) as process:
            process.open(bench.databases.dsn_of(system), folder, language, depth)
            rankings = [process.ask(number).passages for number in range(len(texts))]
        scores[system.name] = [
            ranking_scores.score_ranking(ranking, question.gold).ndcg
            for ranking, question in zip(rankings, asked.questions, strict=True)
        ]
    bench.databases.drop([system.name for system in bench.systems])
    return scores


def print_scores(name: str, scores: Scores) -> None:
    """Prints the nDCG@10 of each system, and Ibid's lead with its paired 95 % bootstrap interval."""
    print(f"\n{name}, {len(scores[IBID])} questions{'nDCG@10':>28}   Ibid ahead by")
    for system, values in scores.items():
        ahead, low, high = ranking_scores.paired_difference(scores[IBID], values)
        print(f"{system:52} {ranking_scores.mean(values):7.4f}   {ahead:+.4f} [{low:+.4f}, {high:+.4f}]")


def list_figures(found: Mapping[str, Scores]) -> list[dict[str, Any]]:
    """Compares Ibid with the peer whose mean is best, with whole passages (which has a goal) and with Ibid's chunks."""
    means = {
        name: {system: ranking_scores.mean(values) for system, values in scores.items()}
        for name, scores in found.items()
    }
    first = next(iter(means.values()))
    over_sets = {system: ranking_scores.mean([scores[system] for scores in means.values()]) for system in first}
    ours = over_sets.pop(IBID)
    rows = []
    for kind, goal in ((PASSAGES, GOAL), (CHUNKS, None)):
        peers = [system for system in over_sets if system.endswith(kind)]
        if not peers:
            continue
        best = max(peers, key=lambda system: over_sets[system])
        label = f"nDCG@10 to the best peer's, {best}"
        rows.append(figure(f"mean {label}", ours, over_sets[best], goal))
        rows += [figure(f"{name} {label}", scores[IBID], scores[best]) for name, scores in means.items()]
    return rows + [figure(f"mean nDCG@10, {system}", ours, value) for system, value in over_sets.items()]
