"""What must be known about a document before its pages are chunked; the checkpoint keeps it for later runs."""

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
    """Title, main language, the file's own metadata, and the headers and footers that most of its pages repeat.

    `name` stands above each passage: the title, and the header that the pages repeat, which often is the better name.
    """

    title: str
    lang: models.Lang
    metadata: models.DocumentMetadata = field(default_factory=models.DocumentMetadata)
    running_lines: tuple[str, ...] = ()
    header: str = ""

    @property
    def name(self) -> str:
        is_known = self.header.casefold() in self.title.casefold()
        return self.title if is_known else f"{self.title} – {self.header}"

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> Outline:
        """Reads what `dataclasses.asdict` returned, after a round trip through JSON."""
        metadata = models.DocumentMetadata(**stored["metadata"])
        return cls(stored["title"], stored["lang"], metadata, tuple(stored["running_lines"]), stored.get("header", ""))


def describe_document(document: ExtractedDocument, opening: Sequence[models.Page], file_name: str) -> Outline:
    """The outline of a document from `opening`, its first pages fully read, and the text layer of a sample of pages."""
    metadata = document.metadata
    title = (metadata.title or "").strip() or Path(file_name).stem
    sampled = [document.read_text_layer(number) for number in choose_pages(document.page_count)]
    return Outline(
        title=title[:_MAX_TITLE],
        lang=languages.detect_language("\n".join(page.text for page in opening)),
        metadata=metadata,
        running_lines=running_lines.find_running_lines(sampled),
        header=running_lines.find_document_name(sampled) or "",
    )


def choose_pages(total: int) -> list[int]:
    """Up to SAMPLED_PAGES numbers of 1 … `total`, evenly spread, in pairs because left and right pages differ."""
    if total <= SAMPLED_PAGES:
        return list(range(1, total + 1))
    pairs = SAMPLED_PAGES // 2
    firsts = (1 + (total - 2) * step // (pairs - 1) for step in range(pairs))
    return sorted({page for first in firsts for page in (first, first + 1)})
