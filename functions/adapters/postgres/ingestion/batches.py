"""Writes a batch of pages with their chunks and vectors, by binary COPY."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from psycopg.types.json import Jsonb

from functions.adapters.postgres.connection import Connection, outside_row_security
from functions.core import models

if TYPE_CHECKING:  # at run time this would import all of chunking, which only workers need
    from functions.core.ingestion import jobs

WORD_SCALE = 10_000  # sides of word boxes are stored in 1/10000 of the page


def copy_batch(connection: Connection, job: jobs.Job, batch: jobs.Batch) -> None:
    """Writes a batch into the job's generation and indexes its chunks for full text search."""
    chunk_ids = _allocate_chunk_ids(connection, len(batch.chunks))
    with outside_row_security(connection):
        _copy_pages(connection, job, batch.pages)
        _copy_chunks(connection, job, batch.chunks, chunk_ids)
        _copy_vectors(connection, job, batch, chunk_ids)
    connection.execute("select rag.index_chunks(%s)", (chunk_ids,))
    if batch.translations:
        _add_translations(connection, batch, chunk_ids)


def _copy_pages(connection: Connection, job: jobs.Job, pages: Sequence[models.Page]) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "copy rag.pages (generation, page_number, owner_id, text, warnings, ocr_confidence, words, table_count,"
            " hidden_characters) from stdin with (format binary)"
        ) as copy,
    ):
        copy.set_types(["int8", "int4", "uuid", "text", "text[]", "float4", "jsonb", "int4", "int4"])
        for page in pages:
            ocr = page.recognition
            confidence, words = (ocr.confidence, Jsonb(pack_words(ocr.words))) if ocr else (None, None)
            hidden = sum(end - start for start, end in page.hidden)
            contents = (page.text, list(page.warnings), confidence, words, len(page.tables), hidden)
            copy.write_row((job.generation, page.number, UUID(job.owner_id), *contents))


def pack_words(words: Sequence[models.RecognizedWord]) -> list[list[int]]:
    """Words as rag.pages stores them: [start, end, left, top, right, bottom], with the sides in 1/10000 of the page."""
    return [[w.start, w.end, *(round(side * WORD_SCALE) for side in (w.left, w.top, w.right, w.bottom))] for w in words]


def unpack_words(packed: Sequence[Sequence[int]]) -> tuple[models.RecognizedWord, ...]:
    return tuple(models.RecognizedWord(row[0], row[1], *(side / WORD_SCALE for side in row[2:])) for row in packed)


def _allocate_chunk_ids(connection: Connection, count: int) -> list[int]:
    rows = connection.execute("select nextval('rag.chunk_ids') as id from generate_series(1, %s)", (count,)).fetchall()
    return [row["id"] for row in rows]


def _copy_chunks(
    connection: Connection, job: jobs.Job, chunks: Sequence[models.Chunk], chunk_ids: Sequence[int]
) -> None:
    columns = (
        "id, generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset, section_title, text,"
        " search_prefix, search_text, lang, markdown, token_count"
    )
    owner_id = UUID(job.owner_id)
    types = ["int8", "int8", "uuid", *["int4"] * 5, *["text"] * 6, "int4"]
    with (
        connection.cursor() as cursor,
        cursor.copy(f"copy rag.chunks ({columns}) from stdin with (format binary)") as copy,
    ):
        copy.set_types(types)
        for chunk_id, c in zip(chunk_ids, chunks, strict=True):
            place = (c.index, c.page_start, c.page_end, c.start_offset, c.end_offset)
            search_text = c.search_text if c.search_prefix is None else None
            content = (c.section_title, c.text, c.search_prefix, search_text, c.lang, c.markdown, c.token_count)
            copy.write_row((chunk_id, job.generation, owner_id, *place, *content))


def _copy_vectors(connection: Connection, job: jobs.Job, batch: jobs.Batch, chunk_ids: Sequence[int]) -> None:
    # These imports load numpy, which only workers need. The schema is named because it is not on the search path.
    from pgvector import HalfVector
    from pgvector.psycopg.halfvec import register_halfvec_info
    from psycopg.types import TypeInfo

    info = TypeInfo.fetch(connection, "extensions.halfvec")
    assert info is not None
    register_halfvec_info(connection, info)
    owner_id, server_id = UUID(job.owner_id), UUID(batch.server_id)
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "copy rag.chunk_vectors (chunk_id, generation, owner_id, server_id, embedding)"
            " from stdin with (format binary)"
        ) as copy,
    ):
        copy.set_types(["int8", "int8", "uuid", "uuid", "halfvec"])
        own = zip(chunk_ids, batch.vectors, strict=True)
        translated = ((-chunk_ids[one.place], one.vector) for one in batch.translations)
        for chunk_id, vector in itertools.chain(own, translated):
            if vector is not None:
                copy.write_row((chunk_id, job.generation, owner_id, server_id, HalfVector(vector)))


def _add_translations(connection: Connection, batch: jobs.Batch, chunk_ids: Sequence[int]) -> None:
    columns = zip(*((chunk_ids[t.place], t.lang, t.text_hash, t.text) for t in batch.translations), strict=True)
    connection.execute("select rag.add_translations(%s, %s, %s, %s)", [list(column) for column in columns])
