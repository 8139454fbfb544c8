"""What is promised of retrieval, and whether a measurement keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.local.evaluation import ranking_scores
from functions.local.evaluation.asking import Asked
from functions.local.evaluation.question_sets import UNANSWERABLE

# (set, score of the hybrid search) → least value. For pages, what plain BM25 finds.
GOALS = {
    ("scifact", "ndcg"): 0.73,
    ("piaf", "ndcg"): 0.81,
    ("xquad_en", "ndcg"): 0.975,
    ("pages_en", "hit_5"): 0.980,
    ("pages_fr", "hit_5"): 0.929,
}
# set → least share of the questions whose answer without a model says what it should, or cites a page that does.
SAYING = {"xquad_en": 0.75, "piaf": 0.65}
CITING = {"pages_en": 0.70, "pages_fr": 0.60}
REFUSALS = {"en": 0.90, "fr": 0.40}
FALSE_REFUSALS = 0.05
FUSION = 0.99
ENGLISH_FUSION = 1.03
REFERENCE = 0.97
REFERENCE_SETS = ("scifact", "piaf", "xquad_en")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A set asked in one configuration; for the questions `missed_by_words` see `list_missed`."""

    name: str
    document_count: int
    chunk_count: int
    arms: dict[str, list[Asked]]
    missed_by_words: list[str]

    @property
    def languages(self) -> list[str]:
        return sorted({asked.question.lang for asked in self.arms["hybrid"]})


def mean_scores(asked: Sequence[Asked]) -> ranking_scores.RankingScores:
    """Over the questions that the set answers."""
    return ranking_scores.mean_scores([one.scores for one in asked if one.scores])


def refused_share(asked: Sequence[Asked], *, answerable: bool) -> float:
    """Of the questions that the set answers, or of those that it does not; NaN when there are none."""
    return ranking_scores.mean([float(one.is_refused) for one in asked if bool(one.scores) == answerable])


def score_citations(asked: Sequence[Asked]) -> tuple[float, float]:
    """Precision and recall of what answers to the questions that the set answers cite; NaN when there are none.

    Precision is the mean share of the cited pages or passages that are evidence, over answers that cite anything;
    recall the mean share of the evidence that is cited, a refusal citing none.
    """
    answerable = [one for one in asked if one.scores]
    right = [len(one.cited & one.question.gold) for one in answerable]
    precision = [n / len(one.cited) for n, one in zip(right, answerable, strict=True) if one.cited]
    recall = [n / len(one.question.gold) for n, one in zip(right, answerable, strict=True)]
    return ranking_scores.mean(precision), ranking_scores.mean(recall)


def score_answers(asked: Sequence[Asked]) -> tuple[float, float]:
    """The shares of the answerable questions that are answered in the words of the gold answer, and that cite evidence.

    NaN when there are none; a refusal does neither.
    """
    answerable = [one for one in asked if one.scores]
    said = [float(one.says_answer) for one in answerable if one.question.answers]
    return ranking_scores.mean(said), ranking_scores.mean(
        [float(bool(one.cited & one.question.gold)) for one in answerable]
    )


def list_figures(found: Evaluation, references: Mapping[str, float] | None = None) -> list[dict[str, Any]]:
    """What is promised of a set, each against its baseline; `references` are nDCG@10 of other full text searches."""
    scores = {arm: mean_scores(asked) for arm, asked in found.arms.items()}
    hybrid = scores["hybrid"]
    rows = [
        figure(f"hybrid {field}", getattr(hybrid, field), least, 1.0)
        for (name, field), least in GOALS.items()
        if name == found.name
    ]
    rows.append(figure("hybrid ndcg to the better arm's", hybrid.ndcg, _better_arm(scores), FUSION))
    for name, ndcg in (references or {}).items():
        rows.append(figure(f"lexical ndcg to that of {name}", scores["lexical"].ndcg, ndcg, REFERENCE))
    rows.append(limit("questions with words of the set and an empty lexical arm", len(found.missed_by_words), 0))
    rows.append(
        limit("answerable questions refused", refused_share(found.arms["hybrid"], answerable=True), FALSE_REFUSALS)
    )
    if any(asked.scores is None for asked in found.arms["hybrid"]):
        refused = refused_share(found.arms["hybrid"], answerable=False)
        least = REFUSALS.get(found.languages[0], 1.0) if len(found.languages) == 1 else 1.0
        rows.append(figure("unanswerable questions refused", refused, least, 1.0 if least < 1 else None))
    precision, recall = score_citations(found.arms["hybrid"])
    rows.append(figure("citation precision", precision, 1.0, None))
    rows.append(figure("citation recall", recall, 1.0, None))
    said, proven = score_answers(found.arms["hybrid"])
    if said == said:
        rows.append(figure("answers without a model that say the gold answer", said, 1.0, SAYING.get(found.name)))
    rows.append(figure("answers without a model that cite evidence", proven, 1.0, CITING.get(found.name)))
    latencies = {
        arm: ranking_scores.percentile([one.search_ms for one in asked], 0.5) for arm, asked in found.arms.items()
    }
    arms_ms = latencies["lexical"] + latencies["dense"]
    rows.append(figure("hybrid search p50 ms to both arms' sum", latencies["hybrid"], arms_ms, None))
    return [row | {"figure": f"{found.name}: {row['figure']}"} for row in rows]


def compare_english(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """What fusing is worth, on average over English sets: the embedding model speaks that language. Nothing of one."""
    # A set without some of its documents, for what cannot be answered, would count the others twice.
    english = [found for found in evaluations if found.languages == ["en"] and not found.name.startswith(UNANSWERABLE)]
    ratios = []
    for found in english:
        scores = {arm: mean_scores(asked) for arm, asked in found.arms.items()}
        ratios.append(scores["hybrid"].ndcg / _better_arm(scores))
    if len(ratios) < 2:
        return []
    return [
        figure("English sets: hybrid ndcg to the better arm's, mean", ranking_scores.mean(ratios), 1.0, ENGLISH_FUSION)
    ]


def figure(name: str, value: float, baseline: float, goal: float | None) -> dict[str, Any]:
    """`goal` is the least ratio of value to baseline; None where a figure is only reported."""
    ok = goal is None or value >= goal * baseline
    return {
        "figure": name,
        "value": round(value, 4),
        "baseline": round(baseline, 4),
        "ratio": round(value / baseline, 4) if baseline else None,
        "goal": goal,
        "ok": ok,
    }


def limit(name: str, value: float, most: float) -> dict[str, Any]:
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


def _better_arm(scores: Mapping[str, ranking_scores.RankingScores]) -> float:
    return max(scores["lexical"].ndcg, scores["dense"].ndcg)
