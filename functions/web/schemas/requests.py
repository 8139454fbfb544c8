"""Request and response bodies."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from functions.core.text.storable import clean_text
from functions.core.text.visible import is_blank


def check_date(value: str) -> str:
    """YYYY, YYYY-MM or YYYY-MM-DD."""
    if not re.fullmatch(r"[0-9]{4}(-[0-9]{2}){0,2}", value):
        raise ValueError("give a year, a month or a day: 2021, 2021-05 or 2021-05-17")
    date.fromisoformat(value + "0001-01-01"[len(value) :])
    return value


def check_words(value: str) -> str:
    if not any(map(str.isalnum, value)):
        raise ValueError("name at least one word")
    return value


def check_visible(value: str) -> str:
    if is_blank(value):
        raise ValueError("enter some text: there is no visible character")
    return value


class Request(BaseModel):
    """A request body in snake_case or camelCase; unknown fields are refused, not ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def clean(cls, value: Any) -> Any:
        """Replaces characters that Postgres cannot store (see `clean_text`)."""
        return clean_text(value) if isinstance(value, str) else value


class NewDocument(Request):
    file_name: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    size: Annotated[int, Field(ge=0, lt=2**53)]
    mime_type: Annotated[str, StringConstraints(max_length=255)] | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    notebook_id: UUID | None = None
    note_id: UUID | None = None


class DocumentChanges(Request):
    """The notebook or note of a document: a field that is left out stays unchanged, null takes the document out."""

    notebook_id: UUID | None = None
    note_id: UUID | None = None


Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
PartialDate = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(check_date)]


class Filters(Request):
    """Restrictions on sources; a field that is left out does not restrict. Dates are a year, a month or a day."""

    author: Annotated[Words, AfterValidator(check_words)] | None = None
    journal: Annotated[Words, AfterValidator(check_words)] | None = None
    doi: Words | None = None
    published_from: PartialDate | None = None
    published_to: PartialDate | None = None
    source: Literal["document", "note"] | None = None
    file_type: Literal["pdf", "docx", "txt", "md"] | None = None
    lang: Literal["en", "fr", "simple"] | None = None

    @field_validator("published_to")
    @classmethod
    def check_order(cls, value: str | None, info: ValidationInfo) -> str | None:
        first = info.data.get("published_from")
        if value and first and value + "9999-12-31"[len(value) :] < first:
            raise ValueError("published_to must not be before published_from")
        return value

    def as_dict(self) -> dict[str, str]:
        """The given filters by name."""
        return self.model_dump(include=set(Filters.model_fields), exclude_none=True)


class Search(Filters):
    """The parameters of a search. An unknown one is refused; without `limit`, the setting `match_count` applies."""

    q: Annotated[str, StringConstraints(min_length=1, max_length=4000), AfterValidator(check_visible)]
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    document_id: Annotated[list[UUID], Field(max_length=100)] = []
    notebook_id: UUID | None = None
    note_id: UUID | None = None
    debug: bool = False


class Question(Request):
    query: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000), AfterValidator(check_visible)
    ]
    conversation_id: UUID | None = None
    stream: bool = False
    document_ids: Annotated[list[UUID], Field(max_length=100)] = []
    notebook_id: UUID | None = None
    note_id: UUID | None = None
    scope: Literal["library"] | None = None
    filters: Filters = Filters()
    replaces: UUID | None = None

    @field_validator("scope")
    @classmethod
    def check_alone(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and any(info.data.get(name) for name in ("document_ids", "notebook_id", "note_id")):
            raise ValueError("this searches the whole library; leave out document_ids, notebook_id and note_id")
        return value

    @field_validator("replaces")
    @classmethod
    def check_conversation(cls, value: UUID | None, info: ValidationInfo) -> UUID | None:
        if value and not info.data.get("conversation_id"):
            raise ValueError("a question is replaced in its conversation; send conversation_id too")
        return value


class AnswerRating(Request):
    """What a reader thinks of an answer, and why."""

    rating: Literal["up", "down"]
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=1000)] = ""


class ConversationTitle(Request):
    title: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255), AfterValidator(check_visible)
    ]


class AttachedDocuments(Request):
    document_ids: Annotated[list[UUID], Field(max_length=100)]


class AnswerNote(Request):
    """The title and notebook of the note for an answer; without a title, the question becomes the title."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=255)] = ""
    notebook_id: UUID | None = None


class Progress(BaseModel):
    done: int
    total: int


class Document(BaseModel):
    """A document as the page shows it."""

    id: UUID
    file_name: str
    title: str | None
    file_type: str
    size_bytes: int
    status: str
    progress: Progress | None
    stage: str | None
    page_count: int | None
    chunk_count: int
    lang: str | None
    error_code: str | None
    error: str | None
    notebook_id: UUID | None
    note_id: UUID | None
    version: int
    superseded_by: UUID | None
    trashed_at: datetime | None
    sha256: str | None
    embedding_server_id: UUID | None
    embedding_model: str | None
    embedding_dim: int | None
    chunking_strategy: str | None
    ingestion_log: dict[str, Any]
    health: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime
    indexed_at: datetime | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> Document:
        """Reads a row of rag.documents."""
        busy = row["status"] in ("processing", "reindexing") and row["page_count"]
        progress = Progress(done=row["pages_done"], total=row["page_count"]) if busy else None
        return cls(progress=progress, **{k: v for k, v in row.items() if k in cls.model_fields})


class ResumableUpload(BaseModel):
    """For a TUS client: every request sends `headers`, and every chunk but the last has `chunk_size` bytes."""

    url: str
    headers: dict[str, str]
    metadata: dict[str, str]
    chunk_size: int


class Upload(BaseModel):
    """A signed upload, valid for `expires_in` seconds; `resumable` is for files larger than one chunk."""

    url: str
    method: str
    headers: dict[str, str]
    expires_in: int
    resumable: ResumableUpload | None = None


class UploadTicket(BaseModel):
    document: Document
    upload: Upload | None
    duplicate: bool


class DocumentPage(BaseModel):
    items: list[Document]
    next_cursor: str | None


class AttachedDocumentList(BaseModel):
    items: list[Document]


class Conversation(BaseModel):
    id: UUID
    title: str
    created_at: datetime
    updated_at: datetime
    message_count: int = 0
    excerpt: str | None = None


class ConversationPage(BaseModel):
    items: list[Conversation]
    next_cursor: str | None


class ProtectedResource(BaseModel):
    """Who issues tokens for a resource (RFC 9728)."""

    resource: str
    resource_name: str = "Ibid"
    authorization_servers: list[str]
    bearer_methods_supported: list[str] = ["header"]
