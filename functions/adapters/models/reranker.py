"""A reranking model behind `POST {base_url}/rerank`, as Cohere made it and others speak it, or as TEI does.

Cohere's form is `{model, query, documents, top_n}` → `{results: [{index, relevance_score}]}`; Cohere (v1 and v2), Jina,
vLLM, Infinity and llama.cpp take it. text-embeddings-inference takes `{query, texts}` and answers with a bare
`[{index, score}]`: a server that refuses the first form because `texts` is missing is spoken to in the second from then
on. https://docs.cohere.com/reference/rerank, https://huggingface.github.io/text-embeddings-inference
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from typing import Any

from functions.adapters.models import openai_connection as connection
from functions.core import errors

READ_SECONDS = 8.0
ALL_SECONDS = 10.0
"""Somebody is waiting for the answer, and there is an order without a reranker, too: no request begins after them."""
PATIENCE = connection.Patience(attempts=2, total_seconds=5.0, first_wait=0.2)
TEI_BATCH = 32
"""What text-embeddings-inference takes at once unless it was started with another limit."""

_MISSES_TEXTS = re.compile(r"missing field \W?texts\b|\btexts\b.{0,40}(?:required|missing)", re.IGNORECASE | re.DOTALL)
_UNUSABLE = "The reranker did not return one score for each passage."


class RerankServer:
    """Scores passages for a question; after the first request it knows which of the two forms the server takes."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str | None = None,
        api_key: str | None = None,
        patience: connection.Patience = PATIENCE,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._model = model
        root = base_url.rstrip("/").removesuffix("/rerank")
        self._server = connection.Connection(root, api_key, patience, read_seconds)
        self._takes_texts = False

    def score(self, query_text: str, texts: Sequence[str]) -> list[float]:
        """See `ports.Reranker`."""
        if not self._takes_texts:
            body = {"query": query_text, "documents": list(texts), "top_n": len(texts)}
            try:
                return self._ask(body if self._model is None else body | {"model": self._model}, len(texts))
            except errors.ModelRejectedError as exc:
                if not _misses_texts(exc):
                    raise
                self._takes_texts = True
        scores: list[float] = []
        deadline = time.monotonic() + ALL_SECONDS
        while len(scores) < len(texts):
            if time.monotonic() > deadline:
                raise errors.ModelUnavailableError("The reranker took too long.")
            batch = list(texts[len(scores) : len(scores) + TEI_BATCH])
            scores += self._ask({"query": query_text, "texts": batch, "truncate": True}, len(batch))
        return scores

    def _ask(self, body: dict[str, Any], count: int) -> list[float]:
        def request() -> object:
            return self._server.client.post("/rerank", body=body, cast_to=object)

        return _read_scores(self._server.ask(request, lambda refusal: False), count)


def _misses_texts(fault: errors.ModelRejectedError) -> bool:
    """Whether a body was refused because it lacks `texts`; what the server said goes no further."""
    said = str(getattr(fault.__cause__, "body", ""))
    return fault.details.get("status") in (400, 422) and _MISSES_TEXTS.search(said) is not None


def _read_scores(reply: Any, count: int) -> list[float]:
    """The score of each text, in order; raises ModelRejectedError unless each has exactly one that is a number."""
    rows: Any = reply.get("results", reply.get("data")) if isinstance(reply, dict) else reply
    scores: dict[int, float] = {}
    try:
        for row in rows:
            scores[row["index"]] = float(row["relevance_score"] if "relevance_score" in row else row["score"])
    except (TypeError, KeyError, ValueError, OverflowError) as exc:
        raise errors.ModelRejectedError(_UNUSABLE) from exc
    if len(rows) != count or scores.keys() != set(range(count)) or not all(map(math.isfinite, scores.values())):
        raise errors.ModelRejectedError(_UNUSABLE, asked=count, returned=len(rows))
    return [scores[at] for at in range(count)]
