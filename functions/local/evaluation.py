"""Measures retrieval on a question set: `python -m functions.local eval SET`.

The set is indexed in a Postgres of its own, in the tables, functions and row level security that serve users, and
every question is asked three times: of the whole search, of the words alone and of the vectors alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from functions.adapters.postgres.connection import Database
from functions.core import errors, metrics, ports
from functions.core.settings import Settings, validate_changes
from functions.local import embedded_postgres, evaluation_asking, evaluation_library, evaluation_sets, migrate
from functions.local.evaluation_asking import Asked
from functions.local.evaluation_vectors import RememberingEmbedder
from functions.runtime import wiring
from functions.runtime.config import Config

# What plain BM25 reaches, or what we promise: (set, score of the hybrid search) → least value.
GOALS = {("scifact", "ndcg"): 0.70, ("pages_en", "hit_5"): 0.980, ("pages_fr", "hit_5"): 0.929}
FUSION_GOAL = 0.99
FALSE_REFUSALS_GOAL = 0.05
# For a server that is thrown away: nothing has to survive a power cut.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "256MB"}
EMBEDDING_THREADS = 2
COLUMNS = ("nDCG@10", "MRR@10", "hit@1", "hit@5", "hit@10")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A set asked in one configuration; for the questions `missed_by_words` see `list_missed`."""

    name: str
    document_count: int
    chunk_count: int
    arms: dict[str, list[Asked]]
    missed_by_words: list[str]


def evaluate(
    database: Database,
    questions: evaluation_sets.QuestionSet,
    embedder: ports.Embedder,
    settings: Settings,
    arms: Iterable[str] = evaluation_asking.ARMS,
) -> Evaluation:
    """Indexes the set for a new user of a migrated database and asks its questions of each of `arms`."""
    library = evaluation_library.load_library(database, questions, embedder, settings)
    embedder.embed([question.text for question in questions.questions])
    asked = {
        arm: evaluation_asking.ask_all(database, library, questions.questions, embedder, settings, arm) for arm in arms
    }
    missed = evaluation_asking.list_missed(database, library, asked["lexical"])
    return Evaluation(questions.name, len(library.names), library.chunk_count, asked, missed)


def mean_scores(asked: Sequence[Asked]) -> metrics.RankingScores:
    """Over the questions that the set answers."""
    return metrics.mean_scores([one.scores for one in asked if one.scores])


def refused_share(asked: Sequence[Asked], *, answerable: bool) -> float:
    """Of the questions that the set answers, or of those that it does not; NaN when there are none."""
    return metrics.mean([float(one.is_refused) for one in asked if bool(one.scores) == answerable])


def list_figures(found: Evaluation) -> list[dict[str, Any]]:
    """What is promised, each against its baseline."""
    scores = {arm: mean_scores(asked) for arm, asked in found.arms.items()}
    hybrid = scores["hybrid"]
    rows = []
    for (name, field), least in GOALS.items():
        if name == found.name:
            rows.append(_figure(f"hybrid {field}", getattr(hybrid, field), least, 1.0))
    better = max(scores["lexical"].ndcg, scores["dense"].ndcg)
    rows.append(_figure("hybrid ndcg to the better arm's", hybrid.ndcg, better, FUSION_GOAL))
    rows.append(_limit("questions with words of the set and an empty lexical arm", len(found.missed_by_words), 0))
    false_refusals = refused_share(found.arms["hybrid"], answerable=True)
    rows.append(_limit("answerable questions refused", false_refusals, FALSE_REFUSALS_GOAL))
    if any(asked.scores is None for asked in found.arms["hybrid"]):
        refused = refused_share(found.arms["hybrid"], answerable=False)
        rows.append(_figure("unanswerable questions refused", refused, 1.0, None))
    latencies = {arm: metrics.percentile([one.search_ms for one in asked], 0.5) for arm, asked in found.arms.items()}
    arms_ms = latencies["lexical"] + latencies["dense"]
    rows.append(_figure("hybrid search p50 ms to both arms' sum", latencies["hybrid"], arms_ms, None))
    return [row | {"figure": f"{found.name}: {row['figure']}"} for row in rows]


def _figure(name: str, value: float, baseline: float, goal: float | None) -> dict[str, Any]:
    """`goal` is the least ratio of value to baseline; None where a figure is only reported."""
    ratio = value / baseline
    ok = goal is None or ratio >= goal
    return {
        "figure": name,
        "value": round(value, 4),
        "baseline": round(baseline, 4),
        "ratio": round(ratio, 4),
        "goal": goal,
        "ok": ok,
    }


def _limit(name: str, value: float, most: float) -> dict[str, Any]:
    """A figure that must not exceed its baseline."""
    ratio = round(value / most, 4) if most else None
    return {
        "figure": name,
        "value": round(value, 4),
        "baseline": most,
        "ratio": ratio,
        "goal": 1.0,
        "ok": value <= most,
    }


