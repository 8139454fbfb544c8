"""Runs llama-index-vector-stores-postgres in its hybrid mode or, with `fusion`, with two fused retrievers.

Its documentation describes both: `PGVectorStore(hybrid_search=True)` with HNSW and an index on the owner's key.
"""

from __future__ import annotations

import sys
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.vector_stores.postgres import PGVectorStore

from tests.bench.peers import datasets, serving

BATCH_SIZE = 500


class LlamaIndexStore:
    def __init__(self, *, fusion: bool) -> None:
        self._fusion = fusion

    def load(self, dsn: str, dataset: datasets.Dataset, language: str) -> None:
        store = make_store(dsn, language)
        for start in range(0, len(dataset.units), BATCH_SIZE):
            rows = range(start, min(start + BATCH_SIZE, len(dataset.units)))
            store.add([make_node(dataset.units[row], dataset.vectors[row].tolist()) for row in rows])
        store.client.dispose()

    def open(self, dsn: str, dataset: datasets.Dataset, language: str, depth: int) -> None:
        self._store, self._depth = make_store(dsn, language), depth
        self._index = VectorStoreIndex.from_vector_store(self._store, embed_model=MockEmbedding(embed_dim=384))

    def ask(self, text: str, vector: Any, owner: str | None) -> list[str]:
        filters = MetadataFilters(filters=[MetadataFilter(key="owner", value=owner)]) if owner else None
        if self._fusion:
            return self._ask_fused(QueryBundle(text, embedding=vector.tolist()), filters)
        query = VectorStoreQuery(
            query_embedding=vector.tolist(),
            query_str=text,
            similarity_top_k=self._depth,
            sparse_top_k=self._depth,
            mode=VectorStoreQueryMode.HYBRID,
            filters=filters,
        )
        return [node.metadata["passage"] for node in self._store.query(query).nodes or ()]

    def _ask_fused(self, query: QueryBundle, filters: MetadataFilters | None) -> list[str]:
        retrievers = [
            self._index.as_retriever(
                vector_store_query_mode=mode, similarity_top_k=self._depth, sparse_top_k=self._depth, filters=filters
            )
            for mode in ("default", "sparse")
        ]
        fusion = QueryFusionRetriever(
            retrievers,
            llm=MockLLM(),
            similarity_top_k=self._depth,
            num_queries=1,
            mode="relative_score",
            use_async=False,
        )
        return [found.node.metadata["passage"] for found in fusion.retrieve(query)]


def make_store(dsn: str, language: str) -> PGVectorStore:
    return PGVectorStore.from_params(
        connection_string=dsn.replace("postgresql://", "postgresql+psycopg2://", 1),
        async_connection_string=dsn.replace("postgresql://", "postgresql+asyncpg://", 1),
        table_name="passages",
        embed_dim=384,
        hybrid_search=True,
        text_search_config=language,
        use_jsonb=True,
        hnsw_kwargs={"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40},
        indexed_metadata_keys={("owner", "text")},
    )


def make_node(unit: datasets.Unit, vector: list[float]) -> TextNode:
    metadata = {"owner": unit.owner, "passage": unit.passage}
    return TextNode(text=unit.text, embedding=vector, metadata=metadata)


if __name__ == "__main__":
    serving.serve(LlamaIndexStore(fusion="fusion" in sys.argv[1:]))
