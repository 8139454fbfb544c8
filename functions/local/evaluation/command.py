"""Measures retrieval on a question set: `python -m functions.local eval SET`.

Every question is asked of the product's own search: of the whole, of full text alone and of vectors alone. With
`--answers` it is asked of the chat model instead, with each of the two prompts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.core import errors, models, ports
from functions.core.settings import Settings, validate_changes
from functions.local.database import embedded_postgres, migrate
from functions.local.evaluation import (
    ablation,
    across,
    answer_scores,
    answering,
    asking,
    calibration,
    question_sets,
    refusals,
)
from functions.local.evaluation.library import Library, load_library
from functions.local.evaluation.report import (
    print_answers,
    print_crossed,
    print_difference,
    print_figures,
    print_refusals,
    print_report,
)
from functions.local.evaluation.scores import NO_GOALS, Evaluation, Goals, compare_english, list_figures
from functions.local.evaluation.vector_cache import CachingEmbedder
from functions.local.server import serve
from functions.runtime import policy
from functions.runtime.config import Config
from functions.runtime.services import Services

FAST = {**embedded_postgres.FAST_SETTINGS, "shared_buffers": "256MB"}
EMBEDDING_THREADS = 2

Reference = Callable[[question_sets.QuestionSet], float]
"""Measures the nDCG@10 of another full text search on a set."""


def evaluate(
    database: Database,
    questions: question_sets.QuestionSet,
    embedder: ports.Embedder,
    settings: Settings,
    arms: Iterable[str] = asking.ARMS,
    library: Library | None = None,
) -> Evaluation:
    """Asks the questions of a set with each of `arms`.

    Indexes the set for a new user of a migrated database, unless `library` is the indexed set.
    """
    library = library or load_library(database, questions, embedder, settings)
    embedder.embed([library.server.query_prefix + question.text for question in questions.questions])
    asked = {arm: asking.ask_all(database, library, questions.questions, embedder, settings, arm) for arm in arms}
    missed = asking.list_missed(database, library, asked["lexical"])
    return Evaluation(questions.name, len(library.names), library.chunk_count, asked, missed)


@contextmanager
def open_database() -> Iterator[Database]:
    """Opens a temporary database with the tables, functions and row level security of the product."""
    with (
        tempfile.TemporaryDirectory(prefix="ibid-eval-") as folder,
        embedded_postgres.start(Path(folder) / "postgres", settings=FAST) as server,
    ):
        migrate.migrate(server.dsn)
        database = Database(server.dsn, application_name="ibid-eval")
        try:
            yield database
        finally:
            database.close()


@contextmanager
def open_embedder(
    home: Path, server: models.EmbeddingServer = policy.LOCAL_SERVER, *, fresh: bool = False
) -> Iterator[ports.Embedder]:
    """Opens the embedding model of a server with a cache under `home`/eval; `fresh` empties the cache first."""
    inner = Services(Config(), model_threads=EMBEDDING_THREADS).embedder_of(server)
    path = home / "eval" / "vectors.sqlite"
    if fresh:
        path.unlink(missing_ok=True)
    embedder = CachingEmbedder(inner, f"{server.base_url or ''}{server.model}", path)
    try:
        yield embedder
    finally:
        embedder.close()


def parse_configuration(pairs: Sequence[str]) -> Settings:
    """Reads `key=value` changes to the default settings; raises InvalidSettingsError."""
    changes: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            changes[key] = json.loads(value)
        except json.JSONDecodeError:
            changes[key] = value
    validate_changes(changes)
    return replace(Settings(), **changes)


@dataclass(frozen=True, slots=True)
class Standards:
    """What sets are measured against.

    `references` are other full text searches by name, measured on the sets of `goals.reference`. With a file of
    `translations`, `across.NAME` is a set too.
    """

    goals: Goals = NO_GOALS
    references: Mapping[str, Reference] = field(default_factory=dict)
    translations: Path | None = None


def main(argv: Sequence[str] | None = None, standards: Standards | None = None) -> int:
    """Prints a table and, as the last line, a JSON object; returns 1 when a goal is missed and 2 after an error."""
    parser = _parser()
    options = parser.parse_args(argv)
    if (options.parallel or options.record) and not options.answers:
        parser.error("--parallel and --record need --answers")
    try:
        return _run(options, standards or Standards())
    except errors.IbidError as exc:
        faults = "; ".join(f"{fault['key']}: {fault['message']}" for fault in exc.details.get("faults", ()))
        print(f"ibid: {exc.message} {faults}".rstrip(), file=sys.stderr)
        return 2


def _run(options: argparse.Namespace, standards: Standards) -> int:
    settings = parse_configuration(options.configuration)
    config = Config()
    examinee = answering.open_model(config, options.parallel) if options.answers else None
    sets, crossings, cases = _read_sets(options, standards)
    server = policy.configured_server(config)
    with open_database() as database, open_embedder(config.home, server, fresh=options.fresh) as embedder:
        stored_settings.ensure_default_server(database, server)
        name = "eval"
        if examinee is not None:
            name = "answers"
            figures = _examine(database, sets, embedder, settings, examinee, standards.goals, options.record)
        elif options.calibrate:
            name = "calibration"
            figures, threshold = calibration.run(database, sets, embedder, settings, server.model, standards.goals)
            if options.save:
                save_threshold(config, server, threshold)
        elif options.ablation:
            name = "ablation"
            figures = [row for asked in sets for row in ablation.run(database, asked, embedder, settings)]
        else:
            other = parse_configuration(options.against) if options.against else None
            figures = _compare(database, sets, crossings, cases, embedder, settings, other, standards)
    print_figures(figures)
    print(json.dumps({"name": name, "figures": figures}))
    return 0 if all(row["ok"] for row in figures) else 1


def _read_sets(
    options: argparse.Namespace, standards: Standards
) -> tuple[list[question_sets.QuestionSet], list[across.Crossing], list[refusals.Case]]:
    names, crossings, cases = list(options.sets), list[across.Crossing](), list[refusals.Case]()
    takes_apart = options.calibrate or options.ablation or options.answers
    if refusals.NAME in names:
        names.remove(refusals.NAME)
        if not names and takes_apart:
            raise errors.ConflictError(f"{refusals.NAME} can be measured, but neither calibrated nor taken apart.")
        cases = refusals.read_cases(question_sets.data_root(), options.limit)
    if standards.translations and across.NAME in names:
        names.remove(across.NAME)
        if not names and takes_apart:
            raise errors.ConflictError(f"{across.NAME} can be measured, but neither calibrated nor taken apart.")
        root = question_sets.data_root()
        crossings = across.read_crossings(standards.translations, root=root, max_questions=options.limit)
    return [question_sets.read_set(name, limit=options.limit) for name in names], crossings, cases


def save_threshold(config: Config, server: models.EmbeddingServer, threshold: float) -> None:
    """Saves a measured threshold in the installation that the environment describes.

    The installation uses it within half a minute. Raises ConflictError when it has no such embedding server.
    """
    with serve.open_services(config) as services:
        services.policy()  # adds the configured server to a database that has none yet
        if not stored_settings.save_guard_threshold(services.database, server, threshold):
            raise errors.ConflictError(f"This installation does not use {server.model}, so no threshold was saved.")
    print(f"saved: guard_threshold {threshold:.3f} of {server.name}")


def _compare(
    database: Database,
    sets: Sequence[question_sets.QuestionSet],
    crossings: Sequence[across.Crossing],
    cases: Sequence[refusals.Case],
    embedder: ports.Embedder,
    settings: Settings,
    against: Settings | None,
    standards: Standards,
) -> list[dict[str, Any]]:
    goals = standards.goals
    evaluations: list[Evaluation] = []
    figures: list[dict[str, Any]] = []

    @cache
    def load_documents(documents: question_sets.QuestionSet) -> Library:
        return load_library(database, documents, embedder, settings)

    def load(asked: question_sets.QuestionSet) -> Library:
        return load_documents(replace(asked, questions=()))

    for asked in sets:
        found = evaluate(database, asked, embedder, settings, library=load(asked))
        print_report(found)
        if against is not None:
            other = evaluate(database, asked, embedder, against)
            print_report(other)
            print_difference(found, other)
        compared = standards.references if asked.name in goals.reference else {}
        figures += list_figures(found, {name: measure(asked) for name, measure in compared.items()}, goals)
        evaluations.append(found)
    figures += compare_english(evaluations, goals)
    if crossings:
        crossed = across.ask_crossings(database, crossings, load, embedder, settings)
        print_crossed(crossed)
        figures += across.list_figures(crossed, goals)
    if cases:
        refused = refusals.ask_cases(database, cases, load, embedder, settings)
        print_refusals(refused)
        figures += refusals.list_figures(refused, goals)
    return figures


def _examine(
    database: Database,
    sets: Sequence[question_sets.QuestionSet],
    embedder: ports.Embedder,
    settings: Settings,
    examinee: answering.Examinee,
    goals: Goals,
    record: Path | None,
) -> list[dict[str, Any]]:
    """Lets the chat model answer the questions of the sets; raises UnavailableError when it answers none."""
    every: list[answering.Written] = []
    for asked in sets:
        library = load_library(database, asked, embedder, settings)
        found = asking.find_passages(database, library, asked.questions, embedder, settings)
        written = list(answering.answer_all(examinee, found, answering.Record(record) if record else None))
        print_answers(asked.name, written)
        every += written
    if len(sets) > 1:
        print_answers("all", every)
    if not any(one.answer and one.answer.mode == "model" for one in every):
        raise errors.UnavailableError("The chat model answered no question, so nothing was measured.")
    full, compact = (answer_scores.score([w for w in every if w.profile == one]) for one in answering.PROFILES)
    return answer_scores.list_figures("all" if len(sets) > 1 else sets[0].name, full, compact, goals)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m functions.local eval", description="Measures retrieval.")
    add = parser.add_argument
    add("sets", nargs="+", metavar="SET", help="a folder, or a name below IBID_EVAL_DATA, like passages/scifact")
    add("--limit", type=int, metavar="N", help="ask only N of the questions")
    add("--configuration", nargs="+", default=[], metavar="KEY=VALUE", help="settings that differ from the default")
    add(
        "--against",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="settings of a second configuration to compare with",
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--calibrate", action="store_true", help="choose the guard's threshold")
    add("--save", action="store_true", help="with --calibrate: save the threshold in the installation")
    modes.add_argument("--ablation", action="store_true", help="measure the search without each of its parts")
    modes.add_argument("--answers", action="store_true", help="let the chat model answer, with each prompt")
    add("--parallel", type=_read_count, metavar="N", help="with --answers: ask N questions at a time")
    add("--record", type=Path, metavar="FILE", help="with --answers: keep passages and replies, as JSON lines")
    add("--fresh", action="store_true", help="delete the cached vectors of earlier runs")
    return parser


def _read_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)
