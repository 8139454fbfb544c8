"""Scores rankings with binary relevance, by their first ten distinct units."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, fields

DEPTH = 10
DRAWS = 1000


@dataclass(frozen=True, slots=True)
class RankingScores:
    """The scores of one ranking, or the means of several; each is between 0 and 1."""

    ndcg: float
    mrr: float
    hit_1: float
    hit_5: float
    hit_8: float
    hit_10: float


def drop_repeats(units: Iterable[Hashable]) -> list[Hashable]:
    """Keeps the first occurrence of each unit: several passages of one page count as one page."""
    return list(dict.fromkeys(units))


def score_ranking(ranking: Sequence[Hashable], gold: Collection[Hashable]) -> RankingScores:
    """Scores the first ten of `ranking`; the ideal ranking begins with all of `gold`, ten at most."""
    places = [place for place, unit in enumerate(drop_repeats(ranking)[:DEPTH]) if unit in gold]
    ideal = sum(_discount(place) for place in range(min(DEPTH, len(gold))))
    first = places[0] if places else DEPTH
    return RankingScores(
        ndcg=sum(map(_discount, places)) / ideal,
        mrr=1 / (first + 1) if places else 0.0,
        hit_1=float(first < 1),
        hit_5=float(first < 5),
        hit_8=float(first < 8),
        hit_10=float(first < DEPTH),
    )


def mean_scores(scores: Sequence[RankingScores]) -> RankingScores:
    """The mean of each score; NaN without any rankings."""
    return RankingScores(*(mean([getattr(score, field.name) for score in scores]) for field in fields(RankingScores)))


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed (nearest rank); NaN without any values."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def paired_difference(ours: Sequence[float], theirs: Sequence[float], *, seed: int = 1) -> tuple[float, float, float]:
    """The mean of the paired differences `ours - theirs`, and the ends of its 95 % bootstrap interval."""
    differences = [mine - other for mine, other in zip(ours, theirs, strict=True)]
    draw = random.Random(seed).choices
    means = [mean(draw(differences, k=len(differences))) for _ in range(DRAWS)]
    return mean(differences), percentile(means, 0.025), percentile(means, 0.975)


def _discount(place: int) -> float:
    return 1 / math.log2(place + 2)
