"""Asks the questions of a set as a user would, and scores the passages that the search finds."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.core import models, ports
from functions.core.answering.extracts import choice
from functions.core.citations.sections import Quotation
from functions.core.retrieval import guard, retriever, sentence_similarity
from functions.core.retrieval.context import choose_context
from functions.core.settings import Settings
from functions.core.text import languages
from functions.local.evaluation import question_sets, ranking_scores
from functions.local.evaluation.library import Library

# Enough hits for ten distinct pages; a larger number does not change the order of the first ones.
HITS = 60
LEXICAL = {"vector_weight": 0.0, "blend_weight": 0.0}
DENSE = {"fts_weight": 0.0, "blend_weight": 0.0}
ARMS: Mapping[str, Mapping[str, Any]] = {"hybrid": {}, "lexical": LEXICAL, "dense": DENSE}

# Searches the text of the chunks and not the index. Single letters are dropped: folding makes « à » and « a » equal.
_FIND_ANY_WORD = r"""
with question as (
    select regexp_replace(rag.content_words(rag.fold(%s), %s), '\m\w\M', ' ', 'g') as words
)
select from question q join rag.chunks c
    on to_tsvector('simple', rag.fold(coalesce(c.search_text, c.search_prefix || c.text)))
        @@ replace(plainto_tsquery('simple', q.words)::text, '&', '|')::tsquery
