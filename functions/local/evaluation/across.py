"""Measures questions in one language about documents in another: `make eval ARGS=across_languages`.

Three kinds of questions are asked of a set: its own questions translated, its questions that are not in the language
of its documents, and questions of the `unanswerable_` sets, which nothing in it answers. A line of the file of
translations has the `query_id` of the original question, its `set`, and the `lang` and the words (`question`) of the
translation; what answers it is read from the set.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from functions.adapters.postgres.connection import Database
from functions.core import ports
from functions.core.settings import Settings
from functions.local.evaluation import asking, question_sets
from functions.local.evaluation.library import Library
from functions.local.evaluation.scores import Goals, limit, mean_scores, measure_refused_share, reach

NAME: Final = "across_languages"

Kind = Literal["translated", "own", "off-topic"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """Questions of one kind and language to ask of a set whose documents are in the language `documents`."""

    kind: Kind
    documents: str
    questions: question_sets.QuestionSet

    @property
    def lang(self) -> str:
        return self.questions.questions[0].lang

    @property
    def direction(self) -> str:
        return f"{self.lang}→{self.documents}"


@dataclass(frozen=True, slots=True)
class Crossed:
    """What the search found for the questions of a crossing, or of several of one kind and direction."""

    name: str
    kind: Kind
    lang: str
    direction: str
    asked: Sequence[asking.Asked]


def read_crossings(translations: Path, *, root: Path, max_questions: int | None = None) -> list[Crossing]:
    """Lists what to ask of each set below `root` that has questions in another language than its documents.

    `max_questions` takes that many of each kind. Sets without such questions are left out.
    """
    words: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in question_sets.read_lines(translations):
        words[row["set"]][row["query_id"]] = row
    whole = [question_sets.read_set(name, root=root) for name in question_sets.list_sets(root)]
    off_topic = [q for one in whole if _is_off_topic(one) for q in one.questions if not q.gold]
    sets = [one for one in whole if not _is_off_topic(one) and one.questions]
    return [
        replace(found, questions=replace(found.questions, questions=chosen))
        for one in sets
        for found in _cross(one, words[one.name], off_topic)
        if (chosen := question_sets.sample(found.questions.questions, max_questions))
    ]


def _is_off_topic(asked: question_sets.QuestionSet) -> bool:
    return asked.name.startswith(question_sets.UNANSWERABLE)


def _cross(
    asked: question_sets.QuestionSet, words: Mapping[str, Any], off_topic: Iterable[question_sets.Question]
) -> Iterator[Crossing]:
    [(documents, _)] = Counter(question.lang for question in asked.questions).most_common(1)
    translated = [
        replace(question, text=words[question.id]["question"], lang=words[question.id]["lang"])
        for question in asked.questions
        if question.id in words
    ]
    own = [question for question in asked.questions if question.lang != documents]
    if not (translated or own):
        return
    kinds: Mapping[Kind, Iterable[question_sets.Question]] = {
        "translated": translated,
        "own": own,
        "off-topic": [question for question in off_topic if question.lang != documents],
    }
    for kind, questions in kinds.items():
        for lang in sorted({question.lang for question in questions}):
            chosen = tuple(question for question in questions if question.lang == lang)
            yield Crossing(kind, documents, replace(asked, questions=chosen))


def ask_crossings(
    database: Database,
    crossings: Iterable[Crossing],
    load: Callable[[question_sets.QuestionSet], Library],
    embedder: ports.Embedder,
    settings: Settings,
) -> list[Crossed]:
    """Asks the questions of each crossing of the library that `load` gives for its set.

    Returns the crossings, ordered by kind and direction, each such group of several sets followed by all of them.
    """
    groups: dict[tuple[Kind, str], list[Crossed]] = defaultdict(list)
    for crossing in crossings:
        library, questions = load(crossing.questions), crossing.questions.questions
        embedder.embed([library.server.query_prefix + question.text for question in questions])
        asked = asking.ask_all(database, library, questions, embedder, settings, "hybrid")
        found = Crossed(crossing.questions.name, crossing.kind, crossing.lang, crossing.direction, asked)
        groups[crossing.kind, crossing.direction].append(found)
    return [one for group in groups.values() for one in _join(group)]


def _join(group: list[Crossed]) -> list[Crossed]:
    if len(group) == 1:
        return group
    return [*group, replace(group[0], name="all", asked=[asked for one in group for asked in one.asked])]


def list_figures(found: Sequence[Crossed], goals: Goals) -> list[dict[str, Any]]:
    """The figures of each crossing; those of several sets have goals, and those of one if it is alone."""
    sizes = Counter((one.kind, one.direction) for one in found)
    rows = []
    for one in found:
        has_goal = one.name == "all" or sizes[one.kind, one.direction] == 1
        rows += _list_rows(one, goals if has_goal else Goals())
    return [row | {"figure": f"{NAME}: {row['figure']}"} for row in rows]


def _list_rows(found: Crossed, goals: Goals) -> list[dict[str, Any]]:
    label = f"{found.kind} {found.direction}, {found.name}"
    if found.kind == "off-topic":
        share = measure_refused_share(found.asked, answerable=False)
        return [reach(f"{label}: refused", share, goals.across_off_topic.get(found.lang))]
    scores = mean_scores(found.asked)
    return [
        reach(f"{label}: hit_8", scores.hit_8, goals.across_hit_8),
        reach(f"{label}: ndcg", scores.ndcg, None),
        limit(f"{label}: refused", measure_refused_share(found.asked, answerable=True), goals.across_refused),
    ]
