"""What is known of a document before its pages are chunked; kept in the checkpoint, so that it is found out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functions.core import models
from functions.core.extraction.documents import ExtractedDocument
from functions.core.ingestion.chunking import running_lines
from functions.core.text import languages

OPENING_PAGES = 3
SAMPLED_PAGES = 12
_MAX_TITLE = 255


@dataclass(frozen=True, slots=True)
class Outline:
    """Title, main language, what the file says of itself, and the headers and footers that most of its pages repeat."""

    title: str
    lang: models.Lang
    metadata: models.DocumentMetadata = field(default_factory=models.DocumentMetadata)
    running_lines: tuple[str, ...] = ()

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> Outline:
        """From `dataclasses.asdict` by way of JSON."""
        metadata = models.DocumentMetadata(**stored["metadata"])
        return cls(stored["title"], stored["lang"], metadata, tuple(stored["running_lines"]))


def describe_document(document: ExtractedDocument, opening: Sequence[models.Page], file_name: str) -> Outline:
    """`opening` are the first pages, read as they will be indexed; others are only peeked at."""
    metadata = document.metadata
    title = (metadata.title or "").strip() or Path(file_name).stem
    sampled = [document.peek(number) for number in choose_pages(document.page_count)]
    return Outline(
        title=title[:_MAX_TITLE],
        lang=languages.detect_language("\n".join(page.text for page in opening)),
        metadata=metadata,
        running_lines=running_lines.find_running_lines(sampled),
    )


def choose_pages(total: int) -> list[int]:
    """Up to SAMPLED_PAGES numbers of 1 … `total` in pairs of neighbours, evenly spread: left and right pages differ."""
    if total <= SAMPLED_PAGES:
        return list(range(1, total + 1))
    pairs = SAMPLED_PAGES // 2
    firsts = (1 + (total - 2) * step // (pairs - 1) for step in range(pairs))
    return sorted({page for first in firsts for page in (first, first + 1)})