def print_report(found: Evaluation) -> None:
    """A line for each arm and language, and the questions that words should have answered."""
    print(f"\n{found.name}: {found.document_count} documents, {found.chunk_count} passages")
    print(
        f"{'arm':9}{'lang':6}{'n':>5}" + "".join(f"{c:>9}" for c in COLUMNS) + f"{'empty':>8}{'p50 ms':>8}{'p95 ms':>8}"
    )
    for arm, asked in found.arms.items():
        languages = sorted({one.question.lang for one in asked})
        for lang in languages if len(languages) == 1 else [*languages, "all"]:
            print(_format_row(arm, lang, [one for one in asked if lang in (one.question.lang, "all")]))
    for answerable, kind in ((True, "answerable"), (False, "unanswerable")):
        share = refused_share(found.arms["hybrid"], answerable=answerable)
        if share == share:
            print(f"{kind} questions refused: {share:.3f}")
    for text in found.missed_by_words:
        print(f"no passage by words: {text}")


def _format_row(arm: str, lang: str, asked: Sequence[Asked]) -> str:
    scores = mean_scores(asked)
    times = [one.search_ms for one in asked]
    values = (scores.ndcg, scores.mrr, scores.hit_1, scores.hit_5, scores.hit_10)
    empty = metrics.mean([float(one.is_empty) for one in asked])
    latency = f"{metrics.percentile(times, 0.5):8.1f}{metrics.percentile(times, 0.95):8.1f}"
    return f"{arm:9}{lang:6}{len(asked):5}" + "".join(f"{value:9.4f}" for value in values) + f"{empty:8.3f}{latency}"


def print_difference(ours: Evaluation, theirs: Evaluation) -> None:
    """The paired difference of two configurations."""
    pairs = [
        (mine.scores.ndcg, other.scores.ndcg)
        for mine, other in zip(ours.arms["hybrid"], theirs.arms["hybrid"], strict=True)
        if mine.scores and other.scores
    ]
    mean, low, high = metrics.paired_difference(*map(list, zip(*pairs, strict=True)))
    print(f"\nhybrid nDCG@10, the first less the second: {mean:+.4f} [{low:+.4f}, {high:+.4f}]")


@contextmanager
def open_database() -> Iterator[Database]:
    """A migrated database on a server of its own, with the functions of `sql/` as they are; gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="ibid-eval-") as folder,
        embedded_postgres.start(Path(folder) / "postgres", settings=FAST) as server,
    ):
        migrate.migrate(server.dsn, with_functions=True)
        database = Database(server.dsn, application_name="ibid-eval")
        try:
            yield database
        finally:
            database.close()


@contextmanager
def open_embedder(home: Path, *, fresh: bool = False) -> Iterator[ports.Embedder]:
    """The local model with its memory in `home`/eval."""
    from functions.adapters.local_embedder import LocalEmbedder

    path = home / "eval" / "vectors.sqlite"
    if fresh:
        path.unlink(missing_ok=True)
    embedder = RememberingEmbedder(LocalEmbedder(threads=EMBEDDING_THREADS), wiring.LOCAL_SERVER.model, path)
    try:
        yield embedder
    finally:
        embedder.close()


def parse_configuration(pairs: Sequence[str]) -> Settings:
    """Settings with the given `key=value` changes; raises InvalidSettingsError."""
    changes: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            changes[key] = json.loads(value)
        except json.JSONDecodeError:
            changes[key] = value
    validate_changes(changes)
    return replace(Settings(), **changes)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table and, last, a line of JSON; 1 when something promised is missed."""
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except errors.IbidError as exc:
        faults = "; ".join(f"{fault['key']}: {fault['message']}" for fault in exc.details.get("faults", ()))
        print(f"ibid: {exc.message} {faults}".rstrip(), file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    settings = parse_configuration(options.configuration)
    figures: list[dict[str, Any]] = []
    with open_database() as database, open_embedder(Config().home, fresh=options.fresh) as embedder:
        for name in options.sets:
            questions = evaluation_sets.read_set(name, limit=options.limit)
            found = evaluate(database, questions, embedder, settings)
            print_report(found)
            if options.against:
                other = evaluate(database, questions, embedder, parse_configuration(options.against))
                print_report(other)
                print_difference(found, other)
            figures += list_figures(found)
    print()
    for row in figures:
        goal = "" if row["goal"] is None else f"  {'ok' if row['ok'] else 'MISSED'}"
        print(f"{row['figure']}: {row['value']} ({row['baseline']}){goal}")
    print(json.dumps({"name": "eval", "figures": figures}))
    return 0 if all(row["ok"] for row in figures) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m functions.local eval", description="Measures retrieval.")
    add = parser.add_argument
    add("sets", nargs="+", metavar="SET", help="a folder, or a name below IBID_EVAL_DATA, like passages/scifact")
    add("--limit", type=int, metavar="N", help="ask N of the questions only")
    add("--configuration", nargs="+", default=[], metavar="KEY=VALUE", help="settings other than the default")
    add("--against", nargs="+", default=[], metavar="KEY=VALUE", help="a second configuration to compare with")
    add("--fresh", action="store_true", help="forget the vectors of earlier runs")
    return parser
