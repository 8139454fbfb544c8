"""The things Ibid speaks of, as plain frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

FileType = Literal["pdf", "docx", "txt", "md"]
Lang = Literal["en", "fr", "simple"]
CheckResult = Literal["exact", "fuzzy", "unverified"]
DocumentStatus = Literal["awaiting_upload", "uploaded", "processing", "indexed", "failed", "reindexing"]
MessageStatus = Literal["complete", "interrupted", "failed", "guarded"]
ChunkingStrategy = Literal["fixed", "late"]
Offsets = tuple[int, int]
"""A stretch [start, end) of page text, in characters."""


@dataclass(frozen=True, slots=True)
class User:
    """The signed-in person a request acts for; `claims` go to Postgres for row level security."""

    id: str
    is_admin: bool
    claims: Mapping[str, Any]

    @classmethod
    def named(cls, user_id: str) -> User:
        """The user that a worker acts for: no token, no rights beyond their own rows."""
        return cls(user_id, is_admin=False, claims={"sub": user_id})


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a table: its cells as they read, and the stretch of page text they were found in."""

    start: int
    end: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table on one page: at least one row, all of equally many cells, in the order of the page.

    The first `header_rows` rows name the columns. `borders` are the x positions of the column borders in points, left
    to right, where the format has positions: equal borders tell a table that runs on from the page before.
    """

    rows: tuple[TableRow, ...]
    header_rows: int = 1
    borders: tuple[float, ...] = ()

    @property
    def start(self) -> int:
        return min(row.start for row in self.rows)

    @property
    def end(self) -> int:
        return max(row.end for row in self.rows)


@dataclass(frozen=True, slots=True)
class RecognizedWord:
    """Page text [start, end) as OCR read it, in a box of fractions (0…1) of the page as seen, from its left and top."""

    start: int
    end: int
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Recognition:
    """How the text of a page was read off its picture; `confidence` is the mean over its words, 0…100."""

    confidence: float
    words: tuple[RecognizedWord, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of text exactly as extracted; offsets and citations are character indices into `text`.

    Formats without pages are cut into parts at paragraph borders and numbered the same way, from 1. `hidden` is text
    that a reader does not see: it stays in `text`, so that offsets hold, and never becomes part of a passage.
    """

    number: int
    text: str
    warnings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    hidden: tuple[Offsets, ...] = ()
    recognition: Recognition | None = None


@dataclass(frozen=True, slots=True)
class DocumentMetadata:
    """What the file says of itself; every field may be unknown."""

    title: str | None = None
    author: str | None = None
    doi: str | None = None
    journal: str | None = None
    published_at: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one page: `page.text[start_offset:end_offset] == text`, exactly.

    `search_text` is what is indexed and embedded: title and section first, line-end hyphenation undone. It is never
    cited. `markdown` is what a model reads in place of `text` where that does not say it all: rows of a table, with
    the header of their table.
    """

    index: int
    page_start: int
    page_end: int
    start_offset: int
    end_offset: int
    text: str
    search_text: str
    section_title: str | None
    lang: Lang
    token_count: int
    markdown: str | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One passage found, with its place in the source and its rank and score in each arm of the search.

    `score` is that of the fusion; the reranker's rank and score stand beside it where one was asked, on its own scale.
    """

    chunk_id: int
    source: Literal["document", "note"]
    source_id: str
    chunk_index: int
    file_name: str
    title: str | None
    file_type: str
    page_start: int
    page_end: int
    start_offset: int
    end_offset: int
    section_title: str | None
    text: str
    lang: str
    score: float
    fts_rank: int | None = None
    fts_score: float | None = None
    vector_rank: int | None = None
    similarity: float | None = None
    blend_score: float | None = None
    coverage: float = 0.0
    markdown: str | None = None
    blend_rank: int | None = None
    rerank_rank: int | None = None
    rerank_score: float | None = None

    @property
    def segment_id(self) -> str:
        """The public id of the passage: `{document_id}:{chunk_index}`."""
        return f"{self.source_id}:{self.chunk_index}"


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a section stands in a source: `quote` is page text [start_offset:end_offset] unless `check` is unverified.

    `number` is the mark shown in the answer, from 1; the same passage keeps one number. `score` is the evidence of the
    passage for the question, 0…1. `source_id` is the id of a document or, where `source` says so, of a note.
    """

    number: int
    source_id: str
    chunk_index: int
    source: Literal["document", "note"]
    file_name: str
    file_type: str
    page_start: int
    page_end: int
    start_offset: int
    end_offset: int
    quote: str
    snippet_preview: str
    section_title: str | None
    score: float
    check: CheckResult


@dataclass(frozen=True, slots=True)
class CitedSection:
    """A section of the final answer with the numbers of the citations that support it.

    `unsupported_numbers` are figures of its text, as they stand there ("42 %"), that none of its cited passages holds.
    """

    text: str
    segment_ids: tuple[str, ...]
    citations: tuple[int, ...]
    unsupported_numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model server counted them; None where it does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model: str | None = None

    def __add__(self, other: Usage) -> Usage:
        """Of one request after another for the same answer; what one of them does not say is as the other says."""
        return Usage(
            _add(self.prompt_tokens, other.prompt_tokens),
            _add(self.completion_tokens, other.completion_tokens),
            other.model or self.model,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer: `answer` is the sections' text joined, with [n] marks."""

    answer: str
    sections: tuple[CitedSection, ...]
    sources: tuple[Citation, ...]
    status: MessageStatus
    mode: Literal["model", "extractive", "guard"]
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier message of a conversation; `search_query` is what was searched in place of a question."""

    role: Literal["user", "assistant"]
    content: str
    search_query: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What a question is asked of. `kind` is what was decided, the ids say which.

    `filters` say what a source must be like besides; sql/10_search_scope.sql names them.
    """

    kind: Literal["documents", "conversation", "notebook", "note", "library"]
    document_ids: tuple[str, ...] = ()
    notebook_id: str | None = None
    note_id: str | None = None
    filters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmbeddingServer:
    """An embedding model that documents are indexed with; `api_key_env` names the variable that holds its key.

    `token_level` says that it returns an embedding for each token too, which late chunking needs. `guard_threshold` is
    what was measured for it in place of the setting `similarity_threshold`.
    """

    id: str
    name: str
    kind: Literal["local", "openai"]
    model: str
    dimensions: int
    max_input_tokens: int
    languages: tuple[str, ...]
    base_url: str | None = None
    api_key_env: str | None = None
    batch_size: int = 20
    token_level: bool = False
    guard_threshold: float | None = None


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What the object store knows of an uploaded file."""

    path: str
    size: int
    mime_type: str | None
    created_at: datetime | None = None


def _add(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
