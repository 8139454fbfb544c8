"""A library made of a question set, in the tables that uploads end in."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast

from psycopg import Cursor

from functions.adapters.postgres import documents, jobs
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.core import chunking, embedding, errors, ingestion, languages, models, ports
from functions.core.settings import Settings
from functions.local import evaluation_sets
from functions.runtime import wiring

PASSAGES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Library:
    """An indexed set: who owns it, what it was embedded with, and the set's id of each document."""

    user: models.User
    server: models.EmbeddingServer
    names: Mapping[str, str]
    chunk_count: int


def load_library(
    database: Database, questions: evaluation_sets.QuestionSet, embedder: ports.Embedder, settings: Settings
) -> Library:
    """Indexes a set for a new user: files by the worker, passages as documents of one page."""
    user = models.User(str(uuid.uuid4()), False, {})
    server = stored_settings.ensure_default_server(database, wiring.LOCAL_SERVER)
    names = _ingest_files(database, user, server, questions.files, embedder, settings)
    for start in range(0, len(questions.passages), PASSAGES_AT_ONCE):
        group = questions.passages[start : start + PASSAGES_AT_ONCE]
        names |= _PassageLoader(database, user, server, embedder, settings).load(group)
    with database.autocommit() as connection:
        # As autovacuum does in a library that grows over days.
        connection.execute("vacuum analyze")
        row = connection.execute("select count(*) as n from rag.chunks where owner_id = %s", (user.id,)).fetchone()
    assert row is not None
    return Library(user, server, names, row["n"])


def _ingest_files(
    database: Database,
    user: models.User,
    server: models.EmbeddingServer,
    files: Sequence[evaluation_sets.SourceFile],
    embedder: ports.Embedder,
    settings: Settings,
) -> dict[str, str]:
    store = jobs.JobStore(database)
    names: dict[str, str] = {}
    for file in files:
        document_id = str(uuid.uuid4())
        file_type = file.path.suffix.lstrip(".").lower()
        values = {
            "id": document_id,
            "owner_id": user.id,
            "notebook_id": None,
            "note_id": None,
            "file_name": file.path.name,
            "file_type": file_type,
            "mime_type": None,
            "size_bytes": file.path.stat().st_size,
            "sha256": None,
            "object_path": f"{user.id}/{document_id}/original.{file_type}",
        }
        with database.as_user(user) as connection:
            documents.insert(connection, values)
        job_id = store.enqueue_stored_object(str(values["object_path"]), "1", None)
        objects = cast(ports.ObjectStore, _OneFile(file.path))
        outcome = ingestion.Worker(store, objects, server, embedder, settings).ingest_next(job_id)
        if outcome is None or outcome.status != "done":
            raise errors.ConflictError(f"{file.path} was not indexed: {outcome.code if outcome else 'no job'}.")
        names[document_id] = file.doc_id
    return names


