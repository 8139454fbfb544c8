"""Logs one line and records the figures for each retrieval and each answer."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Any

from functions.core import models
from functions.core.retrieval import retriever
from functions.core.settings import Settings
from functions.runtime import metrics

_log = logging.getLogger(__name__)


def find_cost(usage: models.Usage, settings: Settings) -> float | None:
    """The cost of an answer's tokens in US dollars; None without tokens or prices."""
    read, written = usage.prompt_tokens, usage.completion_tokens
    if read is None and written is None:
        return None
    if not settings.price_input_per_million and not settings.price_output_per_million:
        return None
    micro = (read or 0) * settings.price_input_per_million + (written or 0) * settings.price_output_per_million
    return round(micro / 1e6, 9)


def describe_usage(usage: models.Usage, cost: float | None) -> dict[str, Any]:
    """The tokens, and their cost in US dollars where the settings have prices."""
    return asdict(usage) if cost is None else {**asdict(usage), "cost_usd": cost}


def record_answer(user: models.User, conversation_id: str | None, answer: models.Answer, cost: float | None) -> None:
    usage = answer.usage
    metrics.record_answer(answer.mode, answer.status, usage.prompt_tokens, usage.completion_tokens, cost)
    facts = {"user": user.id, "conversation": conversation_id, "mode": answer.mode, "status": answer.status}
    _log.info("ai_rag_answer", extra=facts | describe_usage(usage, cost))


def record_retrieval(
    user: models.User, conversation_id: str | None, scope: models.Scope, retrieval: retriever.Retrieval
) -> None:
    metrics.record_retrieval(scope.kind, len(retrieval.ranking.hits), retrieval.embed_ms, retrieval.search_ms)
    scores = [hit.score for hit in retrieval.ranking.hits]
    _log.info(
        "ai_rag_retrieve",
        extra={
            "user": user.id,
            "conversation": conversation_id,
            "scope": scope.kind,
            "candidate_docs": retrieval.ranking.candidate_sources,
            "candidate_chunks": retrieval.ranking.candidate_chunks,
            "top_k": len(retrieval.context),
            "max_score": max(scores, default=None),
            "min_score": min(scores, default=None),
            "embed_latency_ms": round(retrieval.embed_ms, 1),
            "search_latency_ms": round(retrieval.search_ms, 1),
            "rerank_latency_ms": None if retrieval.rerank_ms is None else round(retrieval.rerank_ms, 1),
            "degraded": list(retrieval.degraded),
        },
    )
