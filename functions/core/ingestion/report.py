"""Reports on an ingested document: its columns, its ingestion log and its health report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from functions.core import errors, models
from functions.core.extraction.page_faults import READING_FAILED, TOO_COMPLEX
from functions.core.ingestion import quality
from functions.core.ingestion.batch_chunks import CHUNKING_FAILED
from functions.core.ingestion.jobs import Checkpoint
from functions.core.ingestion.text_figures import TextFigures


def describe_result(
    checkpoint: Checkpoint,
    page_count: int,
    generation: Mapping[str, Any],
    server: models.EmbeddingServer,
    text: TextFigures | None,
) -> dict[str, Any]:
    """The facts that sql/42_finish_ingest_job.sql writes; sql/35_describe_generation.sql returns `generation`."""
    outline = checkpoint.outline
    assert outline is not None
    metadata, chunks_by_lang = outline.metadata, generation["languages"]
    lang = max(chunks_by_lang, key=lambda name: chunks_by_lang[name], default=outline.lang)
    return {
        "page_count": page_count,
        "title": outline.title,
        "lang": lang,
        "embedding_server_id": server.id,
        "embedding_model": server.model,
        "embedding_dim": server.dimensions,
        "chunking_strategy": checkpoint.strategy,
        "ingestion_log": {
            "title_extracted": metadata.title,
            "doi_extracted": metadata.doi,
            "authors_extracted": metadata.author,
            "journal_extracted": metadata.journal,
            "published_at_extracted": metadata.published_at,
            "page_count": page_count,
            "lang": lang,
            "chunks_count": checkpoint.chunk_count,
            "ocr_pages_count": (generation["ocr"] or {}).get("pages", 0),
            "ingested_at": datetime.now(UTC).isoformat(),
        },
        "health": with_quality(
            {
                **generation,
                "chunks": checkpoint.chunk_count,
                "chunks_not_embedded": checkpoint.failed_chunks,
                "running_lines": list(outline.running_lines),
                "chunking_strategy": checkpoint.strategy,
                "text": asdict(text) if text else None,
                "self_retrieval": None,
            },
            page_count,
        ),
    }


def with_quality(health: Mapping[str, Any], page_count: int) -> dict[str, Any]:
    """A health report with the quality that its figures show."""
    return {**health, "quality": quality.rate(health, page_count).dump()}


def explain_no_text(generation: Mapping[str, Any]) -> errors.IbidError:
    """The error that says why there was nothing to index, and what the user can do about it."""
    if TOO_COMPLEX in generation["warnings"]:
        page = generation["warnings"][TOO_COMPLEX][0]
        return errors.TooComplexError(f"Page {page}: {errors.TooComplexError().message}", page=page)
    if READING_FAILED in generation["warnings"] or CHUNKING_FAILED in generation["warnings"]:
        return errors.ProcessingFailedError()
    if "ocr_unavailable" in generation["warnings"]:
        return errors.NoTextError(
            "The pages are images, and no OCR is installed here that could read them."
            " Install Tesseract, or upload a file that contains its text."
        )
    return errors.NoTextError()
