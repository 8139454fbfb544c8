"""Runs Ibid's own search as a user, for the latency part: its tables, row level security and one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from functions.adapters.postgres import search
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.embedding import vector_indexes
from functions.core import models
from functions.core.retrieval import retriever
from functions.core.settings import Settings
from functions.local.database import migrate
from functions.local.evaluation import library
from functions.runtime import policy
from tests.bench.libraries import DOCUMENT_CHUNKS, make_document
from tests.bench.peers import datasets, serving


class IbidSearch:
    def load(self, dsn: str, dataset: datasets.Dataset, language: str) -> None:
        migrate.migrate(dsn)
        database = Database(dsn)
        server = stored_settings.ensure_default_server(database, policy.LOCAL_SERVER)
        for first, count in list_documents(dataset.units):
            units, vectors = dataset.units[first : first + count], dataset.vectors[first : first + count]
            user = models.User.named(units[0].owner)
            document = make_document(str(first), [unit.text for unit in units], vectors)
            library.write_documents(database, user, server, [document])
        # The daily schedule does this too, for libraries that are large enough.
        vector_indexes.build_vector_indexes(database)
        database.close()

    def open(self, dsn: str, dataset: datasets.Dataset, language: str, depth: int) -> None:
        self._database = Database(dsn)
        self._server = stored_settings.ensure_default_server(self._database, policy.LOCAL_SERVER)
        self._settings = Settings(hybrid_top_k=depth)
        with self._database.as_worker() as connection:
            rows = connection.execute("select id::text, file_name from rag.documents").fetchall()
        self._firsts = {row["id"]: int(row["file_name"]) for row in rows}
        self._passages = [unit.passage for unit in dataset.units]

    def ask(self, text: str, vector: Any, owner: str | None) -> list[str]:
        assert owner is not None
        found = retriever.find_passages(
            text,
            vector,
            lang="en",
            server=self._server,
            search=partial(search.hybrid_search, self._database, models.User.named(owner)),
            settings=self._settings,
        )
        return [self._passages[self._firsts[hit.source_id] + hit.chunk_index] for hit in found.hits]


def list_documents(units: Sequence[datasets.Unit]) -> Iterator[tuple[int, int]]:
    """Cuts each run of units of one owner into documents; yields their first unit and number of units."""
    first = 0
    for _, run in groupby(units, key=lambda unit: unit.owner):
        left = len(list(run))
        while left:
            count = min(left, DOCUMENT_CHUNKS)
            yield first, count
            first, left = first + count, left - count


if __name__ == "__main__":
    serving.serve(IbidSearch())
