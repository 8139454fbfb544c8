"""Scores the questions of a set, and compares each score with its baseline and goal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from functions.local.evaluation import ranking_scores
from functions.local.evaluation.asking import Asked
from functions.local.evaluation.question_sets import UNANSWERABLE

FALSE_REFUSALS: Final = 0.05  # the largest share of answerable questions that the guard may refuse
FUSION: Final = 0.995  # the least ratio of the hybrid nDCG@10 to that of the better arm


@dataclass(frozen=True, slots=True)
class Goals:
    """The least values that question sets must reach, by the name of the set; a figure without a goal is only reported.

    `hybrid` is by set and score, as in ("piaf", "ndcg"), and `hybrid_ndcg` by set and language. `reference` is the
    least ratio of the lexical nDCG@10 to that of another full text search; only the sets that it names are measured
    with one. `gold_answers` and `cited_evidence` are shares of the answers without a model. `refused_unanswerable` is a
    share by language, and `answerable_refused` the largest share of answerable questions. `english_fusion` is the least
    mean ratio of the hybrid nDCG@10 to that of the better arm.

    The other goals are those of questions about documents in another language: `across_refused` is the largest share
    of the answerable ones that may be refused, and `across_off_topic` the least share of the others, by language of
    the question. `refused_off_topic` is the least share in libraries of any size, by language, `near_misses_refused`
    that of near misses asked of their document, and `gold_in_context` the least share of questions asked of the right
    document of which the model reads a page that answers them. `compact_at_least` and `compact_at_most` are the least
    and largest ratios of the compact prompt's figures (`right`, `verified`; `output`) to those of the full one.
    """

    hybrid: Mapping[tuple[str, str], float] = field(default_factory=dict)
    hybrid_ndcg: Mapping[tuple[str, str], float] = field(default_factory=dict)
    reference: Mapping[str, float] = field(default_factory=dict)
    gold_answers: Mapping[str, float] = field(default_factory=dict)
    cited_evidence: Mapping[str, float] = field(default_factory=dict)
    refused_unanswerable: Mapping[str, float] = field(default_factory=dict)
    english_fusion: float | None = None
    across_hit_8: float | None = None
    across_refused: float | None = None
    across_off_topic: Mapping[str, float] = field(default_factory=dict)
    answerable_refused: float = FALSE_REFUSALS
    refused_off_topic: Mapping[str, float] = field(default_factory=dict)
    near_misses_refused: float | None = None
    gold_in_context: float | None = None
    compact_at_least: Mapping[str, float] = field(default_factory=dict)
    compact_at_most: Mapping[str, float] = field(default_factory=dict)


NO_GOALS: Final = Goals()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The answers to a set's questions in one configuration; `asking.list_missed` explains `missed_by_words`."""

    name: str
    document_count: int
    chunk_count: int
    arms: dict[str, list[Asked]]
    missed_by_words: list[str]

    @property
    def languages(self) -> list[str]:
        return sorted({asked.question.lang for asked in self.arms["hybrid"]})


def mean_scores(asked: Sequence[Asked]) -> ranking_scores.RankingScores:
    """The mean scores of the questions that the set answers."""
    return ranking_scores.mean_scores([one.scores for one in asked if one.scores])


def measure_refused_share(asked: Sequence[Asked], *, answerable: bool) -> float:
    """The refused share of the questions that the set answers, or of those that it does not; NaN without any."""
    return ranking_scores.mean([float(one.is_refused) for one in asked if bool(one.scores) == answerable])


def measure_context(asked: Sequence[Asked]) -> float:
    """The share of answerable questions of which a model would read a page or passage that answers them."""
    return ranking_scores.mean([one.context.hit_10 for one in asked if one.context])


def score_citations(asked: Sequence[Asked]) -> tuple[float, float]:
    """The precision and recall of the citations in answers to the questions that the set answers; NaN without any.

    Precision is the mean share of the cited pages or passages that are evidence, over the answers that cite something.
    Recall is the mean share of the evidence that is cited; a refusal cites none.
    """
    answerable = [one for one in asked if one.scores]
    correct = [len(one.cited & one.question.gold) for one in answerable]
    precision = [n / len(one.cited) for n, one in zip(correct, answerable, strict=True) if one.cited]
    recall = [n / len(one.question.gold) for n, one in zip(correct, answerable, strict=True)]
    return ranking_scores.mean(precision), ranking_scores.mean(recall)


def score_answers(asked: Sequence[Asked]) -> tuple[float, float]:
    """The shares of answers to answerable questions that contain the gold answer, and that cite evidence.

    NaN without any such questions; a refusal does neither.
    """
    answerable = [one for one in asked if one.scores]
    contain = [float(one.contains_answer) for one in answerable if one.question.answers]
    cite = [float(bool(one.cited & one.question.gold)) for one in answerable]
    return ranking_scores.mean(contain), ranking_scores.mean(cite)