class _OneFile:
    """The one thing the worker needs of an object store: the bytes, here of a file on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def download(self, path: str, target: Path) -> None:
        shutil.copyfile(self._path, target)


@dataclass(frozen=True, slots=True)
class _Row:
    """A passage about to be written as a document."""

    document_id: str
    generation: int
    passage: evaluation_sets.Passage
    chunks: Sequence[models.Chunk]


@dataclass(frozen=True, slots=True)
class _PassageLoader:
    """Writes the rows that the worker would write, for many documents at once: a job for each would take longer."""

    database: Database
    user: models.User
    server: models.EmbeddingServer
    embedder: ports.Embedder
    settings: Settings

    def load(self, passages: Sequence[evaluation_sets.Passage]) -> dict[str, str]:
        """Indexes the passages that have any text; returns the passage of each document."""
        chunked = [(passage, chunks) for passage in passages if (chunks := self._chunk(passage))]
        vectors = self._embed([chunk for _, chunks in chunked for chunk in chunks])
        # COPY needs a role outside row level security; the server is ours.
        with self.database.autocommit() as connection, connection.transaction():
            ids = connection.execute(
                "select gen_random_uuid()::text as document_id,"
                " nextval(pg_get_serial_sequence('rag.generations', 'id')) as generation from generate_series(1, %s)",
                (len(chunked),),
            ).fetchall()
            written = [
                _Row(row["document_id"], row["generation"], *pair) for row, pair in zip(ids, chunked, strict=True)
            ]
            with connection.cursor() as cursor:
                self._copy_documents(cursor, written)
                chunk_ids = self._copy_chunks(cursor, written)
                self._copy_vectors(cursor, written, chunk_ids, vectors)
                cursor.execute("select rag.index_chunks(%s)", (chunk_ids,))
        return {row.document_id: row.passage.id for row in written}

    def _chunk(self, passage: evaluation_sets.Passage) -> list[models.Chunk]:
        sizes = chunking.ChunkSettings(
            self.settings.chunk_tokens, self.settings.chunk_overlap, self.embedder.max_input_tokens
        )
        chunks, _ = chunking.chunk_page(
            models.Page(1, passage.text),
            settings=sizes,
            count_tokens=self.embedder.count_tokens,
            title=passage.title,
            carry=chunking.Carry(),
            first_index=0,
            lang=languages.detect_language(passage.text),
        )
        return chunks

    def _embed(self, chunks: Sequence[models.Chunk]) -> list[str]:
        """The vectors as Postgres reads them."""
        vectors = [""] * len(chunks)
        batches = embedding.embed_chunks(
            self.embedder,
            [chunk.search_text for chunk in chunks],
            batch_size=PASSAGES_AT_ONCE,
            token_counts=[chunk.token_count for chunk in chunks],
        )
        for batch in batches:
            for index, vector in zip(batch.indices, batch.vectors, strict=True):
                vectors[index] = "[" + ",".join(f"{value:.5g}" for value in vector.tolist()) + "]"
        return vectors

    def _copy_documents(self, cursor: Cursor[Any], written: Sequence[_Row]) -> None:
        self._copy(
            cursor,
            "documents (id, owner_id, file_name, file_type, size_bytes, object_path, status, page_count, chunk_count,"
            " title, lang, generation, embedding_server_id)",
            (
                (
                    row.document_id,
                    self.user.id,
                    row.passage.id[:255],
                    "txt",
                    len(row.passage.text.encode()),
                    f"{self.user.id}/{row.document_id}/original.txt",
                    "indexed",
                    1,
                    len(row.chunks),
                    row.passage.title,
                    row.chunks[0].lang,
                    row.generation,
                    self.server.id,
                )
                for row in written
            ),
        )
        self._copy(
            cursor,
            "generations (id, owner_id, document_id)",
            ((row.generation, self.user.id, row.document_id) for row in written),
        )
        self._copy(
            cursor,
            "pages (generation, page_number, owner_id, text)",
            ((row.generation, 1, self.user.id, row.passage.text) for row in written),
        )

    def _copy_chunks(self, cursor: Cursor[Any], written: Sequence[_Row]) -> list[int]:
        pairs = [(row.generation, chunk) for row in written for chunk in row.chunks]
        cursor.execute("select nextval('rag.chunk_ids') as id from generate_series(1, %s)", (len(pairs),))
        chunk_ids = [int(row["id"]) for row in cursor.fetchall()]
        self._copy(
            cursor,
            "chunks (id, generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset,"
            " section_title, text, search_text, lang, markdown, token_count)",
            (
                (
                    chunk_id,
                    generation,
                    self.user.id,
                    chunk.index,
                    chunk.page_start,
                    chunk.page_end,
                    chunk.start_offset,
                    chunk.end_offset,
                    chunk.section_title,
                    chunk.text,
                    chunk.search_text,
                    chunk.lang,
                    chunk.markdown,
                    chunk.token_count,
                )
                for chunk_id, (generation, chunk) in zip(chunk_ids, pairs, strict=True)
            ),
        )
        return chunk_ids

    def _copy_vectors(
        self, cursor: Cursor[Any], written: Sequence[_Row], chunk_ids: Sequence[int], vectors: Sequence[str]
    ) -> None:
        generations = [row.generation for row in written for _ in row.chunks]
        self._copy(
            cursor,
            "chunk_vectors (chunk_id, generation, owner_id, server_id, embedding)",
            (
                (chunk_id, generation, self.user.id, self.server.id, vector)
                for chunk_id, generation, vector in zip(chunk_ids, generations, vectors, strict=True)
            ),
        )

    def _copy(self, cursor: Cursor[Any], target: LiteralString, rows: Iterable[tuple[Any, ...]]) -> None:
        with cursor.copy(f"copy rag.{target} from stdin") as copy:
            for row in rows:
                copy.write_row(row)
