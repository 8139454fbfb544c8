"""Runs pgvector-haystack: the embedding and keyword retrievers with reciprocal rank fusion and an HNSW index."""

from __future__ import annotations

from typing import Any

from haystack import Document
from haystack.components.joiners import DocumentJoiner
from haystack.utils import Secret
from haystack_integrations.components.retrievers.pgvector import PgvectorEmbeddingRetriever, PgvectorKeywordRetriever
from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

from tests.bench.peers import datasets, serving

BATCH_SIZE = 2000


class HaystackStore:
    def load(self, dsn: str, dataset: datasets.Dataset, language: str) -> None:
        store = make_store(dsn, language)
        for start in range(0, len(dataset.units), BATCH_SIZE):
            rows = range(start, min(start + BATCH_SIZE, len(dataset.units)))
            store.write_documents([make_document(row, dataset) for row in rows])
        store.close()

    def open(self, dsn: str, dataset: datasets.Dataset, language: str, depth: int) -> None:
        store = make_store(dsn, language)
        self._embedding_retriever = PgvectorEmbeddingRetriever(document_store=store, top_k=depth)
        self._keyword_retriever = PgvectorKeywordRetriever(document_store=store, top_k=depth)
        self._joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=depth)

    def ask(self, text: str, vector: Any, owner: str | None) -> list[str]:
        filters = {"field": "meta.owner", "operator": "==", "value": owner} if owner else None
        found = [
            self._keyword_retriever.run(query=text, filters=filters)["documents"],
            self._embedding_retriever.run(query_embedding=vector.tolist(), filters=filters)["documents"],
        ]
        return [document.meta["passage"] for document in self._joiner.run(found)["documents"]]


def make_store(dsn: str, language: str) -> PgvectorDocumentStore:
    return PgvectorDocumentStore(
        connection_string=Secret.from_token(dsn),
        table_name="passages",
        language=language,
        embedding_dimension=384,
        search_strategy="hnsw",
    )


def make_document(row: int, dataset: datasets.Dataset) -> Document:
    unit = dataset.units[row]
    return Document(
        id=str(row),
        content=unit.text,
        meta={"owner": unit.owner, "passage": unit.passage},
        embedding=dataset.vectors[row].tolist(),
    )


if __name__ == "__main__":
    serving.serve(HaystackStore())