def list_figures(
    found: Evaluation, references: Mapping[str, float] | None = None, goals: Goals = NO_GOALS
) -> list[dict[str, Any]]:
    """The figures of a set with their baselines and goals; `references` are the nDCG@10 of other full text searches."""
    scores = {arm: mean_scores(asked) for arm, asked in found.arms.items()}
    hybrid = scores["hybrid"]
    rows = [
        figure(f"hybrid {score}", getattr(hybrid, score), least, 1.0)
        for (name, score), least in goals.hybrid.items()
        if name == found.name
    ]
    if len(found.languages) > 1:
        for lang in found.languages:
            ndcg = mean_scores([one for one in found.arms["hybrid"] if one.question.lang == lang]).ndcg
            rows.append(reach(f"hybrid ndcg, {lang}", ndcg, goals.hybrid_ndcg.get((found.name, lang))))
    rows.append(figure("hybrid ndcg to the better arm's", hybrid.ndcg, _find_better_ndcg(scores), FUSION))
    for name, ndcg in (references or {}).items():
        rows.append(
            figure(f"lexical ndcg to that of {name}", scores["lexical"].ndcg, ndcg, goals.reference.get(found.name))
        )
    rows.append(limit("questions with words of the set and an empty lexical arm", len(found.missed_by_words), 0))
    rows.append(
        limit(
            "answerable questions refused",
            measure_refused_share(found.arms["hybrid"], answerable=True),
            goals.answerable_refused,
        )
    )
    if any(asked.scores is None for asked in found.arms["hybrid"]):
        refused = measure_refused_share(found.arms["hybrid"], answerable=False)
        least = goals.refused_unanswerable.get(found.languages[0]) if len(found.languages) == 1 else None
        rows.append(reach("unanswerable questions refused", refused, least))
    rows.append(
        figure("questions whose page or passage the model reads", measure_context(found.arms["hybrid"]), 1.0, None)
    )
    precision, recall = score_citations(found.arms["hybrid"])
    rows.append(figure("citation precision", precision, 1.0, None))
    rows.append(figure("citation recall", recall, 1.0, None))
    contain, cite = score_answers(found.arms["hybrid"])
    if not math.isnan(contain):
        name = "answers without a model that say the gold answer"
        rows.append(figure(name, contain, 1.0, goals.gold_answers.get(found.name)))
    rows.append(figure("answers without a model that cite evidence", cite, 1.0, goals.cited_evidence.get(found.name)))
    latencies = {
        arm: ranking_scores.percentile([one.search_ms for one in asked], 0.5) for arm, asked in found.arms.items()
    }
    arms_ms = latencies["lexical"] + latencies["dense"]
    rows.append(figure("hybrid search p50 ms to both arms' sum", latencies["hybrid"], arms_ms, None))
    return [row | {"figure": f"{found.name}: {row['figure']}"} for row in rows]


def compare_english(evaluations: Sequence[Evaluation], goals: Goals = NO_GOALS) -> list[dict[str, Any]]:
    """How much fusion improves on the better arm, on average over the English sets; empty for fewer than two sets.

    Only English sets count, because English is the language of the local embedding model.
    """
    # The `unanswerable_` sets hold the documents of other sets, which would count twice.
    english = [found for found in evaluations if found.languages == ["en"] and not found.name.startswith(UNANSWERABLE)]
    ratios = []
    for found in english:
        scores = {arm: mean_scores(asked) for arm, asked in found.arms.items()}
        ratios.append(scores["hybrid"].ndcg / _find_better_ndcg(scores))
    if len(ratios) < 2:
        return []
    name = "English sets: hybrid ndcg to the better arm's, mean"
    return [figure(name, ranking_scores.mean(ratios), 1.0, goals.english_fusion)]


def figure(name: str, value: float, baseline: float, goal: float | None) -> dict[str, Any]:
    """A figure whose ratio to its baseline must be at least `goal`; None where it is only reported."""
    ok = goal is None or value >= goal * baseline
    return {
        "figure": name,
        "value": round(value, 4),
        "baseline": round(baseline, 4),
        "ratio": round(value / baseline, 4) if baseline else None,
        "goal": goal,
        "ok": ok,
    }


def reach(name: str, value: float, least: float | None) -> dict[str, Any]:
    """A share that must be at least `least`; without one it is only reported."""
    return figure(name, value, 1.0, None) if least is None else figure(name, value, least, 1.0)


def limit(name: str, value: float, most: float | None) -> dict[str, Any]:
    """A figure that must not exceed `most`, its baseline; without one it is only reported."""
    if most is None:
        return figure(name, value, 1.0, None)
    ratio = round(value / most, 4) if most else None
    return {
        "figure": name,
        "value": round(value, 4),
        "baseline": most,
        "ratio": ratio,
        "goal": 1.0,
        "ok": value <= most,
    }


def _find_better_ndcg(scores: Mapping[str, ranking_scores.RankingScores]) -> float:
    return max(scores["lexical"].ndcg, scores["dense"].ndcg)
