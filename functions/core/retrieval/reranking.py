"""Puts the best of the fused ranking in the order of a model that reads question and passage together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from functions.core import models, ports


def rerank(
    question: str, hits: Sequence[models.SearchHit], reranker: ports.Reranker, count: int
) -> tuple[models.SearchHit, ...]:
    """The first `count` hits by the reranker's score, equal ones as they stood, then the others as they stood.

    Raises what the reranker raises; nobody is asked about fewer than two hits.
    """
    best, others = hits[:count], hits[count:]
    if len(best) < 2:
        return tuple(hits)
    scores = reranker.score(question, [_describe(hit) for hit in best])
    order = sorted(range(len(best)), key=lambda at: -scores[at])
    ranked = [replace(best[at], rerank_rank=rank, rerank_score=scores[at]) for rank, at in enumerate(order, 1)]
    return (*ranked, *others)


def _describe(hit: models.SearchHit) -> str:
    """A passage as a model reads it: a passage alone often does not say what it is about, its headings do."""
    return "\n".join(part for part in (hit.title, hit.section_title, hit.markdown or hit.text) if part)
