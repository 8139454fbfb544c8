"""Embedding models behind any server that speaks the OpenAI protocol."""

from __future__ import annotations

import base64
import math
import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from functions.adapters.models import openai_connection as connection
from functions.core import errors
from functions.core.text.token_estimate import estimate_tokens

MAX_BATCH_INPUTS = 2048
MAX_BATCH_TOKENS = 300_000
_NO_VECTORS = "The embedding server returned something other than vectors."


class OpenAIEmbedder:
    """An embedding model over `/embeddings`; the vectors are checked and scaled to unit length."""

    def __init__(
        self,
        *,
        model: str,
        dimensions: int,
        max_input_tokens: int = 8191,
        base_url: str | None = None,
        api_key: str | None = None,
        batch_size: int = MAX_BATCH_INPUTS,
        retry_policy: connection.RetryPolicy | None = None,
        read_seconds: float = connection.READ_SECONDS,
    ) -> None:
        self.model = model
        self._dimensions = dimensions
        self._max_input_tokens = max_input_tokens
        self._batch_size = max(1, min(batch_size, MAX_BATCH_INPUTS))
        self._server = connection.Connection(base_url, api_key, retry_policy or connection.RetryPolicy(), read_seconds)
        self._optional: dict[str, Any] = {"encoding_format": "base64"}
        if model.startswith("text-embedding-3"):  # the only models that shorten their vectors on request
            self._optional["dimensions"] = dimensions

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def max_input_tokens(self) -> int:
        return self._max_input_tokens

    def count_tokens(self, text: str) -> int:
        """Estimates generously, because the protocol has no tokenizer."""
        return estimate_tokens(text)

    def embed(self, texts: Sequence[str]) -> list[array[float]]:
        """Returns arrays instead of a numpy matrix: numpy would double the package of the chat function."""
        return [vector for batch in self._batches(texts) for vector in self._embed_batch(batch)]

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text in texts:
            count = self.count_tokens(text)
            if batch and (len(batch) >= self._batch_size or tokens + count > MAX_BATCH_TOKENS):
                yield batch
                batch, tokens = [], 0
            batch.append(text or " ")  # servers refuse an empty input with a 400
            tokens += count
        if batch:
            yield batch

    def _embed_batch(self, batch: list[str]) -> list[array[float]]:
        from openai.types import CreateEmbeddingResponse

        def request() -> Any:
            # client.embeddings.create() would send encoding_format even to a server that refuses the field.
            body = {"model": self.model, "input": batch, **self._optional}
            reply = self._server.client.post("/embeddings", body=body, cast_to=CreateEmbeddingResponse)
            if not isinstance(reply, CreateEmbeddingResponse):  # the client returns the page of a proxy as text
                raise ValueError("the response is not a JSON object")
            return reply

        try:
            reply = self._server.send(request, self._drop_field)
        except OverflowError as exc:  # the client converts integers of any size to float
            raise errors.ModelRejectedError(_NO_VECTORS) from exc
        try:
            vectors = [item.embedding for item in sorted(reply.data or (), key=lambda item: item.index or 0)]
        except (AttributeError, TypeError) as exc:
            raise errors.ModelRejectedError(_NO_VECTORS) from exc
        if len(vectors) != len(batch):
            raise errors.ModelRejectedError(
                "The embedding server did not return one vector for each text.", asked=len(batch), returned=len(vectors)
            )
        return [self._read_vector(vector) for vector in vectors]

    def _read_vector(self, embedding: str | Sequence[float]) -> array[float]:
        try:
            vector = array("f", _decode(embedding) if isinstance(embedding, str) else embedding)
        except (TypeError, ValueError, struct.error) as exc:
            raise errors.ModelRejectedError(_NO_VECTORS) from exc
        if len(vector) != self._dimensions:
            raise errors.ModelRejectedError(
                f"The embedding server returns {len(vector)} dimensions, but {self._dimensions} are configured."
                " An administrator has to correct EMBEDDING_DIMENSIONS, or add a server with these dimensions.",
                returned_dimensions=len(vector),
            )
        length = math.hypot(*vector)
        if not math.isfinite(length) or length == 0.0:
            raise errors.ModelRejectedError("The embedding server returned a vector that is zero or not finite.")
        return array("f", (value / length for value in vector))

    def _drop_field(self, refusal: str) -> bool:
        return (
            next(
                (self._optional.pop(name) for name in list(self._optional) if connection.mentions(refusal, name)), None
            )
            is not None
        )


def _decode(embedding: str) -> tuple[float, ...]:
    """Reads a vector of `encoding_format: base64`: little-endian float32."""
    content = base64.b64decode(embedding)
    return struct.unpack(f"<{len(content) // 4}f", content)
