"""Asks the questions of a set as a user would and scores what is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.core import guard, languages, metrics, models, ports, retrieval
from functions.core.settings import Settings
from functions.local import evaluation_sets
from functions.local.evaluation_library import Library

# Deep enough for ten distinct pages; the order of the first hits does not depend on it.
HITS = 60
LEXICAL = {"vector_weight": 0.0, "blend_weight": 0.0}
DENSE = {"fts_weight": 0.0, "blend_weight": 0.0}
ARMS: Mapping[str, Mapping[str, Any]] = {"hybrid": {}, "lexical": LEXICAL, "dense": DENSE}

# Looks at the text itself, not at the index. Letters alone are no words: « à » and « a » are one when folded.
_STANDS_SOMEWHERE = r"""
with question as (
    select regexp_replace(rag.content_words(rag.fold(%s), %s), '\m\w\M', ' ', 'g') as words
)
select from question q join rag.chunks c
    on to_tsvector('simple', rag.fold(c.search_text))
        @@ replace(plainto_tsquery('simple', q.words)::text, '&', '|')::tsquery
limit 1
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and what came of it; `scores` is None when nothing in the set answers it."""

    question: evaluation_sets.Question
    scores: metrics.RankingScores | None
    search_ms: float
    is_empty: bool
    is_refused: bool


def ask_all(
    database: Database,
    library: Library,
    questions: Sequence[evaluation_sets.Question],
    embedder: ports.Embedder,
    settings: Settings,
    arm: str,
) -> list[Asked]:
    """Asks every question of one arm of the search, or of all of them together ("hybrid")."""
    return list(_ask(database, library, questions, embedder, replace(settings, hybrid_top_k=HITS, **ARMS[arm]), arm))


def _ask(
    database: Database,
    library: Library,
    questions: Sequence[evaluation_sets.Question],
    embedder: ports.Embedder,
    settings: Settings,
    arm: str,
) -> Iterator[Asked]:
    for question in questions:
        found = retrieval.retrieve(
            question.text,
            languages.detect_language(question.text),
            models.Scope("library"),
            servers=() if arm == "lexical" else (library.server,),
            embedder_of=lambda _: embedder,
            search=partial(search.hybrid_search, database, library.user),
            settings=settings,
        )
        hits = [hit for hit in found.found.hits if arm != "dense" or hit.vector_rank is not None]
        ranking = [_unit(library, hit) for hit in hits]
        yield Asked(
            question,
            metrics.score_ranking(ranking, question.gold) if question.gold else None,
            found.search_ms,
            is_empty=not hits,
            is_refused=not guard.is_answerable(hits, settings.similarity_threshold),
        )


def _unit(library: Library, hit: models.SearchHit) -> evaluation_sets.Unit:
    name = library.names[hit.source_id]
    return (name, hit.page_start) if hit.file_type == "pdf" else name


def list_missed(database: Database, library: Library, asked: Sequence[Asked]) -> list[str]:
    """The questions for which nothing was found although a word of theirs, not a stop word, stands in a passage."""
    missed = []
    with database.as_user(library.user) as connection:
        for text in (one.question.text for one in asked if one.is_empty):
            row = connection.execute(_STANDS_SOMEWHERE, (text, languages.detect_language(text))).fetchone()
            if row is not None:
                missed.append(text)
    return missed
