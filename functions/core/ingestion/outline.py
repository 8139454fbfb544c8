"""What must be known about a document before its pages are chunked; the checkpoint keeps it for later runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functions.core import models
from functions.core.extraction.documents import ExtractedDocument
from functions.core.ingestion.chunking import running_lines
from functions.core.text import languages, titles

OPENING_PAGES = 3
SAMPLED_PAGES = 12
_MAX_TITLE = 255


@dataclass(frozen=True, slots=True)
class Outline:
    """Title, main language, the file's own metadata, and the headers and footers that most of its pages repeat.

    `name` stands above each passage: the title, the header that the pages repeat, and the words of the file name. Each
    of them often is the best name, and the only one with the company and the year.
    """

    title: str
    lang: models.Lang
    metadata: models.DocumentMetadata = field(default_factory=models.DocumentMetadata)
    running_lines: tuple[str, ...] = ()
    header: str = ""
    file_words: str = ""

    @property
    def name(self) -> str:
        says_more = not self.file_words or titles.adds_words(self.title, self.file_words)
        names = titles.join_names(self.title if says_more else self.file_words, self.header)
        # The file name goes first, because a long name is cut at its end.
        return titles.join_names(self.file_words, names) if titles.adds_words(self.file_words, names) else names

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> Outline:
        """Reads what `dataclasses.asdict` returned, after a round trip through JSON."""
        metadata = models.DocumentMetadata(**stored["metadata"])
        later = {name: stored[name] for name in ("header", "file_words") if name in stored}
        return cls(stored["title"], stored["lang"], metadata, tuple(stored["running_lines"]), **later)


def describe_document(document: ExtractedDocument, opening: Sequence[models.Page], file_name: str) -> Outline:
    """The outline of a document from `opening`, its first pages fully read, and the text layer of a sample of pages."""
    metadata = document.metadata
    stem = Path(file_name).stem
    title = (metadata.title or "").strip() or stem
    sampled = [document.read_text_layer(number) for number in choose_pages(document.page_count)]
    return Outline(
        title=title[:_MAX_TITLE],
        lang=languages.detect_language("\n".join(page.text for page in opening)),
        metadata=metadata,
        running_lines=running_lines.find_running_lines(sampled),
        header=running_lines.find_document_name(sampled) or "",
        file_words=titles.name_of_file(stem),
    )


def choose_pages(total: int) -> list[int]:
    """Up to SAMPLED_PAGES numbers of 1 … `total`, evenly spread, in pairs because left and right pages differ."""
    if total <= SAMPLED_PAGES:
        return list(range(1, total + 1))
    pairs = SAMPLED_PAGES // 2
    firsts = (1 + (total - 2) * step // (pairs - 1) for step in range(pairs))
    return sorted({page for first in firsts for page in (first, first + 1)})
