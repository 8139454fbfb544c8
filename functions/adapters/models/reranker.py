"""A reranking model behind `POST {base_url}/rerank`, in the protocol of Cohere or text-embeddings-inference (TEI).

Cohere's protocol is `{model, query, documents, top_n}` → `{results: [{index, relevance_score}]}`; Cohere (v1 and v2),
Jina, vLLM, Infinity and llama.cpp speak it. TEI takes `{query, texts}` and returns `[{index, score}]`. A server that
refuses the first form because `texts` is missing gets the second from then on.
 https://docs.cohere.com/reference/rerank, https://huggingface.github.io/text-embeddings-inference
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
TOTAL_SECONDS = 10.0
"""No request starts later, because a user is waiting and the fused order is a usable fallback."""
RETRY_POLICY = connection.RetryPolicy(attempts=2, total_seconds=5.0, first_wait=0.2)
TEI_BATCH = 32
"""The default limit of texts in one request to text-embeddings-inference."""

_TEXTS_MISSING = re.compile(r"missing field \W?texts\b|\btexts\b.{0,40}(?:required|missing)", re.IGNORECASE | re.DOTALL)
_UNUSABLE = "The reranker did not return one score for each passage."


class RerankServer:
    """Scores passages for a question, and remembers after the first request which protocol the server speaks."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str | None = None,
        api_key: str | None = None,
        retry_policy: connection.RetryPolicy = RETRY_POLICY,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._model = model
        root = base_url.rstrip("/").removesuffix("/rerank")
        self._server = connection.Connection(root, api_key, retry_policy, read_seconds)
        self._speaks_tei = False

    def score(self, query_text: str, texts: Sequence[str]) -> list[float]:
        """See `ports.Reranker`."""
        if not self._speaks_tei:
            body = {"query": query_text, "documents": list(texts), "top_n": len(texts)}
            try:
                return self._send(body if self._model is None else body | {"model": self._model}, len(texts))
            except errors.ModelRejectedError as exc:
                if not _lacks_texts(exc):
                    raise
                self._speaks_tei = True
        scores: list[float] = []
        deadline = time.monotonic() + TOTAL_SECONDS
        while len(scores) < len(texts):
            if time.monotonic() > deadline:
                raise errors.ModelUnavailableError("The reranker took too long. Try again in a moment.")
            batch = list(texts[len(scores) : len(scores) + TEI_BATCH])
            scores += self._send({"query": query_text, "texts": batch, "truncate": True}, len(batch))
        return scores

    def _send(self, body: dict[str, Any], count: int) -> list[float]:
        def request() -> object:
            return self._server.client.post("/rerank", body=body, cast_to=object)

        return _read_scores(self._server.send(request, lambda refusal: False), count)


def _lacks_texts(fault: errors.ModelRejectedError) -> bool:
    """Whether the server refused the body because it lacks `texts`, as text-embeddings-inference does."""
    refusal = str(getattr(fault.__cause__, "body", ""))
    return fault.details.get("status") in (400, 422) and _TEXTS_MISSING.search(refusal) is not None


def _read_scores(reply: Any, count: int) -> list[float]:
    """The score of each text, in order; raises ModelRejectedError unless each has exactly one finite number."""
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
