"""Embeds a question while it is being saved, because neither needs the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.core import background, models, ports

if TYPE_CHECKING:
    from functions.core.ports import Vectors

EmbedderOf = Callable[[models.EmbeddingServer], ports.QuestionEmbedder]


@dataclass(frozen=True, slots=True)
class EarlyEmbedder:
    """The embedder of a server that has begun with a question; its translations are embedded when they come."""

    server: models.EmbeddingServer
    embedder_of: EmbedderOf
    texts: list[str]
    vectors: Future[Vectors]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Raises what the embedder raises."""
        embedder = self.embedder_of(self.server)
        if list(texts[:1]) != self.texts:
            return embedder.embed(texts)
        vectors, others = self.vectors.result(), texts[1:]
        return [*vectors, *embedder.embed(others)] if others else vectors


def begin_embedding(question: str, servers: Sequence[models.EmbeddingServer], embedder_of: EmbedderOf) -> EmbedderOf:
    """Begins to embed a question with every server at once; returns the embedders that wait for what comes of it."""
    early = {server.id: _begin(question, server, embedder_of) for server in servers}
    return lambda server: early[server.id]


def _begin(question: str, server: models.EmbeddingServer, embedder_of: EmbedderOf) -> EarlyEmbedder:
    texts = [server.query_prefix + question]
    return EarlyEmbedder(server, embedder_of, texts, background.begin(lambda: embedder_of(server).embed(texts)))
