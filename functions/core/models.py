"""The frozen records that all packages share: users, pages, passages, search hits, answers, and scopes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

FileType = Literal["pdf", "docx", "txt", "md"]
Lang = Literal["en", "fr", "simple"]
CheckResult = Literal["exact", "fuzzy", "unverified"]
SupportResult = Literal["high", "low"]
DocumentStatus = Literal["awaiting_upload", "uploaded", "processing", "indexed", "failed", "reindexing"]
PromptProfile = Literal["full", "compact"]
"""What a chat model is asked: JSON sections with ids and quotes, or plain text with numbers, for small models."""
MessageStatus = Literal["complete", "interrupted", "failed", "guarded"]
ChunkingStrategy = Literal["fixed", "late"]
Offsets = tuple[int, int]
"""A stretch [start, end) of page text, in characters."""


@dataclass(frozen=True, slots=True)
class User:
    """The user on whose behalf a request runs; `claims` are sent to Postgres for row level security.

    `scopes` limit a request with an API key or with the token of an OAuth client; None for the user's own token.
    """

    id: str
    is_admin: bool
    claims: Mapping[str, Any]
    scopes: frozenset[str] | None = None

    @classmethod
    def named(cls, user_id: str) -> User:
        """The user on whose behalf a worker runs: without a token, and with rights to their own rows only."""
        return cls(user_id, is_admin=False, claims={"sub": user_id})


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a table: the text of its cells, and the stretch of page text that holds them."""

    start: int
    end: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table on one page: at least one row, in page order, all with the same number of cells.

    The first `header_rows` rows name the columns. `borders` are the x positions of the column borders in points, left
    to right, if the format has positions. A table with the borders of the last one on the previous page continues it.
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
    """Page text [start, end) read by OCR; its box is in fractions (0…1) of the visible page, from the top left."""

    start: int
    end: int
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Recognition:
    """What OCR reported about a page; `confidence` is the mean over its words, 0…100."""

    confidence: float
    words: tuple[RecognizedWord, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of text exactly as extracted; offsets and citations are character indices into `text`.

    Formats without pages are cut into parts at paragraph borders, numbered from 1 like pages. `hidden` are stretches
    that a reader of the page cannot see; they stay in `text`, so that offsets are valid, but no passage contains them.
    """

    number: int
    text: str
    warnings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    hidden: tuple[Offsets, ...] = ()
    recognition: Recognition | None = None


@dataclass(frozen=True, slots=True)
class DocumentMetadata:
    """Metadata found in a file; None for each field that was not found."""

    title: str | None = None
    author: str | None = None
    doi: str | None = None
    journal: str | None = None
    published_at: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one page: `page.text[start_offset:end_offset] == text`, exactly.

    `search_text` is indexed and embedded but never cited: it begins with title and section, and words hyphenated at
    line ends are joined. `markdown`, if set, is what a model reads instead of `text`: table rows with the header of
    their table.
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

    @property
    def search_prefix(self) -> str | None:
        """What `search_text` has above `text`; None where `search_text` is not `text` below a prefix."""
        above = self.search_text.removesuffix(self.text)
        return above if above + self.text == self.search_text else None


Version = tuple[str, str]
"""A question, or its translation, and its language."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A passage that a search found, with its place in the source, and its rank and score in each arm of the search.

    `score` is the score of the fusion; `similarity` is on the scale of its server, 0…1. `is_foreign` says that
    the question was not put in the language of the passage, so that the two share few words. The reranker's score is on
    another scale, and None without a reranker. `translation` is the passage in the question's language, where it was
    translated when it was indexed.
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
    translation: str | None = None
    is_foreign: bool = False
    rerank_rank: int | None = None
    rerank_score: float | None = None

    @property
    def segment_id(self) -> str:
        """The public id of the passage: `{source_id}:{chunk_index}`, where the source is a document or a note."""
        return f"{self.source_id}:{self.chunk_index}"


@dataclass(frozen=True, slots=True)
class Citation:
    """A source of a section: `quote` is page text [start_offset:end_offset] unless `check` is unverified.

    `number` is the mark shown in the answer, from 1; a passage keeps its number throughout the answer. `score` is the
    evidence of the passage for the question, 0…1. `source` says whether `source_id` is of a document or a note. `check`
    says whether the words stand on the page, `support` whether they bear out what is said. `translation` is that of the
    whole passage into the question's language, if it has one.
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
    support: SupportResult
    translation: str | None = None


@dataclass(frozen=True, slots=True)
class CitedSection:
    """A section of the final answer with the numbers of the citations that support it.

    `unsupported_numbers` are the numbers in its text, as written ("42 %"), that none of the cited passages contains.
    A section that `is_remark` is Ibid's own, about the answer, and needs no citation. In a quotation, `emphasis` is the
    figure or date of its text that carries the answer, where that is certain.
    """

    text: str
    segment_ids: tuple[str, ...]
    citations: tuple[int, ...]
    unsupported_numbers: tuple[str, ...] = ()
    is_remark: bool = False
    emphasis: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as counted by the model server; None for what it does not report."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model: str | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum over two requests for the same answer; if only one of them reports a count, that count."""
        return Usage(
            _add(self.prompt_tokens, other.prompt_tokens),
            _add(self.completion_tokens, other.completion_tokens),
            other.model or self.model,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer: `answer` is the joined text of the sections, with [n] marks.

    `degraded` is the code of the error for which quotations replace what the language model should have written.
    """

    answer: str
    sections: tuple[CitedSection, ...]
    sources: tuple[Citation, ...]
    status: MessageStatus
    mode: Literal["model", "extractive", "guard"]
    usage: Usage = field(default_factory=Usage)
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier message of a conversation; `search_query` is the rewritten question that was searched instead."""

    role: Literal["user", "assistant"]
    content: str
    search_query: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The sources that a question searches: a `kind`, and the ids that this kind needs.

    `filters` narrow them down by metadata; sql/10_search_scope.sql lists their names.
    """

    kind: Literal["documents", "conversation", "notebook", "note", "library"]
    document_ids: tuple[str, ...] = ()
    notebook_id: str | None = None
    note_id: str | None = None
    filters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the owner of a notebook prefers for its answers: how they are written, and the model; None for the usual."""

    instructions: str = ""
    chat_model: str | None = None


class SimilarityScale(NamedTuple):
    """The cosines that become a similarity of 0 and of 1: those of unrelated texts, and of a text and its source.

    Models differ: unrelated texts have a cosine of 0.1 with one and of 0.8 with another.
    """

    floor: float
    ceiling: float


@dataclass(frozen=True, slots=True)
class EmbeddingServer:
    """An embedding model that documents are indexed with; `api_key_env` names the variable that holds its key.

    `token_level` says whether it also returns an embedding of each token, which late chunking needs. `guard_threshold`
    was measured for this model, and replaces the setting `similarity_threshold`. The prefixes stand before each text
    that is embedded as a question or as a passage. `similarity_scales` are by pair of languages ("fr>en" for French
    questions and English passages); other pairs have the scale from `similarity_floor` to `similarity_ceiling`.
    `calibrated_passages` is the size of the library when the scales were measured, None if they never were. A `managed`
    server was set up or changed by an administrator; any other is as an environment described it. The price is in
    US dollars, 0 if it is not known.
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
    query_prefix: str = ""
    passage_prefix: str = ""
    similarity_floor: float = 0.0
    similarity_ceiling: float = 1.0
    similarity_scales: Mapping[str, SimilarityScale] = field(default_factory=dict, hash=False)
    calibrated_passages: int | None = None
    managed: bool = False
    price_per_million_tokens: float = 0.0

    def scale(self, query_lang: str, passage_lang: str) -> SimilarityScale:
        """The scale of a question and a passage in these languages."""
        default = SimilarityScale(self.similarity_floor, self.similarity_ceiling)
        return self.similarity_scales.get(f"{query_lang}>{passage_lang}", default)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An uploaded file as the object store describes it; `size` is in bytes."""

    path: str
    size: int
    mime_type: str | None
    created_at: datetime | None = None


def _add(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
