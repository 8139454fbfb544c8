"""Measures searches in the words of a page: `python -m tests.eval.rephrased`.

The phrases of `rephrased_questions.jsonl` stand in for a model's. They were written by hand for the indirect questions
of `reports_eu`, by somebody who had seen the evidence, so the figures are an upper bound of what a model reaches.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.core import models, ports
from functions.core.answering import query_rephrasing
from functions.core.retrieval import guard, retriever
from functions.core.settings import Settings
from functions.core.text import languages
from functions.local.evaluation import command, question_sets, ranking_scores
from functions.local.evaluation.library import Library, load_library
from functions.runtime.config import Config

PHRASES: Final = Path(__file__).with_name("rephrased_questions.jsonl")
SET: Final = "reports_eu"
HITS: Final = 60


@dataclass(frozen=True, slots=True)
class Searched:
    """The scores of one search, and whether it is the only one: it is sure, or refused."""

    scores: ranking_scores.RankingScores
    is_final: bool


@dataclass(frozen=True, slots=True)
class _Searcher:
    database: Database
    library: Library
    embedder: ports.Embedder

    def search(self, question: question_sets.Question, versions: Sequence[models.Version] = ()) -> Searched:
        settings, server = Settings(), self.library.server
        lang = languages.guess_language(question.text)
        found = retriever.retrieve(
            question.text,
            lang,
            models.Scope("library"),
            servers=(server,),
            embedder_of=lambda _: self.embedder,
            search=partial(search.hybrid_search, self.database, self.library.user),
            settings=replace(settings, hybrid_top_k=HITS),
            translations=versions,
        )
        hits = found.ranking.hits
        units = [(self.library.names[hit.source_id], hit.page_start) for hit in hits]
        threshold = guard.find_threshold(lang, (server,), settings, found.ranking.candidate_chunks)
        evidence = guard.find_evidence(found.versions, hits[: settings.hybrid_top_k])
        is_final = not guard.READ_BY_MODEL * threshold <= evidence < guard.SURE * threshold
        return Searched(ranking_scores.score_ranking(units, question.gold), is_final)


def read_phrases() -> dict[str, tuple[str, ...]]:
    """The phrases of each question by its id."""
    return {row["query_id"]: tuple(row["phrases"]) for row in question_sets.read_lines(PHRASES)}


def find_versions(question: question_sets.Question, phrases: Sequence[str]) -> tuple[models.Version, ...]:
    """Those of the phrases that the product would accept from a model."""
    lang = languages.guess_language(question.text)
    usable = query_rephrasing.read_reply("; ".join(phrases), question.text, lang)
    return tuple((phrase, lang) for phrase in usable)


def measure(searcher: _Searcher, questions: Sequence[question_sets.Question]) -> Mapping[str, Sequence[Searched]]:
    """Searches the rephrased questions as they are, in other words too, and as the product does; others as they are."""
    phrases = read_phrases()
    indirect = [question for question in questions if question.id in phrases]
    plain = [searcher.search(question) for question in indirect]
    always = [searcher.search(question, find_versions(question, phrases[question.id])) for question in indirect]
    product = [first if first.is_final else second for first, second in zip(plain, always, strict=True)]
    others = [searcher.search(question) for question in questions if question.gold and question.id not in phrases]
    return {"indirect": plain, "always rephrased": always, "as the product": product, "others": others}


def print_table(measured: Mapping[str, Sequence[Searched]]) -> None:
    print(f"{'searched':20}{'n':>5}{'nDCG@10':>9}{'hit@1':>8}{'hit@10':>8}{'final':>8}")
    for name, searched in measured.items():
        columns = [
            [one.scores.ndcg for one in searched],
            [one.scores.hit_1 for one in searched],
            [one.scores.hit_10 for one in searched],
            [float(one.is_final) for one in searched],
        ]
        ndcg, *shares = map(ranking_scores.mean, columns)
        print(f"{name:20}{len(searched):5}{ndcg:9.4f}" + "".join(f"{share:8.3f}" for share in shares))


def main() -> int:
    asked = question_sets.read_set(SET)
    with command.open_database() as database, command.open_embedder(Config().home) as embedder:
        library = load_library(database, replace(asked, questions=()), embedder, Settings())
        print_table(measure(_Searcher(database, library, embedder), asked.questions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
