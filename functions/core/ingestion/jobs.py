"""The queue of ingestion: a leased job, its checkpoint, and the batch that one transaction saves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from functions.core import errors, models
from functions.core.ingestion import calibration, self_retrieval
from functions.core.ingestion.chunking import page_layout
from functions.core.ingestion.outline import Outline

if TYPE_CHECKING:
    from functions.core.ingestion import text_figures
    from functions.core.ports import Matrix


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a job has come: everything up to page `pages_done` is saved.

    `outline` and `strategy` are set with the first batch and apply to the whole document.
    """

    pages_done: int = 0
    chunk_count: int = 0
    failed_chunks: int = 0
    carry: page_layout.Carry = field(default_factory=page_layout.Carry)
    outline: Outline | None = None
    strategy: models.ChunkingStrategy = "fixed"

    def dump(self) -> dict[str, Any]:
        """The checkpoint as JSON, for `load`."""
        return asdict(self)

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> Checkpoint:
        if not stored:
            return cls()
        carry, outline = page_layout.Carry.load(stored["carry"]), stored["outline"]
        return cls(**{**stored, "carry": carry, "outline": Outline.load(outline) if outline else None})


@dataclass(frozen=True, slots=True)
class Job:
    """A leased job: for a note with its `content`, for a document with the path of its stored file.

    `error_code` is that of the failure after which the job was queued again.
    """

    id: int
    kind: Literal["ingest", "reindex", "note"]
    owner_id: str
    source_id: str
    generation: int
    lease_token: str
    attempts: int
    checkpoint: Checkpoint
    name: str
    file_type: models.FileType
    object_path: str | None = None
    content: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction saves; `vectors[i]` belongs to `chunks[i]`, None where the model refused the chunk.

    `translations` are those of chunks whose texts were translated before, by their place in `chunks`.
    """

    pages: Sequence[models.Page]
    chunks: Sequence[models.Chunk]
    vectors: Sequence[Matrix | None]
    server_id: str
    checkpoint: Checkpoint
    page_count: int
    translations: Sequence[KnownTranslation] = ()


@dataclass(frozen=True, slots=True)
class KnownTranslation:
    """The translation of chunk `place` of a batch into `lang`, and its vector, None where the model refused it."""

    place: int
    lang: models.Lang
    text_hash: str
    text: str
    vector: Matrix | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to a claimed job; `again` if another run should continue it at once."""

    job_id: int
    source_id: str
    status: str
    again: bool = False
    code: str | None = None


class JobStore(calibration.Library, Protocol):
    """The queue and the tables that a worker writes. Every write raises LeaseLostError if the lease is lost."""

    def claim_ingest_job(self, job_id: int | None, lease_seconds: int) -> Job | None: ...

    def restart_ingest_job(self, job: Job, server_id: str) -> Job:
        """The job with nothing saved, if another embedding server embedded what it had saved; else the job as it is."""
        ...

    def extend_ingest_lease(self, job: Job, lease_seconds: int) -> None: ...

    def adopt_duplicate(self, job: Job, content_sha256: str) -> str | None:
        """Makes this document an alias of the owner's document with the same bytes and returns that one's id.

        None for new bytes. Raises CorruptDocumentError if the SHA-256 differs from the one announced with the upload.
        """
        ...

    def recall_translations(self, owner_id: str, text_hashes: Collection[str]) -> Mapping[tuple[str, str], str]:
        """What the owner's passages of these texts were translated into, by hash and language."""
        ...

    def save_batch(self, job: Job, batch: Batch, lease_seconds: int) -> None: ...

    def describe_generation(self, job: Job) -> dict[str, Any]:
        """The facts for the health report: see sql/35_describe_generation.sql."""
        ...

    def finish_ingest_job(self, job: Job, facts: dict[str, Any]) -> None: ...

    def fail_ingest_job(self, job: Job, error: errors.IbidError, max_attempts: int) -> str | None: ...

    def release_ingest_job(self, job: Job) -> None: ...

    def sample_chunks(self, job: Job, count: int) -> list[self_retrieval.Sample]:
        """Up to `count` chunks of a finished job, evenly spread over its document."""
        ...

    def sample_prose(self, job: Job, count: int) -> list[text_figures.Prose]:
        """About `count` chunks of a job that are no rows of a table, evenly spread over its document, in order."""
        ...

    def save_health(self, job: Job, health: Mapping[str, Any]) -> None:
        """Replaces the health report of a finished job, unless its document was indexed again meanwhile."""
        ...
