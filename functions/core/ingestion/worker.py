"""Ingests one document or note: bytes → pages → chunks → vectors, in batches that survive a crash at any moment.

A worker holds the lease of a job. Each batch of pages is saved in one transaction, together with the checkpoint that
records how far the job has come. The next worker that claims the job therefore continues after the last saved page, and
nothing is written twice. The last step makes the new generation of the source visible.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functions.core import errors, models, ports
from functions.core.extraction import plain_text, scratch
from functions.core.extraction.documents import ExtractedDocument
from functions.core.extraction.isolation import IsolatedDocument
from functions.core.extraction.page_faults import FaultTolerantReader
from functions.core.ingestion import (
    calibration,
    embedding,
    late_chunking,
    report,
    self_retrieval,
    text_figures,
    translation,
)
from functions.core.ingestion.batch_chunks import ChunkedBatch, chunk_batch
from functions.core.ingestion.chunking import passages
from functions.core.ingestion.jobs import Batch, Checkpoint, Job, JobStore, KnownTranslation, Outcome
from functions.core.ingestion.outline import OPENING_PAGES, describe_document
from functions.core.retrieval import retriever
from functions.core.settings import Settings
from functions.core.text import languages

if TYPE_CHECKING:
    from functions.core.ports import Matrix

# Longer than the time limit of a model request. Renewed after each of them, between pages, and with each batch.
LEASE_SECONDS = 60
BATCH_PAGES = 8
# A batch starts only if this run has at least this much time left.
RESERVE_SECONDS = 20.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """Everything that an ingestion needs from outside.

    `remaining_seconds` returns the time left in this run. `search_as` returns the search of the user with that id;
    without it, self-retrieval is not measured. With `calibrates` the scale of similarities is measured again when the
    library has changed much. `translates` are the languages whose passages are translated afterwards. `open_document`
    checks the content of a file and opens it within limits.
    """

    store: JobStore
    objects: ports.ObjectStore
    server: models.EmbeddingServer
    embedder: ports.Embedder
    settings: Settings
    search_as: Callable[[str], retriever.Search] | None = None
    recognizer: ports.TextRecognizer | None = None
    calibrates: bool = False
    translates: tuple[models.Lang, ...] = ()
    remaining_seconds: Callable[[], float] = lambda: float("inf")
    lease_seconds: int = LEASE_SECONDS
    open_document: Callable[..., ExtractedDocument] = IsolatedDocument

    def has_time(self) -> bool:
        """Whether this run has enough time left to save another batch."""
        return self.remaining_seconds() >= RESERVE_SECONDS

    def ingest_next(self, job_id: int | None = None) -> Outcome | None:
        """Claims a due job (the given one, or the one waiting longest) and works on it until it ends or time is up."""
        job = self.store.claim_ingest_job(job_id, self.lease_seconds)
        if job is None:
            return None
        try:
            status = self._ingest(job)
        except errors.TimeBudgetExceededError as exc:
            if not exc.details["progress"]:  # the next run would get no further: a failure, which counts as an attempt
                return self._fail(job, exc)
            self.store.release_ingest_job(job)
            return Outcome(job.id, job.source_id, "queued", again=True)
        except errors.LeaseLostError:
            return Outcome(job.id, job.source_id, "superseded")
        except errors.IbidError as exc:
            return self._fail(job, exc)
        except Exception as exc:
            # The stack trace belongs in the log, never in the document's error.
            _log.exception(
                "an internal error ended the ingestion",
                extra={"job_id": job.id, "source_id": job.source_id},
            )
            return self._fail(job, explain_exception(exc))
        return Outcome(job.id, job.source_id, status)

    def _fail(self, job: Job, error: errors.IbidError) -> Outcome:
        # A fault of ours happens again at the same place, so it is tried again only once.
        is_repeated = isinstance(error, errors.ProcessingFailedError) and job.error_code == error.code
        status = self.store.fail_ingest_job(job, error, 0 if is_repeated else self.settings.max_attempts)
        return Outcome(job.id, job.source_id, status or "superseded", code=error.code)

    def _ingest(self, job: Job) -> str:
        if job.checkpoint.pages_done:
            job = self.store.restart_ingest_job(job, self.server.id)
        with scratch.open_folder() as folder:
            path = Path(folder) / f"original.{job.file_type}"
            if job.object_path is not None:
                self.objects.download(job.object_path, path)
                if self.store.adopt_duplicate(job, hash_file(path)):
                    with suppress(errors.StorageUnavailableError):  # then the sweeper removes it
                        self.objects.remove([job.object_path])
                    return "duplicate"
            with self._open(job, path) as document:
                checkpoint = self._ingest_pages(job, document)
                page_count = document.page_count
            health = self._finish(job, checkpoint, page_count)
        self._measure(job, checkpoint, health, page_count)
        return "done"

    def _measure(self, job: Job, checkpoint: Checkpoint, health: Mapping[str, Any], page_count: int) -> None:
        """Measures the scale of similarities and the self-retrieval; the job is done, and stays so if this fails."""
        try:
            if self.calibrates and self.has_time():
                calibration.calibrate(self.store, self.server, self.embedder)
            if self.search_as is not None and job.kind != "note" and self.has_time():
                score = self._measure_self_retrieval(job, checkpoint, self.search_as(job.owner_id))
                if score is not None:
                    measured = {**health, "self_retrieval": asdict(score)}
                    self.store.save_health(job, report.with_quality(measured, page_count))
        except Exception:
            _log.exception("an internal error ended a measurement", extra={"source_id": job.source_id})

    def _open(self, job: Job, path: Path) -> FaultTolerantReader:
        max_pages = self.settings.max_pages
        if job.content is not None:
            return FaultTolerantReader(plain_text.build_parts(job.content, max_pages=max_pages, title=job.name or None))
        document = self.open_document(path, job.file_type, max_pages=max_pages, recognizer=self.recognizer)
        return FaultTolerantReader(document)

    def _ingest_pages(self, job: Job, document: ExtractedDocument) -> Checkpoint:
        checkpoint = job.checkpoint
        pages = self._keep_lease(job, document.pages(checkpoint.pages_done + 1))
        if checkpoint.outline is None:
            opening = list(itertools.islice(pages, OPENING_PAGES))
            checkpoint = replace(
                checkpoint,
                outline=describe_document(document, opening, job.name),
                strategy=self._choose_strategy(),
            )
            pages = itertools.chain(opening, pages)
        while batch := self._take_batch(job, checkpoint, pages):
            checkpoint = self._save_batch(job, batch, checkpoint, document.page_count)
        return checkpoint

    def _keep_lease(self, job: Job, pages: Iterator[models.Page]) -> Iterator[models.Page]:
        """Renews the lease between pages that take long to read, as scanned pages do."""
        renewed = time.monotonic()
        for page in pages:
            if time.monotonic() - renewed > self.lease_seconds / 4:
                self.store.extend_ingest_lease(job, self.lease_seconds)
                renewed = time.monotonic()
            yield page

    def _take_batch(self, job: Job, checkpoint: Checkpoint, pages: Iterator[models.Page]) -> list[models.Page]:
        """The next pages: a full batch, or as many as there is time to read. Raises TimeBudgetExceededError."""
        has_progress = checkpoint.pages_done > job.checkpoint.pages_done
        if has_progress and not self.has_time():
            raise errors.TimeBudgetExceededError(job_id=job.id, progress=True)
        batch: list[models.Page] = []
        for page in pages:
            batch.append(page)
            if len(batch) == BATCH_PAGES or not self.has_time():
                break
        if batch and self.remaining_seconds() < RESERVE_SECONDS / 2:
            raise errors.TimeBudgetExceededError(job_id=job.id, progress=has_progress)
        return batch

    def _choose_strategy(self) -> models.ChunkingStrategy:
        can_embed_tokens = isinstance(self.embedder, ports.TokenEmbedder)
        return "late" if can_embed_tokens and self.settings.chunking_strategy == "late" else "fixed"

    def _save_batch(
        self, job: Job, pages: Sequence[models.Page], checkpoint: Checkpoint, page_count: int
    ) -> Checkpoint:
        chunked = self._chunk(pages, checkpoint)
        strategy, vectors = self._embed(job, chunked.pages, chunked.by_page, checkpoint.strategy)
        new_checkpoint = replace(
            checkpoint,
            pages_done=pages[-1].number,
            chunk_count=checkpoint.chunk_count + len(vectors),
            failed_chunks=checkpoint.failed_chunks + sum(v is None for v in vectors),
            carry=chunked.carry,
            strategy=strategy,
        )
        self.store.save_batch(
            job,
            Batch(
                chunked.pages,
                chunked.chunks,
                vectors,
                self.server.id,
                new_checkpoint,
                page_count,
                self._recall_translations(job, chunked.chunks),
            ),
            self.lease_seconds,
        )
        return new_checkpoint

    def _recall_translations(self, job: Job, chunks: Sequence[models.Chunk]) -> list[KnownTranslation]:
        """The translations that the owner's library has of chunks: indexing again pays for none of them."""
        hashes = {at: translation.hash_text(c.text) for at, c in enumerate(chunks) if c.lang in self.translates}
        if not hashes:
            return []
        texts = self.store.recall_translations(job.owner_id, set(hashes.values()))
        known = [
            KnownTranslation(at, target, text_hash, texts[text_hash, target])
            for at, text_hash in hashes.items()
            for target in [languages.OTHER_LANGUAGE[chunks[at].lang]]
            if (text_hash, target) in texts
        ]
        embedded = [
            translation.embedded_text(self.server, chunks[one.place].search_prefix or "", one.text) for one in known
        ]
        for batch in embedding.embed_chunks(self.embedder, embedded, batch_size=self.server.batch_size):
            self.store.extend_ingest_lease(job, self.lease_seconds)
            for index, vector in zip(batch.indices, batch.vectors, strict=True):
                known[index] = replace(known[index], vector=vector)
        return known

    def _chunk(self, pages: Sequence[models.Page], checkpoint: Checkpoint) -> ChunkedBatch:
        sizes = passages.ChunkSettings(
            target_tokens=self.settings.chunk_tokens,
            overlap_tokens=self.settings.chunk_overlap,
            max_tokens=self.embedder.max_input_tokens - self.embedder.count_tokens(self.server.passage_prefix),
        )
        return chunk_batch(pages, checkpoint, sizes, self.embedder.count_tokens)

    def _embed(
        self,
        job: Job,
        pages: Sequence[models.Page],
        by_page: Sequence[Sequence[models.Chunk]],
        strategy: models.ChunkingStrategy,
    ) -> tuple[models.ChunkingStrategy, list[Matrix | None]]:
        if strategy == "late":
            try:
                return "late", self._embed_late(job, pages, by_page)
            except errors.ModelRejectedError as exc:
                _log.warning("the model refused late chunking, so each chunk is embedded by itself: %s", exc.message)
        return "fixed", self._embed_fixed(job, [chunk for chunks in by_page for chunk in chunks])

    def _embed_late(
        self, job: Job, pages: Sequence[models.Page], by_page: Sequence[Sequence[models.Chunk]]
    ) -> list[Matrix | None]:
        assert isinstance(self.embedder, ports.TokenEmbedder)
        vectors: list[Matrix | None] = []
        for page, chunks in zip(pages, by_page, strict=True):
            spans = [(chunk.start_offset, chunk.end_offset) for chunk in chunks]
            vectors += list(
                late_chunking.embed_late(self.embedder, blank_hidden(page), spans, self.server.passage_prefix)
            )
            self.store.extend_ingest_lease(job, self.lease_seconds)
        return vectors

    def _embed_fixed(self, job: Job, chunks: Sequence[models.Chunk]) -> list[Matrix | None]:
        vectors: list[Matrix | None] = [None] * len(chunks)
        for batch in embedding.embed_chunks(
            self.embedder,
            [self.server.passage_prefix + chunk.search_text for chunk in chunks],
            batch_size=self.server.batch_size,
            token_counts=[chunk.token_count for chunk in chunks],
        ):
            self.store.extend_ingest_lease(job, self.lease_seconds)
            for index, vector in zip(batch.indices, batch.vectors, strict=True):
                vectors[index] = vector
            for failure in batch.failures:
                _log.warning(
                    "the model refused a chunk, which has no vector now",
                    extra={"code": failure.code, "chunk": chunks[failure.index].index},
                )
        return vectors

    def _finish(self, job: Job, checkpoint: Checkpoint, page_count: int) -> dict[str, Any]:
        """Makes the new generation visible, and returns the health report."""
        generation = self.store.describe_generation(job)
        if checkpoint.chunk_count == 0:
            raise report.explain_no_text(generation)
        if checkpoint.failed_chunks == checkpoint.chunk_count:  # probably a wrong key: all texts failing is unlikely
            raise errors.ModelRejectedError
        text = self._measure_text(job)
        facts = report.describe_result(checkpoint, page_count, generation, self.server, text)
        facts["translated_langs"] = self.translates
        self.store.finish_ingest_job(job, facts)
        health: dict[str, Any] = facts["health"]
        return health

    def _measure_text(self, job: Job) -> text_figures.TextFigures | None:
        """How well the text was read; None for a note, which nobody has to read, and if measuring it fails."""
        if job.kind == "note":
            return None
        prose = self.store.sample_prose(job, text_figures.PASSAGES)
        try:
            return text_figures.measure(prose)
        except Exception:
            _log.exception("an internal error ended a measurement", extra={"source_id": job.source_id})
            return None

    def _measure_self_retrieval(
        self, job: Job, checkpoint: Checkpoint, search: retriever.Search
    ) -> self_retrieval.Score | None:
        """The share of its own sentences that a search finds; None if there are none or a service fails."""
        assert checkpoint.outline is not None
        sentences = self_retrieval.choose_sentences(self.store.sample_chunks(job, self_retrieval.SENTENCES))
        texts = [sentence.text for sentence in sentences]
        try:
            prefixed = [self.server.query_prefix + text for text in texts]
            vectors = dict(zip(texts, self.embedder.embed(prefixed), strict=True)) if texts else {}
            find = partial(
                retriever.find_passages,
                lang=checkpoint.outline.lang,
                server=self.server,
                search=search,
                settings=self.settings,
            )
            return self_retrieval.measure(job.source_id, sentences, lambda text: find(text, vectors[text]).hits)
        except errors.IbidError as exc:
            _log.warning("the self-retrieval of a document could not be measured: %s", exc.message)
            return None


def explain_exception(exc: Exception) -> errors.IbidError:
    """The error of a document whose ingestion raised `exc`: a fault of ours, unless memory, disk or network failed."""
    if isinstance(exc, MemoryError | OSError):
        return errors.UnavailableError(
            "The document could not be processed because memory, disk space or the network failed."
        )
    return errors.ProcessingFailedError()


def blank_hidden(page: models.Page) -> str:
    """The text of a page with hidden text replaced by spaces, so that no vector reflects it; offsets stay valid."""
    text = page.text
    for start, end in page.hidden:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def hash_file(path: Path) -> str:
    """The SHA-256 of a file in hex; the file is read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
