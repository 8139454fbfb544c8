"""Ingests one document: bytes → pages → chunks → vectors, in batches that survive a crash at any moment.

A worker holds the lease of a job. Each batch of pages is saved in one transaction together with the checkpoint that
says how far the job has come, so the next claim, by whomever, goes on after the last saved page and nothing is written
twice. The document flips to what was written when everything is there.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from functions.core import chunking, embedding, errors, extraction, file_types, languages, models, ports
from functions.core.settings import Settings

if TYPE_CHECKING:
    from functions.core.ports import Matrix

# Longer than a model server is waited for; renewed after each of its answers and with each batch saved.
LEASE_SECONDS = 60
BATCH_PAGES = 8
# What a batch may still need when the time of the run gets short.
RESERVE_SECONDS = 20.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a job has come: everything up to page `pages_done` is saved."""

    pages_done: int = 0
    chunk_count: int = 0
    section: str | None = None
    failed_chunks: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A leased job."""

    id: int
    owner_id: str
    document_id: str
    generation: int
    lease_token: str
    attempts: int
    checkpoint: Checkpoint
    object_path: str
    file_name: str
    file_type: models.FileType


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction saves; `vectors[i]` belongs to `chunks[i]`, None where the model refused the chunk."""

    pages: Sequence[models.Page]
    chunks: Sequence[models.Chunk]
    vectors: Sequence[Matrix | None]
    server_id: str
    checkpoint: Checkpoint
    page_count: int


