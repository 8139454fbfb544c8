"""Loads a question set into the tables that hold users' documents."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, LiteralString, cast

from psycopg import Cursor

from functions.adapters.postgres import documents, jobs
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.core import errors, models, ports
from functions.core.ingestion import calibration, embedding
from functions.core.ingestion.chunking import chunker, page_layout, passages
from functions.core.ingestion.worker import Worker
from functions.core.settings import Settings
from functions.core.text import languages
from functions.local.evaluation import question_sets
from functions.runtime import policy

PASSAGE_BATCH = 500
_NEW_IDS = """
select gen_random_uuid()::text as document_id, nextval(pg_get_serial_sequence('rag.generations', 'id')) as generation
from generate_series(1, %s)
"""


_SAMPLE = """
select s.text, s.lang, s.vector
from (
    select c.text, c.lang, v.embedding::extensions.vector::real[] as vector,
        row_number() over (partition by c.lang order by hashint8(v.chunk_id)) as place
    from rag.chunks c join rag.chunk_vectors v on v.chunk_id = c.id
    where c.owner_id = %(owner)s and v.server_id = %(server)s
) s
where s.place <= %(count)s
"""


@dataclass(frozen=True, slots=True)
class Library:
    """An indexed set: its owner, its embedding server, and `names`, the set's own id of each document."""

    user: models.User
    server: models.EmbeddingServer
    names: Mapping[str, str]
    chunk_count: int


def load_library(
    database: Database, questions: question_sets.QuestionSet, embedder: ports.Embedder, settings: Settings
) -> Library:
    """Indexes a set for a new user: the worker reads files, and each passage becomes a document of one page."""
    user = models.User(str(uuid.uuid4()), False, {})
    server = stored_settings.ensure_default_server(database, policy.LOCAL_SERVER)
    names = _ingest_files(database, user, server, questions.files, embedder, settings)
    for start in range(0, len(questions.passages), PASSAGE_BATCH):
        group = questions.passages[start : start + PASSAGE_BATCH]
        documents = list(_cut_passages(group, server, embedder, settings))
        ids = write_documents(database, user, server, documents)
        names |= {row: document.passage.id for row, document in zip(ids, documents, strict=True)}
    with database.autocommit() as connection:
        # Autovacuum would do this in a library that grows over days.
        connection.execute("vacuum analyze")
        row = connection.execute("select count(*) as n from rag.chunks where owner_id = %s", (user.id,)).fetchone()
    assert row is not None
    return Library(user, calibrate(database, user, server, embedder), names, row["n"])


def calibrate(
    database: Database, user: models.User, server: models.EmbeddingServer, embedder: ports.Embedder
) -> models.EmbeddingServer:
    """The server with the scale that an installation with this library alone would measure.

    So the figures of a set do not depend on the sets that were loaded before it.
    """
    alone = _LibraryAlone(database, user)
    if not calibration.calibrate(alone, server, embedder):
        return server
    floor, ceiling = calibration.average_scale(alone.scales)
    return replace(server, similarity_scales=alone.scales, similarity_floor=floor, similarity_ceiling=ceiling)


@dataclass(slots=True)
class _LibraryAlone:
    """What one user's library holds; the scales are kept in memory."""

    database: Database
    user: models.User
    scales: Mapping[str, models.SimilarityScale] = field(default_factory=dict)

    def count_passages(self, server: models.EmbeddingServer) -> int:
        return len(self._read("select c.id from rag.chunks c where c.owner_id = %(owner)s"))

    def sample_passages(self, server: models.EmbeddingServer, count: int) -> list[calibration.StoredPassage]:
        rows = self._read(_SAMPLE, server=server.id, count=count)
        return [calibration.StoredPassage(row["text"], row["lang"], row["vector"]) for row in rows]

    def save_scales(
        self, server: models.EmbeddingServer, scales: Mapping[str, models.SimilarityScale], passages: int
    ) -> None:
        self.scales = scales

    def _read(self, statement: LiteralString, **parameters: Any) -> list[dict[str, Any]]:
        with self.database.as_worker() as connection:
            return connection.execute(statement, {"owner": self.user.id, **parameters}).fetchall()


