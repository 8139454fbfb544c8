"""Measures what each part of the search contributes: `python -m functions.local eval SET… --ablation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from functions.adapters.postgres.connection import Database
from functions.core import ports
from functions.core.settings import Settings
from functions.local.evaluation import asking, question_sets, ranking_scores
from functions.local.evaluation.library import Library, load_library
from functions.local.evaluation.report import format_difference
from functions.local.evaluation.scores import figure


@dataclass(frozen=True, slots=True)
class Variant:
    """A search that differs from the default in one respect.

    `scores_context` scores the passages that a model reads instead of the whole ranking.
    """

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    arm: str = "hybrid"
    has_titles: bool = True
    scores_context: bool = False


DEFAULT = Variant("the default")
VARIANTS = (
    DEFAULT,
    Variant("full text alone", arm="lexical"),
    Variant("vectors alone", arm="dense"),
    Variant("two rankings: without the blend", {"blend_weight": 0.0}),
    Variant("the blend alone", {"fts_weight": 0.0, "vector_weight": 0.0}),
    Variant("blend_alpha 0.4: more of the words", {"blend_alpha": 0.4}),
    Variant("blend_alpha 0.7: more of the vectors", {"blend_alpha": 0.7}),
    Variant("rrf_k 60", {"rrf_k": 60}),
    Variant("words at full weight in every language", {"foreign_fts_weight": 1.0}),
    Variant("no words in another language", {"foreign_fts_weight": 0.0}),
    Variant("vectors at full weight in every language", {"foreign_vector_weight": 1.0}),
    Variant("passages of 120 tokens, overlap 20", {"chunk_tokens": 120, "chunk_overlap": 20}),
    Variant("passages of 180 tokens, overlap 30", {"chunk_tokens": 180, "chunk_overlap": 30}),
    Variant("passages of 240 tokens, overlap 40", {"chunk_tokens": 240, "chunk_overlap": 40}),
    Variant("passages of 320 tokens, overlap 50", {"chunk_tokens": 320, "chunk_overlap": 50}),
    Variant("no title above passages", has_titles=False),
    Variant("read by the model", scores_context=True),
    Variant("read by the model, any number of a source", {"passages_per_source": 50}, scores_context=True),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The scores of each question that the set answers, and the number of passages that were searched."""

    scores: list[ranking_scores.RankingScores]
    chunk_count: int


def list_variants(asked: question_sets.QuestionSet, settings: Settings) -> list[Variant]:
    """Lists the default and the variants whose search can differ from it on this set.

    Leaving out titles changes only sets of passages, because a worker reads the titles of files from the files.
    """
    return [
        variant
        for variant in VARIANTS
        if variant is DEFAULT
        or variant.arm != DEFAULT.arm
        or variant.scores_context
        or (not variant.has_titles and any(passage.title for passage in asked.passages))
        or (variant.has_titles and replace(settings, **variant.changes) != settings)
    ]


def run(
    database: Database, asked: question_sets.QuestionSet, embedder: ports.Embedder, settings: Settings
) -> list[dict[str, Any]]:
    """Prints a table of the variants on one set; returns a figure for each, with the default as its baseline."""
    libraries: dict[tuple[Any, ...], Library] = {}
    print(f"\n{asked.name:44}{'passages':>9}{'nDCG@10':>9}{'hit@5':>8}  nDCG@10 less the default's")
    figures: list[dict[str, Any]] = []
    default: list[float] = []
    for variant in list_variants(asked, settings):
        measured = _measure(database, asked, embedder, replace(settings, **variant.changes), variant, libraries)
        mean = ranking_scores.mean_scores(measured.scores)
        ndcgs = [scores.ndcg for scores in measured.scores]
        default = default or ndcgs
        difference = "" if variant is DEFAULT else f"  {format_difference(ndcgs, default)}"
        print(f"{variant.name:44}{measured.chunk_count:9}{mean.ndcg:9.4f}{mean.hit_5:8.4f}{difference}", flush=True)
        name = f"{asked.name}: ndcg, {variant.name}"
        figures.append(figure(name, mean.ndcg, ranking_scores.mean(default), None))
    return figures


def _measure(
    database: Database,
    asked: question_sets.QuestionSet,
    embedder: ports.Embedder,
    settings: Settings,
    variant: Variant,
    libraries: dict[tuple[Any, ...], Library],
) -> Measured:
    index = (settings.chunk_tokens, settings.chunk_overlap, variant.has_titles)
    if index not in libraries:
        indexed = asked if variant.has_titles else _remove_titles(asked)
        libraries[index] = load_library(database, indexed, embedder, settings)
    library = libraries[index]
    found = asking.ask_all(database, library, asked.questions, embedder, settings, variant.arm)
    scores = [one.context if variant.scores_context else one.scores for one in found]
    return Measured([one for one in scores if one], library.chunk_count)


def _remove_titles(asked: question_sets.QuestionSet) -> question_sets.QuestionSet:
    passages: Sequence[question_sets.Passage] = [replace(passage, title=None) for passage in asked.passages]
    return replace(asked, passages=tuple(passages))