class JobStore(Protocol):
    """The queue and the tables a worker writes. Every write raises LeaseLostError when the lease is gone."""

    def claim_ingest_job(self, job_id: int | None, lease_seconds: int) -> Job | None: ...

    def extend_ingest_lease(self, job: Job, lease_seconds: int) -> None: ...

    def save_batch(self, job: Job, batch: Batch, lease_seconds: int) -> None: ...

    def finish_ingest_job(self, job: Job, facts: dict[str, Any]) -> None: ...

    def fail_ingest_job(self, job: Job, error: errors.IbidError, max_attempts: int) -> str | None: ...

    def release_ingest_job(self, job: Job) -> None: ...

    def count_chunks(self, job: Job) -> dict[str, int]: ...

    def list_blank_pages(self, job: Job) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a claimed job; `again` when another run should go on with it now."""

    job_id: int
    document_id: str
    status: str
    again: bool = False
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """Everything an ingestion needs of the outside. `remaining_seconds` is the time left of this run."""

    store: JobStore
    objects: ports.ObjectStore
    server: models.EmbeddingServer
    embedder: ports.Embedder
    settings: Settings
    remaining_seconds: Callable[[], float] = lambda: float("inf")
    lease_seconds: int = LEASE_SECONDS

    def has_time(self) -> bool:
        """Whether this run is long enough to save another batch."""
        return self.remaining_seconds() >= RESERVE_SECONDS

    def ingest_next(self, job_id: int | None = None) -> Outcome | None:
        """Claims a due job (a given one, or the longest waiting) and works on it until it ends or time is up."""
        job = self.store.claim_ingest_job(job_id, self.lease_seconds)
        if job is None:
            return None
        try:
            self._ingest(job)
        except errors.TimeBudgetExceededError as exc:
            if not exc.details[
                "progress"
            ]:  # the next run would get no further: that is a failure, and they are counted
                return self._fail(job, exc)
            self.store.release_ingest_job(job)
            return Outcome(job.id, job.document_id, "queued", again=True)
        except errors.LeaseLostError:
            return Outcome(job.id, job.document_id, "superseded")
        except errors.IbidError as exc:
            return self._fail(job, exc)
        except Exception:
            # A fault of ours: worth another try, and the stack trace belongs in the log, never in the document's error.
            _log.exception("ingestion failed", extra={"job_id": job.id, "document_id": job.document_id})
            return self._fail(
                job, errors.UnavailableError("The document could not be processed because of an internal error.")
            )
        return Outcome(job.id, job.document_id, "done")

    def _fail(self, job: Job, error: errors.IbidError) -> Outcome:
        status = self.store.fail_ingest_job(job, error, self.settings.max_attempts)
        return Outcome(job.id, job.document_id, status or "superseded", code=error.code)

    def _ingest(self, job: Job) -> None:
        with tempfile.TemporaryDirectory(prefix="ibid-") as folder:
            path = Path(folder) / f"original.{job.file_type}"
            self.objects.download(job.object_path, path)
            file_types.check_content(path, job.file_type)
            digest = hash_file(path)
            with extraction.open_document(path, job.file_type, max_pages=self.settings.max_pages) as document:
                outline = describe_document(document, job.file_name)
                checkpoint = job.checkpoint
                for pages in group_pages(document.pages(checkpoint.pages_done + 1)):
                    checkpoint = self._save_batch(job, outline, pages, checkpoint, document.page_count)
                self._finish(job, outline, checkpoint, document, digest)

    def _save_batch(
        self, job: Job, outline: Outline, pages: Sequence[models.Page], checkpoint: Checkpoint, page_count: int
    ) -> Checkpoint:
        if not self.has_time():
            raise errors.TimeBudgetExceededError(job_id=job.id, progress=checkpoint != job.checkpoint)
        chunks, section = self._chunk(outline, pages, checkpoint)
        vectors = self._embed(job, chunks)
        after = Checkpoint(
            pages[-1].number,
            checkpoint.chunk_count + len(chunks),
            section,
            checkpoint.failed_chunks + sum(v is None for v in vectors),
        )
        self.store.save_batch(job, Batch(pages, chunks, vectors, self.server.id, after, page_count), self.lease_seconds)
        return after

    def _chunk(
        self, outline: Outline, pages: Sequence[models.Page], checkpoint: Checkpoint
    ) -> tuple[list[models.Chunk], str | None]:
        sizes = chunking.ChunkSettings(
            target_tokens=self.settings.chunk_tokens,
            overlap_tokens=self.settings.chunk_overlap,
            max_tokens=self.embedder.max_input_tokens,
        )
        chunks: list[models.Chunk] = []
        section = checkpoint.section
        for page in pages:
            page_chunks = chunking.chunk_page(
                page,
                settings=sizes,
                count_tokens=self.embedder.count_tokens,
                title=outline.title,
                section=section,
                first_index=checkpoint.chunk_count + len(chunks),
                lang=languages.detect_language(page.text, default=outline.lang),
            )
            section = chunking.last_section(page_chunks) or section
            chunks.extend(page_chunks)
        return chunks, section

    def _embed(self, job: Job, chunks: Sequence[models.Chunk]) -> list[Matrix | None]:
        vectors: list[Matrix | None] = [None] * len(chunks)
        texts = [c.search_text for c in chunks]
        counts = [c.token_count for c in chunks]
        for batch in embedding.embed_chunks(
            self.embedder, texts, batch_size=self.server.batch_size, token_counts=counts
        ):
            self.store.extend_ingest_lease(job, self.lease_seconds)
            for index, vector in zip(batch.indices, batch.vectors, strict=True):
                vectors[index] = vector
            for failure in batch.failures:
                _log.warning(
                    "a chunk was not embedded", extra={"code": failure.code, "chunk": chunks[failure.index].index}
                )
        return vectors

    def _finish(
        self,
        job: Job,
        outline: Outline,
        checkpoint: Checkpoint,
        document: extraction.ExtractedDocument,
        digest: str,
    ) -> None:
        if checkpoint.chunk_count == 0:
            raise errors.NoTextError
        if checkpoint.failed_chunks == checkpoint.chunk_count:  # a wrong key, rather than as many bad texts
            raise errors.ModelRejectedError
        chunks = self.store.count_chunks(job)
        metadata = outline.metadata
        self.store.finish_ingest_job(
            job,
            {
                "page_count": document.page_count,
                "title": outline.title,
                "lang": next(iter(chunks), outline.lang),
                "sha256": digest,
                "embedding_server_id": self.server.id,
                "embedding_model": self.server.model,
                "embedding_dim": self.server.dimensions,
                "chunking_strategy": "fixed",
                "ingestion_log": {
                    "title_extracted": metadata.title,
                    "doi_extracted": metadata.doi,
                    "authors_extracted": metadata.author,
                    "journal_extracted": metadata.journal,
                    "published_at_extracted": metadata.published_at,
                    "chunks_count": checkpoint.chunk_count,
                    "ocr_pages_count": 0,
                    "ingested_at": datetime.now(UTC).isoformat(),
                },
                "health": {
                    "pages_without_text": self.store.list_blank_pages(job),
                    "chunks": checkpoint.chunk_count,
                    "chunks_not_embedded": checkpoint.failed_chunks,
                    "languages": chunks,
                },
            },
        )


@dataclass(frozen=True, slots=True)
class Outline:
    """What is known of a document before its pages are chunked."""

    title: str
    lang: models.Lang
    metadata: models.DocumentMetadata


def describe_document(document: extraction.ExtractedDocument, file_name: str) -> Outline:
    """Title and main language from the metadata and the first three pages; the same on every run."""
    opening = "\n".join(page.text for page in itertools.islice(document.pages(), 3))
    metadata = document.metadata
    title = (metadata.title or "").strip() or Path(file_name).stem
    return Outline(title[:255], languages.detect_language(opening), metadata)


def group_pages(pages: Iterator[models.Page], size: int = BATCH_PAGES) -> Iterator[list[models.Page]]:
    """Batches of pages, read as they are needed."""
    while batch := list(itertools.islice(pages, size)):
        yield batch


def hash_file(path: Path) -> str:
    """The sha256 of a file in hex, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
