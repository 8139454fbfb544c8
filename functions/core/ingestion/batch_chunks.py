"""Chunks the pages of a batch one after the other; a page on which that fails is skipped."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from functions.core import errors, models
from functions.core.ingestion.chunking import chunker, page_layout, passages, running_lines
from functions.core.ingestion.jobs import Checkpoint
from functions.core.text import languages
from functions.core.text.token_spans import CountTokens

CHUNKING_FAILED = "chunking_failed"
"""The warning of a page that was skipped because chunking it raised an unexpected exception."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChunkedBatch:
    """The pages of a batch, the chunks of each, and what the next page takes over."""

    pages: tuple[models.Page, ...]
    by_page: tuple[tuple[models.Chunk, ...], ...]
    carry: page_layout.Carry

    @property
    def chunks(self) -> list[models.Chunk]:
        return [chunk for chunks in self.by_page for chunk in chunks]


def chunk_batch(
    pages: Sequence[models.Page], checkpoint: Checkpoint, sizes: passages.ChunkSettings, count_tokens: CountTokens
) -> ChunkedBatch:
    """Chunks `pages`, which follow those of the checkpoint.

    A page that raises an unexpected exception keeps its text and has no chunks but a warning. The errors of
    `core.errors` pass through.
    """
    outline, carry, index = checkpoint.outline, checkpoint.carry, checkpoint.chunk_count
    assert outline is not None
    kept: list[models.Page] = []
    by_page: list[tuple[models.Chunk, ...]] = []
    for page in pages:
        chunks: list[models.Chunk] = []
        try:
            chunks, carry = chunker.chunk_page(
                page,
                settings=sizes,
                count_tokens=count_tokens,
                title=outline.name,
                carry=carry,
                first_index=index,
                lang=languages.detect_language(page.text, default=outline.lang),
                skip=running_lines.locate_running_lines(page.text, outline.running_lines),
            )
        except errors.IbidError:
            raise
        except Exception:
            _log.exception("an internal error left a page without chunks", extra={"page": page.number})
            page = replace(page, warnings=(*page.warnings, CHUNKING_FAILED))
            carry = page_layout.Carry(carry.section, abbreviations=carry.abbreviations)  # its table may have ended
        index += len(chunks)
        kept.append(page)
        by_page.append(tuple(chunks))
    return ChunkedBatch(tuple(kept), tuple(by_page), carry)
