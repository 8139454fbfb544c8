"""Measures what the guard refuses, by language, size of the library and scope: `make eval ARGS=refusals`.

Each of the groups asks questions that its library answers, and questions that it does not: off-topic ones of the
`unanswerable_` sets, whose articles were left out of the library, and near misses, which sound as if their document
answered them. The curve shows both refused shares at fractions and multiples of the default threshold; the least
fraction is the guard's where a language model reads the passages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from functions.adapters.postgres.connection import Database
from functions.core import ports
from functions.core.retrieval import guard
from functions.core.settings import Settings
from functions.local.evaluation import asking, question_sets, ranking_scores
from functions.local.evaluation.library import Library
from functions.local.evaluation.scores import Goals, limit, reach

NAME: Final = "refusals"
FACTORS: Final = (guard.READ_BY_MODEL, 0.8, 1.0, 1.25, 1.5)
MOST_ANSWERABLE: Final = 300
"""So many answerable questions are asked of a library, spread evenly over its sets."""
REPORTS: Final = "reports_eu"
MORE_PASSAGES: Final = "passages/scifact"
"""What makes the largest library large."""


@dataclass(frozen=True, slots=True)
class Case:
    """A library, questions in one language, and the scope in which they are asked: all of it or the documents named."""

    name: str
    lang: str
    documents: question_sets.QuestionSet
    in_document: bool
    answerable: tuple[question_sets.Question, ...]
    unanswerable: tuple[question_sets.Question, ...]
    are_near_misses: bool = False


@dataclass(frozen=True, slots=True)
class Refusals:
    """What was asked in a case, and the number of passages in its library."""

    case: Case
    passage_count: int
    answerable: Sequence[asking.Asked]
    unanswerable: Sequence[asking.Asked]

    def refused_shares(self, factor: float) -> tuple[float, float]:
        """The refused shares of the answerable and the other questions at so many times the threshold."""
        answerable, unanswerable = (
            ranking_scores.mean([float(one.evidence < factor * one.threshold) for one in asked])
            for asked in (self.answerable, self.unanswerable)
        )
        return answerable, unanswerable

    @property
    def gold_in_context(self) -> float:
        """The share of answerable questions of which the model reads a page or passage that answers them."""
        return ranking_scores.mean([one.context.hit_10 for one in self.answerable if one.context])


def read_cases(root: Path, max_questions: int | None = None) -> list[Case]:
    """Lists the cases whose sets are below `root`; `max_questions` asks that many of each kind."""
    names = set(question_sets.list_sets(root))
    cases = [
        case for lang in ("en", "fr") if f"{question_sets.UNANSWERABLE}{lang}" in names for case in _cross(root, lang)
    ]
    if REPORTS in names:
        cases += list_near_miss_cases(root / REPORTS, "reports")
    return [
        replace(
            case,
            answerable=question_sets.sample(case.answerable, min(MOST_ANSWERABLE, max_questions or MOST_ANSWERABLE)),
            unanswerable=question_sets.sample(case.unanswerable, max_questions),
        )
        for case in cases
    ]


def _cross(root: Path, lang: str) -> Iterator[Case]:
    """The off-topic questions of a language in libraries of three sizes, and in single documents."""
    pages = question_sets.read_set(f"{question_sets.UNANSWERABLE}{lang}", root=root)
    off_topic = tuple(question for question in pages.questions if not question.gold)
    answerable = tuple(question for question in pages.questions if question.gold)
    small = replace(pages, questions=())
    files = cycle(file.doc_id for file in pages.files)
    in_documents = tuple(replace(question, documents=frozenset({next(files)})) for question in off_topic)
    yield Case("pages", lang, small, True, answerable, in_documents)
    yield Case("pages", lang, small, False, answerable, off_topic)
    passages = _read_passages(root, lang)
    if passages is None:
        return
    medium = join(f"{lang} pages and passages", small, passages)
    yield Case("pages and passages", lang, medium, False, passages.questions, off_topic)
    others = [_read_passages(root, other) for other in ("en", "fr")]
    more = question_sets.read_set(MORE_PASSAGES, root=root) if (root / MORE_PASSAGES).is_dir() else None
    large = join("everything", *(part for part in (*others, more) if part is not None))
    yield Case("everything", lang, large, False, passages.questions, off_topic)


def _read_passages(root: Path, lang: str) -> question_sets.QuestionSet | None:
    """The passages that the index of unanswerable questions names, less the articles that answer them."""
    index = json.loads((root / question_sets.UNANSWERABLE_INDEX).read_text(encoding="utf-8"))
    listed = index.get(lang, {}).get("passages")
    if listed is None or not (root / listed["set"]).is_dir():
        return None
    whole = question_sets.read_set(listed["set"], root=root)
    passages = tuple(passage for passage in whole.passages if passage.doc_id not in listed["excluded_doc_ids"])
    left = {passage.id for passage in passages}
    return replace(
        whole, passages=passages, questions=tuple(question for question in whole.questions if question.gold <= left)
    )


def list_near_miss_cases(folder: Path, name: str) -> Iterator[Case]:
    """The questions of a set about files and its near misses, each in its own document and in the whole library."""
    asked = question_sets.read_set(str(folder))
    near = question_sets.read_near_misses(folder)
    documents = replace(asked, questions=())
    for lang in ("en", "fr"):
        answerable = tuple(question for question in asked.questions if question.gold and question.lang == lang)
        missed = tuple(question for question in near if question.lang == lang)
        for in_document in (True, False):
            yield Case(name, lang, documents, in_document, answerable, missed, are_near_misses=True)


def join(name: str, *sets: question_sets.QuestionSet) -> question_sets.QuestionSet:
    """One library of the documents of several sets, without questions."""
    return question_sets.QuestionSet(
        name, tuple(p for one in sets for p in one.passages), tuple(f for one in sets for f in one.files), ()
    )


def ask_cases(
    database: Database,
    cases: Sequence[Case],
    load: Callable[[question_sets.QuestionSet], Library],
    embedder: ports.Embedder,
    settings: Settings,
) -> list[Refusals]:
    found = []
    for case in cases:
        library = load(case.documents)
        embedder.embed([library.server.query_prefix + q.text for q in (*case.answerable, *case.unanswerable)])
        ask = asking.ask_in_documents if case.in_document else partial(asking.ask_all, arm="hybrid")
        answerable, unanswerable = (
            ask(database, library, questions, embedder, settings) for questions in (case.answerable, case.unanswerable)
        )
        found.append(Refusals(case, library.chunk_count, answerable, unanswerable))
    return found


def list_figures(found: Sequence[Refusals], goals: Goals) -> list[dict[str, Any]]:
    return [row | {"figure": f"{NAME}: {row['figure']}"} for one in found for row in _list_rows(one, goals)]


def _list_rows(found: Refusals, goals: Goals) -> list[dict[str, Any]]:
    case = found.case
    label = f"{case.name}, {case.lang}, {'in its document' if case.in_document else f'{found.passage_count} passages'}"
    answerable, unanswerable = found.refused_shares(1.0)
    rows = [limit(f"{label}: answerable refused", answerable, goals.answerable_refused)]
    if found.unanswerable:
        kind = "near misses" if case.are_near_misses else "off-topic"
        rows.append(reach(f"{label}: {kind} refused", unanswerable, _find_goal(case, goals)))
    if case.in_document:
        least = goals.gold_in_context if case.are_near_misses else None
        rows.append(reach(f"{label}: gold page in the context", found.gold_in_context, least))
    return rows


def _find_goal(case: Case, goals: Goals) -> float | None:
    if case.are_near_misses:
        return goals.near_misses_refused if case.in_document else None
    by_lang: Mapping[str, float] = goals.refused_off_topic
    return by_lang.get(case.lang)