limit 1
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and the scores of its search; `scores` is None when nothing that was searched answers it.

    `context` scores only the passages that a model would read. `evidence` is the guard's value of the best passage, and
    `threshold` the value below which the guard refuses. `cited` holds the units that the answer without a model cites,
    and `contains_answer` says whether it contains the gold answer; both stay empty for refusals and for single arms.
    """

    question: question_sets.Question
    scores: ranking_scores.RankingScores | None
    context: ranking_scores.RankingScores | None
    search_ms: float
    is_empty: bool
    evidence: float
    threshold: float
    cited: frozenset[question_sets.Unit] = frozenset()
    contains_answer: bool = False

    @property
    def is_refused(self) -> bool:
        return self.evidence < self.threshold


@dataclass(frozen=True, slots=True)
class Found:
    """The passages that a language model would be given for a question; `is_refused` says that none would be asked.

    `units` are what the passages stand in, by their public ids.
    """

    question: question_sets.Question
    lang: models.Lang
    context: tuple[models.SearchHit, ...]
    units: Mapping[str, question_sets.Unit]
    is_refused: bool


def find_passages(
    database: Database,
    library: Library,
    questions: Sequence[question_sets.Question],
    embedder: ports.Embedder,
    settings: Settings,
) -> list[Found]:
    """Searches the whole library for every question, as it is done before a language model is asked."""
    asker = _Asker(database, library, embedder, settings, "hybrid")
    return [asker.find(question, models.Scope("library")) for question in questions]


def ask_all(
    database: Database,
    library: Library,
    questions: Sequence[question_sets.Question],
    embedder: ports.Embedder,
    settings: Settings,
    arm: str,
) -> list[Asked]:
    """Asks every question with one arm of the search, or with the whole search ("hybrid")."""
    asker = _Asker(database, library, embedder, replace(settings, **ARMS[arm]), arm)
    return [asker.ask(question, models.Scope("library"), question.gold) for question in questions]


def ask_in_documents(
    database: Database,
    library: Library,
    questions: Sequence[question_sets.Question],
    embedder: ports.Embedder,
    settings: Settings,
) -> list[Asked]:
    """Asks every question in the scope of the documents that it names, of a library of files."""
    asker = _Asker(database, library, embedder, settings, "hybrid")
    ids = {name: id_ for id_, name in library.names.items()}
    return [
        asker.ask(
            question,
            models.Scope("documents", document_ids=tuple(ids[d] for d in sorted(question.documents))),
            question.gold,
            is_chosen=True,
        )
        for question in questions
    ]


def ask_without_sources(
    database: Database,
    library: Library,
    asked: question_sets.QuestionSet,
    embedder: ports.Embedder,
    settings: Settings,
) -> list[Asked]:
    """Asks every answerable question in the scope of all documents except those that answer it."""
    asker = _Asker(database, library, embedder, settings, "hybrid")
    documents = {passage.id: passage.doc_id or passage.id for passage in asked.passages}
    sources = {id_: documents.get(name, name) for id_, name in library.names.items()}
    found = []
    for question in asked.questions:
        others = tuple(id_ for id_, source in sources.items() if source not in question.documents)
        if question.gold and others:
            found.append(asker.ask(question, models.Scope("documents", document_ids=others), frozenset()))
    return found


@dataclass(frozen=True, slots=True)
class _Asker:
    database: Database
    library: Library
    embedder: ports.Embedder
    settings: Settings
    arm: str

    def ask(
        self,
        question: question_sets.Question,
        scope: models.Scope,
        gold: Collection[Hashable],
        *,
        is_chosen: bool = False,
    ) -> Asked:
        """`is_chosen` says that a user would have chosen the documents of the scope."""
        lang = languages.guess_language(question.text)
        retrieval = self._retrieve(question.text, lang, scope, replace(self.settings, hybrid_top_k=HITS))
        hits = [hit for hit in retrieval.ranking.hits if self.arm != "dense" or hit.vector_rank is not None]
        seen = hits[: self.settings.hybrid_top_k]  # what a user's search would have returned
        context = choose_context(seen, self.settings, retrieval.ranking.candidate_sources)
        asked = Asked(
            question,
            self._score(hits, gold),
            self._score(context, gold),
            retrieval.search_ms,
            is_empty=not hits,
            evidence=guard.find_evidence(retrieval.versions, seen),
            threshold=guard.find_threshold(
                lang,
                self._servers,
                self.settings,
                retrieval.ranking.candidate_chunks,
                names_documents=is_chosen,
            ),
        )
        if self.arm != "hybrid" or asked.is_refused:
            return asked
        # To embed each sentence takes longer than the search, and only sets with answers judge the choice.
        compare = sentence_similarity.make_compare(self.library.server, lambda _: self.embedder)
        quotations = choice.extract_answer(
            question.text, context, lang=lang, compare=compare if question.answers else None
        )
        return replace(
            asked,
            cited=frozenset(_find_unit(self.library, quotation.hit) for quotation in quotations),
            contains_answer=any(_says(quotation, answer) for quotation in quotations for answer in question.answers),
        )

    def find(self, question: question_sets.Question, scope: models.Scope) -> Found:
        lang = languages.guess_language(question.text)
        retrieval = self._retrieve(question.text, lang, scope, self.settings)
        ranking = retrieval.ranking
        threshold = guard.find_threshold(lang, self._servers, self.settings, ranking.candidate_chunks, has_model=True)
        is_refused = not guard.is_answerable(retrieval.versions, ranking.hits, threshold)
        units = {hit.segment_id: _find_unit(self.library, hit) for hit in retrieval.context}
        return Found(question, lang, retrieval.context, units, is_refused)

    @property
    def _servers(self) -> tuple[models.EmbeddingServer, ...]:
        return () if self.arm == "lexical" else (self.library.server,)

    def _retrieve(self, text: str, lang: models.Lang, scope: models.Scope, settings: Settings) -> retriever.Retrieval:
        return retriever.retrieve(
            text,
            lang,
            scope,
            servers=self._servers,
            embedder_of=lambda _: self.embedder,
            search=partial(search.hybrid_search, self.database, self.library.user),
            settings=settings,
        )

    def _score(
        self, hits: Sequence[models.SearchHit], gold: Collection[Hashable]
    ) -> ranking_scores.RankingScores | None:
        return ranking_scores.score_ranking([_find_unit(self.library, hit) for hit in hits], gold) if gold else None


def _find_unit(library: Library, hit: models.SearchHit) -> question_sets.Unit:
    name = library.names[hit.source_id]
    return (name, hit.page_start) if hit.file_type == "pdf" else name


def _says(quotation: Quotation, answer: str) -> bool:
    texts = [quotation.text, *(quotation.hit.text[start:end] for start, end in quotation.spans)]
    return any(_contains(text, answer) for text in texts)


def _contains(text: str, answer: str) -> bool:
    return _normalize(answer) in _normalize(text)


def _normalize(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def list_missed(database: Database, library: Library, asked: Sequence[Asked]) -> list[str]:
    """Lists the questions without a hit of which some word, other than a stop word, occurs in a passage."""
    missed = []
    with database.as_user(library.user) as connection:
        for text in (one.question.text for one in asked if one.is_empty):
            row = connection.execute(_FIND_ANY_WORD, (text, languages.detect_language(text))).fetchone()
            if row is not None:
                missed.append(text)
    return missed
