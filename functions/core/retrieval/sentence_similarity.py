"""Compares sentences with a question in meaning, with the model that found their passages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from functions.core import errors, models, ports

_MAX_CHARS = 600
"""Of a sentence: longer ones are tables or lists without stops, which cost much and mean no more."""

_log = logging.getLogger(__name__)


def make_compare(
    server: models.EmbeddingServer, embedder_of: Callable[[models.EmbeddingServer], ports.QuestionEmbedder]
) -> Callable[[str, Sequence[str]], Sequence[float]]:
    """A function from a question and texts to their cosine similarities; all 0 if the server does not answer."""

    def compare(question: str, texts: Sequence[str]) -> list[float]:
        inputs = [server.query_prefix + question, *(server.passage_prefix + text[:_MAX_CHARS] for text in texts)]
        try:
            asked, *vectors = embedder_of(server).embed(inputs)
        except errors.UnavailableError as exc:
            _log.warning("sentences are compared by words alone: %s", exc.message)
            return [0.0] * len(texts)
        return [sum(float(a) * float(b) for a, b in zip(asked, vector, strict=True)) for vector in vectors]

    return compare
