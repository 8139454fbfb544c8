"""An embedding server of unknown scale, all of whose cosines are high: a local model behind it, with lifted cosines.

with serve_lifted(local, 0.75) as (server, embedder):  # a cosine of 0.2 becomes one of 0.80
    stored = settings.ensure_default_server(database, server)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from functions.adapters.models.openai_embedder import OpenAIEmbedder
from functions.core import models, ports
from tests.support.fakes.model_server import FakeModelServer

MODEL = "lifted"


@contextmanager
def serve_lifted(
    inner: ports.Embedder, lift: float, *, query_prefix: str = "", passage_prefix: str = ""
) -> Iterator[tuple[models.EmbeddingServer, OpenAIEmbedder]]:
    """Serves `inner` over HTTP with each cosine c as lift + (1 - lift) * c, and yields a row for it and its embedder.

    The row says nothing of the model's similarities, as that of a server that somebody has just registered.
    """
    dimensions = inner.dimensions + 1

    def embed(texts: Sequence[str]) -> list[list[float]]:
        vectors = np.asarray(inner.embed(texts))
        constant = np.full((len(vectors), 1), np.sqrt(lift))
        return np.hstack([np.sqrt(1 - lift) * vectors, constant]).tolist()

    with FakeModelServer(dimensions=dimensions, embed=embed) as fake:
        server = models.EmbeddingServer(
            id="",
            name=MODEL,
            kind="openai",
            model=MODEL,
            dimensions=dimensions,
            max_input_tokens=inner.max_input_tokens,
            languages=(),
            base_url=fake.base_url,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
        )
        yield (
            server,
            OpenAIEmbedder(
                model=MODEL,
                dimensions=dimensions,
                max_input_tokens=inner.max_input_tokens,
                base_url=fake.base_url,
                api_key="none",
            ),
        )
