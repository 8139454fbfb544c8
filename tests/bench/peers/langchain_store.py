"""Runs langchain-postgres as documented: `PGVectorStore` with hybrid search, rank fusion and an HNSW index."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_postgres import Column, PGEngine, PGVectorStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion
from langchain_postgres.v2.indexes import HNSWIndex
from sqlalchemy.ext.asyncio import create_async_engine

from tests.bench.peers import datasets, serving

TABLE = "passages"
# An HNSW scan returns 40 rows by default (hnsw.ef_search); the library's own default of 4 could not fill ten rows.
CANDIDATES = 40
BATCH_SIZE = 2000


class KnownVectors(Embeddings):
    """Looks up the vector of a question, so that every system uses the same one."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vectors[text]

    async def aembed_query(self, text: str) -> list[float]:
        return self.vectors[text]


class LangchainStore:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._vectors = KnownVectors()

    def load(self, dsn: str, dataset: datasets.Dataset, language: str) -> None:
        self._loop.run_until_complete(self._load(dsn, dataset, language))

    def open(self, dsn: str, dataset: datasets.Dataset, language: str, depth: int) -> None:
        vectors = dataset.question_vectors.tolist()
        self._vectors.vectors = dict(zip(dataset.questions, vectors, strict=True))
        self._language, self._depth = language, depth
        self._store = self._loop.run_until_complete(self._connect(self._engine(dsn), language))

    def ask(self, text: str, vector: Any, owner: str | None) -> list[str]:
        # The store saves the words of the first question in its configuration and searches for them ever after
        # (0.0.19), so each question gets a new configuration.
        call = self._store.asimilarity_search(
            text,
            k=self._depth,
            filter={"owner": owner} if owner else None,
            hybrid_search_config=make_configuration(self._language),
        )
        return [document.metadata["passage"] for document in self._loop.run_until_complete(call)]

    def _engine(self, dsn: str) -> PGEngine:
        return PGEngine.from_engine(create_async_engine(dsn.replace("postgresql://", "postgresql+psycopg://", 1)))

    async def _connect(self, engine: PGEngine, language: str) -> PGVectorStore:
        return await PGVectorStore.create(
            engine,
            self._vectors,
            TABLE,
            metadata_columns=["owner"],
            hybrid_search_config=make_configuration(language),
        )

    async def _load(self, dsn: str, dataset: datasets.Dataset, language: str) -> None:
        engine = self._engine(dsn)
        await engine.ainit_vectorstore_table(
            TABLE, 384, metadata_columns=[Column("owner", "TEXT")], hybrid_search_config=make_configuration(language)
        )
        store = await self._connect(engine, language)
        for start in range(0, len(dataset.units), BATCH_SIZE):
            units = dataset.units[start : start + BATCH_SIZE]
            await store.aadd_embeddings(
                [unit.text for unit in units],
                dataset.vectors[start : start + BATCH_SIZE].tolist(),
                [{"owner": unit.owner, "passage": unit.passage} for unit in units],
                [str(uuid.uuid4()) for _ in units],
            )
        await store.aapply_hybrid_search_index()
        await store.aapply_vector_index(HNSWIndex())
        await engine.close()


def make_configuration(language: str) -> HybridSearchConfig:
    return HybridSearchConfig(
        tsv_column="content_tsv",
        tsv_lang=f"pg_catalog.{language}",
        fusion_function=reciprocal_rank_fusion,
        primary_top_k=CANDIDATES,
        secondary_top_k=CANDIDATES,
    )


if __name__ == "__main__":
    serving.serve(LangchainStore())
