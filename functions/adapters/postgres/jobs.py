"""The ingestion queue, and the results that workers write; every statement runs as the worker role."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psycopg

from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.ingestion import batches, translations
from functions.core import errors, models
from functions.core.ingestion import calibration, jobs, self_retrieval

if TYPE_CHECKING:
    from functions.core.ingestion import text_figures

# Reads what stands at ids spread evenly over the table, so that a large library costs no more than a small one.
_SAMPLE_PASSAGES = """
with bounds as (
    -- Passages only: the ids of translations are negative.
    select min(v.chunk_id) as first, max(v.chunk_id) as last from rag.chunk_vectors v where v.chunk_id > 0
), found as (
    select distinct n.chunk_id
    from bounds b
    cross join lateral (
        select b.first + (b.last - b.first) * i / (8 * %(count)s) as id from generate_series(0, 8 * %(count)s) i) p
    cross join lateral (
        select v.chunk_id from rag.chunk_vectors v
        where v.chunk_id between p.id and p.id + 50 and v.server_id = %(server_id)s order by v.chunk_id limit 1) n
)
select r.text, r.lang, r.vector
from (
    select c.text, c.lang, v.embedding::extensions.vector::real[] as vector,
        row_number() over (partition by c.lang order by hashint8(c.id)) as place
    from found f join rag.chunk_vectors v on v.chunk_id = f.chunk_id join rag.chunks c on c.id = f.chunk_id
) r
where r.place <= %(count)s
"""

_SOURCE = """
select d.file_name as name, d.file_type, d.object_path, null as content from rag.documents d where d.id = %(id)s
union all
select n.title, 'md', null, n.content from rag.notes n where n.id = %(id)s
"""

SHA256_MISMATCH = "IB001"  # raised by rag.adopt_duplicate


class JobStore:
    """Implements core.ingestion.jobs.JobStore with the SQL functions of the same names.

    `holder` names this process in the leases it takes, "host:pid".
    """

    def __init__(self, database: Database, holder: str | None = None) -> None:
        self._database = database
        self._holder = holder

    def claim_ingest_job(self, job_id: int | None, lease_seconds: int) -> jobs.Job | None:
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select * from rag.claim_ingest_job(%s, %s, %s)", (job_id, lease_seconds, self._holder)
            ).fetchone()
            if row is None:
                return None
            # A statement of its own: the one that claims may have begun before the source was saved, and would read the
            # text of before. Until this transaction ends, the claim keeps the source locked.
            source = connection.execute(_SOURCE, {"id": row["document_id"] or row["note_id"]}).fetchone()
        assert source is not None
        return _read_job(row, source)

    def restart_ingest_job(self, job: jobs.Job, server_id: str) -> jobs.Job:
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.restart_ingest_job(%s, %s, %s) as generation", (job.id, job.lease_token, server_id)
            ).fetchone()
        assert row is not None
        generation = row["generation"]
        return job if generation is None else replace(job, generation=generation, checkpoint=jobs.Checkpoint())

    def extend_ingest_lease(self, job: jobs.Job, lease_seconds: int) -> None:
        """Extends the lease of a job; raises LeaseLostError."""
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.extend_ingest_lease(%s, %s, %s) as held", (job.id, job.lease_token, lease_seconds)
            ).fetchone()
        _check_held(row, job)

    def adopt_duplicate(self, job: jobs.Job, content_sha256: str) -> str | None:
        try:
            with self._database.as_worker() as connection:
                row = connection.execute(
                    "select rag.adopt_duplicate(%s, %s, %s)::text as id", (job.id, job.lease_token, content_sha256)
                ).fetchone()
        except psycopg.Error as exc:
            if exc.sqlstate == SHA256_MISMATCH:
                raise errors.CorruptDocumentError(
                    "The uploaded bytes do not have the sha256 that was announced. Upload the file again."
                ) from exc
            raise
        return None if row is None else row["id"]

    def save_batch(self, job: jobs.Job, batch: jobs.Batch, lease_seconds: int) -> None:
        """Saves pages, chunks, vectors, terms and the checkpoint in one transaction; raises LeaseLostError."""
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.checkpoint_ingest_job(%s, %s, %s, %s, %s) as held",
                (job.id, job.lease_token, lease_seconds, json.dumps(batch.checkpoint.dump()), batch.page_count),
            ).fetchone()
            _check_held(row, job)
            batches.copy_batch(connection, job, batch)

    def recall_translations(self, owner_id: str, text_hashes: Collection[str]) -> dict[tuple[str, str], str]:
        return translations.recall_translations(self._database, owner_id, text_hashes)

    def describe_generation(self, job: jobs.Job) -> dict[str, Any]:
        with self._database.as_worker() as connection:
            row = connection.execute("select rag.describe_generation(%s) as facts", (job.generation,)).fetchone()
        assert row is not None
        return dict(row["facts"])

    def finish_ingest_job(self, job: jobs.Job, facts: dict[str, Any]) -> None:
        try:
            with self._database.as_worker() as connection:
                row = connection.execute(
                    "select rag.finish_ingest_job(%s, %s, %s) as held", (job.id, job.lease_token, json.dumps(facts))
                ).fetchone()
        except errors.NotFoundError as exc:  # a worker of the default server does it again
            raise errors.UnavailableError("The embedding server was removed while it indexed this.") from exc
        _check_held(row, job)

    def fail_ingest_job(self, job: jobs.Job, error: errors.IbidError, max_attempts: int) -> str | None:
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

    def release_ingest_job(self, job: jobs.Job) -> None:
        with self._database.as_worker() as connection:
            connection.execute("select rag.release_ingest_job(%s, %s)", (job.id, job.lease_token))

    def release_lost_jobs(self, host: str, alive: Sequence[str]) -> int:
        """Makes the jobs of processes of this host that are not in `alive` due at once; returns how many."""
        with self._database.as_worker() as connection:
            row = connection.execute("select rag.release_lost_jobs(%s, %s) as n", (host, list(alive))).fetchone()
        assert row is not None
        return int(row["n"])

    def list_holders(self, host: str) -> list[str]:
        """The processes of this host that hold a lease, as "host:pid"."""
        with self._database.as_worker() as connection:
            rows = connection.execute(
                "select distinct holder from rag.ingest_jobs where status = 'running' and starts_with(holder, %s)",
                (f"{host}:",),
            ).fetchall()
        return [row["holder"] for row in rows]

    def sample_chunks(self, job: jobs.Job, count: int) -> list[self_retrieval.Sample]:
        with self._database.as_worker() as connection:
            rows = connection.execute(
                "select distinct on (part) page_start as page, start_offset as start, end_offset as end, text from ("
                " select c.*, ntile(%s) over (order by c.chunk_index) as part from rag.chunks c"
                " where c.generation = %s and c.markdown is null) c order by part, length(text) desc, chunk_index",
                (count, job.generation),
            ).fetchall()
        return [self_retrieval.Sample(**row) for row in rows]

    def sample_prose(self, job: jobs.Job, count: int) -> list[text_figures.Prose]:
        from functions.core.ingestion import text_figures  # compiles its patterns, which only workers need

        with self._database.as_worker() as connection:
            rows = connection.execute(
                "select page_start as page, text from ("
                " select c.*, count(*) over () as total from rag.chunks c"
                " where c.generation = %s and c.markdown is null) c"
                " where chunk_index %% greatest(1, total / %s) = 0 order by chunk_index",
                (job.generation, count),
            ).fetchall()
        return [text_figures.Prose(**row) for row in rows]

    def save_health(self, job: jobs.Job, health: Mapping[str, Any]) -> None:
        with self._database.as_worker() as connection:
            connection.execute(
                "update rag.documents set health = %s where id = %s and generation = %s",
                (json.dumps(health), job.source_id, job.generation),
            )

    def count_passages(self, server: models.EmbeddingServer) -> int | None:
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select coalesce("
                "  (select sum(d.chunk_count) from rag.documents d where d.embedding_server_id = s.id), 0)"
                " + coalesce((select sum(n.chunk_count) from rag.notes n where s.is_default), 0) as passages"
                " from rag.embedding_servers s"
                " where s.id = %s and s.calibrated_passages is not distinct from %s",
                (server.id, server.calibrated_passages),
            ).fetchone()
        return None if row is None else int(row["passages"])

    def sample_passages(self, server: models.EmbeddingServer, count: int) -> list[calibration.StoredPassage]:
        with self._database.as_worker() as connection:
            rows = connection.execute(_SAMPLE_PASSAGES, {"server_id": server.id, "count": count}).fetchall()
        return [calibration.StoredPassage(row["text"], row["lang"], row["vector"]) for row in rows]

    def save_scales(
        self, server: models.EmbeddingServer, scales: Mapping[str, models.SimilarityScale], passages: int
    ) -> None:
        average = calibration.average_scale(scales)
        with self._database.as_worker() as connection:
            connection.execute(
                "update rag.embedding_servers set similarity_scales = similarity_scales || %s::jsonb,"
                " similarity_floor = %s, similarity_ceiling = %s, calibrated_passages = %s"
                " where id = %s and calibrated_passages is not distinct from %s",
                (json.dumps(scales), *average, passages, server.id, server.calibrated_passages),
            )

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


def _check_held(row: dict[str, Any] | None, job: jobs.Job) -> None:
    if row is None or not row["held"]:
        raise errors.LeaseLostError(job_id=job.id)


def _read_job(row: dict[str, Any], source: dict[str, Any]) -> jobs.Job:
    return jobs.Job(
        id=row["id"],
        kind=row["kind"],
        owner_id=str(row["owner_id"]),
        source_id=str(row["document_id"] or row["note_id"]),
        generation=row["generation"],
        lease_token=str(row["lease_token"]),
        attempts=row["attempts"],
        checkpoint=jobs.Checkpoint.load(row["checkpoint"]),
        name=source["name"],
        file_type=source["file_type"],
        object_path=source["object_path"],
        content=source["content"],
        error_code=row["error_code"],
    )


@dataclass(frozen=True, slots=True)
class Backlog:
    """Due jobs and how long the oldest has waited, running jobs, and jobs that failed or died within a day.

    Background jobs are not counted as due, because they may wait for as long as there is other work.
    """

    due: int
    oldest_seconds: float
    running: int
    given_up: int


def read_backlog(database: Database) -> Backlog:
    """Counts with the indexes of open and of failed jobs, so the cost does not grow with finished jobs.

    Raises DatabaseUnavailableError.
    """
    with database.as_worker() as connection:
        row = connection.execute(
            """
            with due as materialized (
                select id, case status when 'queued' then run_after else lease_expires_at end as waits_since
                from rag.due_jobs where not background
            )
            select
                (select count(*) from due) as due,
                (select coalesce(extract(epoch from clock_timestamp() - min(waits_since)), 0)::float8 from due)
                    as oldest_seconds,
                (
                    select count(*) from rag.ingest_jobs
                    where status = 'running' and lease_expires_at >= clock_timestamp()
                ) as running,
                (
                    select count(*) from rag.ingest_jobs
                    where status in ('dead', 'failed') and finished_at > clock_timestamp() - interval '1 day'
                ) as given_up
            """
        ).fetchone()
    assert row is not None
    return Backlog(**row)


def count_jobs(database: Database) -> dict[str, int]:
    """The number of jobs by status; reads the whole queue."""
    with database.as_worker() as connection:
        rows = connection.execute("select status, count(*) as n from rag.ingest_jobs group by status").fetchall()
    return {row["status"]: row["n"] for row in rows}
