"""Compares sentences with a question in meaning, with the model that found their passages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from functions.core import errors, models, ports

_MAX_CHARS = 600
"""Of a sentence: longer ones are tables or lists without stops, which cost much and mean no more."""

_log = logging.getLogger(__name__)


def make_compare(
    server: models.EmbeddingServer, embedder_of: Callable[[models.EmbeddingServer], ports.QuestionEmbedder]
) -> Callable[[str, Sequence[str]], Sequence[float]]:
    """A function from a question and texts to their cosine similarities; all 0 if the server does not answer.

    It embeds each text once, although the parts of a question are compared with the same sentences.
    """
    known: dict[str, Any] = {}

    def compare(question: str, texts: Sequence[str]) -> list[float]:
        asked = server.query_prefix + question
        inputs = [asked, *(server.passage_prefix + text[:_MAX_CHARS] for text in texts)]
        new = [text for text in dict.fromkeys(inputs) if text not in known]
        try:
            known.update(zip(new, embedder_of(server).embed(new) if new else [], strict=True))
        except errors.UnavailableError as exc:
            _log.warning("sentences are compared by words alone: %s", exc.message)
            return [0.0] * len(texts)
        return [sum(float(a) * float(b) for a, b in zip(known[asked], known[one], strict=True)) for one in inputs[1:]]

    return compare
