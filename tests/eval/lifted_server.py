"""Measures refusals with an embedding server of unknown scale, all of whose cosines are high.

`python -m tests.eval.lifted_server [en-minilm en-e5 fr-e5]` indexes the documents of the `unanswerable_` sets with a
local model behind HTTP whose cosines were lifted to about 0.75 to 0.95. The scale is measured in these documents as a
worker does: no question is labelled, and the threshold is the default. Prints a table and, as the last line, a JSON
object; returns 1 when a goal is missed, and 2 without the sets.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.core.settings import Settings
from functions.local.evaluation import asking, command, question_sets
from functions.local.evaluation.library import Library, load_library
from functions.local.evaluation.report import print_figures
from functions.local.evaluation.scores import limit, measure_refused_share, reach
from functions.runtime import policy
from functions.runtime.config import Config
from tests.eval.goals import GOALS
from tests.support.fakes.lifted_embeddings import serve_lifted
from tests.support.requirements import report_missing

ANSWERABLE: Final = 400
"""Of the answerable questions, so many are asked."""
FALSE_REFUSALS: Final = 0.05
LEAST, MOST = 0.75, 0.95


@dataclass(frozen=True, slots=True)
class Case:
    """The language of a set, the local model behind the server, and how much its cosines are lifted."""

    lang: str
    local: models.EmbeddingServer
    lift: float


# Measured: the lifted cosines of MiniLM are 0.69 to 0.95 with a median of 0.76, those of e5 in French 0.76 to 0.93.
CASES: Final = {
    "en-minilm": Case("en", policy.MINILM_SERVER, 0.75),
    "en-e5": Case("en", policy.LOCAL_SERVER, 0.2),
    "fr-e5": Case("fr", policy.LOCAL_SERVER, 0.2),
}


@dataclass(frozen=True, slots=True)
class Refusals:
    """Refused shares with the measured scale, and of off-topic questions without one."""

    scale: models.SimilarityScale
    off_topic: float
    answerable: float
    without_scale: float


def measure(database: Database, asked: question_sets.QuestionSet, case: Case, home: Path) -> Refusals:
    """Indexes a set in an empty library, and asks its questions with and without the scale that was measured."""
    with (
        command.open_embedder(home, case.local) as local,
        serve_lifted(
            local, case.lift, query_prefix=case.local.query_prefix, passage_prefix=case.local.passage_prefix
        ) as (server, embedder),
    ):
        stored_settings.ensure_default_server(database, server)
        library = load_library(database, replace(asked, questions=()), embedder, Settings())
        embedder.embed([server.query_prefix + question.text for question in asked.questions])  # in one request
        found, raw = (
            asking.ask_all(database, each, asked.questions, embedder, Settings(), "hybrid")
            for each in (library, _forget_scale(library))
        )
    return Refusals(
        library.server.scale(case.lang, case.lang),
        measure_refused_share(found, answerable=False),
        measure_refused_share(found, answerable=True),
        measure_refused_share(raw, answerable=False),
    )


def _forget_scale(library: Library) -> Library:
    """The library as it would be searched if nobody had measured its server."""
    server = replace(library.server, similarity_floor=0.0, similarity_ceiling=1.0, similarity_scales={})
    return replace(library, server=server)


def read_questions(lang: str) -> question_sets.QuestionSet:
    whole = question_sets.read_set(f"{question_sets.UNANSWERABLE}{lang}", root=question_sets.data_root())
    answerable = question_sets.sample([question for question in whole.questions if question.gold], ANSWERABLE)
    return replace(whole, questions=(*answerable, *(question for question in whole.questions if not question.gold)))


def list_figures(name: str, case: Case, found: Refusals) -> list[dict[str, Any]]:
    rows = [
        reach(f"{name}: off-topic refused", found.off_topic, GOALS.across_off_topic[case.lang]),
        limit(f"{name}: answerable refused", found.answerable, FALSE_REFUSALS),
        limit(f"{name}: off-topic refused without a scale", found.without_scale, 0.5),
        reach(f"{name}: floor", found.scale.floor, LEAST),
        limit(f"{name}: ceiling", found.scale.ceiling, MOST),
    ]
    return [row | {"figure": f"lifted server: {row['figure']}"} for row in rows]


def main(names: Sequence[str]) -> int:
    figures: list[dict[str, Any]] = []
    wanted = {name: CASES[name] for name in names or CASES}
    absent = {f"{question_sets.UNANSWERABLE}{case.lang}" for case in wanted.values()} - set(
        question_sets.list_sets(root := question_sets.data_root())
    )
    if absent:
        report_missing(f"IBID_EVAL_DATA: {', '.join(sorted(absent))} not found in {root}, so nothing was measured")
        return 2
    for name, case in wanted.items():
        with command.open_database() as database:
            figures += list_figures(name, case, measure(database, read_questions(case.lang), case, Config().home))
    print_figures(figures)
    print(json.dumps({"name": "lifted_server", "figures": figures}))
    return 0 if all(row["ok"] for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