def _ingest_files(
    database: Database,
    user: models.User,
    server: models.EmbeddingServer,
    files: Sequence[question_sets.SourceFile],
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
        outcome = Worker(store, objects, server, embedder, settings).ingest_next(job_id)
        if outcome is None or outcome.status != "done":
            raise errors.ConflictError(f"{file.path} was not indexed: {outcome.code if outcome else 'no job'}.")
        names[document_id] = file.doc_id
    return names


class _OneFile:
    """The part of an object store that a worker uses, over one file on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def download(self, path: str, target: Path) -> None:
        shutil.copyfile(self._path, target)


def _cut_passages(
    passages: Sequence[question_sets.Passage],
    server: models.EmbeddingServer,
    embedder: ports.Embedder,
    settings: Settings,
) -> Iterator[Document]:
    """Chunks and embeds the passages, and skips those without text."""
    chunked = [(passage, chunks) for passage in passages if (chunks := _chunk(passage, embedder, settings))]
    vectors = iter(_embed([chunk for _, chunks in chunked for chunk in chunks], server, embedder))
    for passage, chunks in chunked:
        yield Document(passage, chunks, list(islice(vectors, len(chunks))))


def _chunk(passage: question_sets.Passage, embedder: ports.Embedder, settings: Settings) -> list[models.Chunk]:
    chunks, _ = chunker.chunk_page(
        models.Page(1, passage.text),
        settings=passages.ChunkSettings(settings.chunk_tokens, settings.chunk_overlap, embedder.max_input_tokens),
        count_tokens=embedder.count_tokens,
        title=passage.title,
        carry=page_layout.Carry(),
        first_index=0,
        lang=languages.detect_language(passage.text),
    )
    return chunks


def _embed(
    chunks: Sequence[models.Chunk], server: models.EmbeddingServer, embedder: ports.Embedder
) -> list[ports.Matrix]:
    vectors: dict[int, ports.Matrix] = {}
    for batch in embedding.embed_chunks(
        embedder,
        [server.passage_prefix + chunk.search_text for chunk in chunks],
        batch_size=PASSAGE_BATCH,
        token_counts=[chunk.token_count for chunk in chunks],
    ):
        vectors |= zip(batch.indices, batch.vectors, strict=True)
    return [vectors[index] for index in range(len(chunks))]


# Writing many documents at once


@dataclass(frozen=True, slots=True)
class Document:
    """A text of one page with one or more chunks and the vector of each."""

    passage: question_sets.Passage
    chunks: Sequence[models.Chunk]
    vectors: Sequence[ports.Matrix]


def write_documents(
    database: Database, user: models.User, server: models.EmbeddingServer, documents: Sequence[Document]
) -> list[str]:
    """Writes the rows that the worker would write, in one transaction, which is faster than a job for each document.

    Returns the ids of the documents, in order.
    """
    # COPY needs a role that bypasses row level security; this connection is the superuser's.
    with database.autocommit() as connection, connection.transaction(), connection.cursor() as cursor:
        rows = cursor.execute(_NEW_IDS, (len(documents),)).fetchall()
        written = [(row["document_id"], row["generation"], each) for row, each in zip(rows, documents, strict=True)]
        _copy_documents(cursor, user, server, written)
        generations = [generation for _, generation, document in written for _ in document.chunks]
        chunk_ids = _copy_chunks(cursor, user, generations, [chunk for each in documents for chunk in each.chunks])
        vectors = (vector for document in documents for vector in document.vectors)
        copy_vectors(cursor, user, server, zip(chunk_ids, generations, vectors, strict=True))
        cursor.execute("select rag.index_chunks(%s)", (chunk_ids,))
    return [document_id for document_id, _, _ in written]


def _copy_documents(
    cursor: Cursor[Any],
    user: models.User,
    server: models.EmbeddingServer,
    written: Sequence[tuple[str, int, Document]],
) -> None:
    _copy(
        cursor,
        "documents (id, owner_id, file_name, file_type, size_bytes, object_path, status, page_count, chunk_count,"
        " title, lang, generation, embedding_server_id)",
        (
            (
                document_id,
                user.id,
                document.passage.id[:255],
                "txt",
                len(document.passage.text.encode()),
                f"{user.id}/{document_id}/original.txt",
                "indexed",
                1,
                len(document.chunks),
                document.passage.title,
                document.chunks[0].lang,
                generation,
                server.id,
            )
            for document_id, generation, document in written
        ),
    )
    _copy(cursor, "generations (id, owner_id, document_id)", ((row[1], user.id, row[0]) for row in written))
    _copy(
        cursor,
        "pages (generation, page_number, owner_id, text)",
        ((generation, 1, user.id, document.passage.text) for _, generation, document in written),
    )


def _copy_chunks(
    cursor: Cursor[Any], user: models.User, generations: Sequence[int], chunks: Sequence[models.Chunk]
) -> list[int]:
    cursor.execute("select nextval('rag.chunk_ids') as id from generate_series(1, %s)", (len(chunks),))
    chunk_ids = [int(row["id"]) for row in cursor.fetchall()]
    _copy(
        cursor,
        "chunks (id, generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset,"
        " section_title, text, search_prefix, search_text, lang, markdown, token_count)",
        (
            (
                chunk_id,
                generation,
                user.id,
                chunk.index,
                chunk.page_start,
                chunk.page_end,
                chunk.start_offset,
                chunk.end_offset,
                chunk.section_title,
                chunk.text,
                chunk.search_prefix,
                chunk.search_text if chunk.search_prefix is None else None,
                chunk.lang,
                chunk.markdown,
                chunk.token_count,
            )
            for chunk_id, generation, chunk in zip(chunk_ids, generations, chunks, strict=True)
        ),
    )
    return chunk_ids


def copy_vectors(
    cursor: Cursor[Any],
    user: models.User,
    server: models.EmbeddingServer,
    rows: Iterable[tuple[int, int, ports.Matrix]],
) -> None:
    """Copies rows of chunk id, generation and vector; half precision keeps no more than five digits."""
    _copy(
        cursor,
        "chunk_vectors (chunk_id, generation, owner_id, server_id, embedding)",
        (
            (chunk_id, generation, user.id, server.id, f"[{','.join(['%.5g'] * len(vector)) % tuple(vector.tolist())}]")
            for chunk_id, generation, vector in rows
        ),
    )


def _copy(cursor: Cursor[Any], target: LiteralString, rows: Iterable[tuple[Any, ...]]) -> None:
    with cursor.copy(f"copy rag.{target} from stdin") as copy:
        for row in rows:
            copy.write_row(row)
