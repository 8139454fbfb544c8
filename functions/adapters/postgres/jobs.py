"""The ingestion queue and what a worker writes, as the worker role."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from functions.adapters.postgres.connection import Connection, Database, outside_row_security
from functions.core import errors, ingestion, models


class JobStore:
    """Implements core.ingestion.JobStore over the SQL functions of the same names."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_ingest_job(self, job_id: int | None, lease_seconds: int) -> ingestion.Job | None:
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select j.*, d.object_path, d.file_name, d.file_type, d.size_bytes"
                " from rag.claim_ingest_job(%s, %s) j join rag.documents d on d.id = j.document_id",
                (job_id, lease_seconds),
            ).fetchone()
        return None if row is None else _read_job(row)

    def extend_ingest_lease(self, job: ingestion.Job, lease_seconds: int) -> None:
        """Raises LeaseLostError."""
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.extend_ingest_lease(%s, %s, %s) as held", (job.id, job.lease_token, lease_seconds)
            ).fetchone()
        if row is None or not row["held"]:
            raise errors.LeaseLostError(job_id=job.id)

    def save_batch(self, job: ingestion.Job, batch: ingestion.Batch, lease_seconds: int) -> None:
        """Saves pages, chunks, vectors, terms and the checkpoint in one transaction, or raises LeaseLostError."""
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.checkpoint_ingest_job(%s, %s, %s, %s, %s) as held",
                (job.id, job.lease_token, lease_seconds, json.dumps(asdict(batch.checkpoint)), batch.page_count),
            ).fetchone()
            if row is None or not row["held"]:
                raise errors.LeaseLostError(job_id=job.id)
            chunk_ids = _allocate_chunk_ids(connection, len(batch.chunks))
            with outside_row_security(connection):
                _copy_pages(connection, job, batch.pages)
                _copy_chunks(connection, job, batch.chunks, chunk_ids)
                _copy_vectors(connection, job, batch, chunk_ids)
            connection.execute("select rag.index_chunks(%s)", (chunk_ids,))

    def finish_ingest_job(self, job: ingestion.Job, facts: dict[str, Any]) -> None:
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.finish_ingest_job(%s, %s, %s) as held", (job.id, job.lease_token, json.dumps(facts))
            ).fetchone()
        if row is None or not row["held"]:
            raise errors.LeaseLostError(job_id=job.id)

    def fail_ingest_job(self, job: ingestion.Job, error: errors.IbidError, max_attempts: int) -> str | None:
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.fail_ingest_job(%s, %s, %s, %s, %s, %s, %s::float8::int) as status",
                (
                    job.id,
                    job.lease_token,
                    error.code,
                    error.message,
                    error.retryable,
                    max_attempts,
                    error.details.get("retry_after"),
                ),
            ).fetchone()
        return None if row is None else row["status"]

    def release_ingest_job(self, job: ingestion.Job) -> None:
        with self._database.as_worker() as connection:
            connection.execute("select rag.release_ingest_job(%s, %s)", (job.id, job.lease_token))

    def count_chunks(self, job: ingestion.Job) -> dict[str, int]:
        """Chunks of the job's generation by language."""
        with self._database.as_worker() as connection:
            rows = connection.execute(
                "select lang, count(*) as chunks from rag.chunks where generation = %s group by 1 order by 2 desc, 1",
                (job.generation,),
            ).fetchall()
        return {row["lang"]: row["chunks"] for row in rows}

    def list_blank_pages(self, job: ingestion.Job) -> list[int]:
        with self._database.as_worker() as connection:
            rows = connection.execute(
                "select page_number from rag.pages where generation = %s and text !~ '[^[:space:]]' order by 1",
                (job.generation,),
            ).fetchall()
        return [row["page_number"] for row in rows]

    def sweep_ingest_jobs(self, max_attempts: int) -> dict[str, Any]:
        with self._database.as_worker() as connection:
            row = connection.execute("select rag.sweep_ingest_jobs(%s) as report", (max_attempts,)).fetchone()
        assert row is not None
        return dict(row["report"])

    def enqueue_stored_object(self, path: str, version: str, size: int | None) -> int | None:
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.enqueue_stored_object(%s, %s, %s) as id", (path, version, size)
            ).fetchone()
        return None if row is None else row["id"]


def purge_conversations(database: Database, retention_days: int) -> int:
    """Deletes every conversation older than the retention, in batches of their own transaction."""
    deleted = 0
    while True:
        with database.as_worker() as connection:
            row = connection.execute("select rag.purge_conversations(%s) as n", (retention_days,)).fetchone()
        if row is None or row["n"] == 0:
            return deleted
        deleted += row["n"]


def _read_job(row: dict[str, Any]) -> ingestion.Job:
    return ingestion.Job(
        id=row["id"],
        owner_id=str(row["owner_id"]),
        document_id=str(row["document_id"]),
        generation=row["generation"],
        lease_token=str(row["lease_token"]),
        attempts=row["attempts"],
        checkpoint=ingestion.Checkpoint(**row["checkpoint"]),
        object_path=row["object_path"],
        file_name=row["file_name"],
        file_type=row["file_type"],
    )


def _copy_pages(connection: Connection, job: ingestion.Job, pages: Sequence[models.Page]) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "copy rag.pages (generation, page_number, owner_id, text, warnings) from stdin with (format binary)"
        ) as copy,
    ):
        copy.set_types(["int8", "int4", "uuid", "text", "text[]"])
        for page in pages:
            copy.write_row((job.generation, page.number, UUID(job.owner_id), page.text, list(page.warnings)))


def _allocate_chunk_ids(connection: Connection, count: int) -> list[int]:
    rows = connection.execute("select nextval('rag.chunk_ids') as id from generate_series(1, %s)", (count,)).fetchall()
    return [row["id"] for row in rows]


def _copy_chunks(
    connection: Connection, job: ingestion.Job, chunks: Sequence[models.Chunk], chunk_ids: Sequence[int]
) -> None:
    columns = (
        "id, generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset, section_title, text,"
        " search_text, lang, token_count"
    )
    owner_id = UUID(job.owner_id)
    types = ["int8", "int8", "uuid", *["int4"] * 5, *["text"] * 4, "int4"]
    with (
        connection.cursor() as cursor,
        cursor.copy(f"copy rag.chunks ({columns}) from stdin with (format binary)") as copy,
    ):
        copy.set_types(types)
        for chunk_id, c in zip(chunk_ids, chunks, strict=True):
            place = (c.index, c.page_start, c.page_end, c.start_offset, c.end_offset)
            content = (c.section_title, c.text, c.search_text, c.lang, c.token_count)
            copy.write_row((chunk_id, job.generation, owner_id, *place, *content))


def _copy_vectors(connection: Connection, job: ingestion.Job, batch: ingestion.Batch, chunk_ids: Sequence[int]) -> None:
    # They bring numpy, which only workers need. The type is looked up by its schema, which is not on the search path.
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
        for chunk_id, vector in zip(chunk_ids, batch.vectors, strict=True):
            if vector is not None:
                copy.write_row((chunk_id, job.generation, owner_id, server_id, HalfVector(vector)))
