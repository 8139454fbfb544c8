"""Request and response bodies of notebooks and notes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from functions.web.schemas.requests import Request

MAX_CONTENT = 500_000


def _join_lines(value: Any) -> Any:
    """Joins the lines of a title, which is a single line."""
    return " ".join(value.split()) if isinstance(value, str) else value


def _check_length(value: str) -> str:
    if len(value) > MAX_CONTENT:
        raise PydanticCustomError(
            "too_long",
            "A note holds at most {limit} characters, and a request at most 1 MB. Upload a longer text as a file.",
            {"limit": MAX_CONTENT},
        )
    return value


Title = Annotated[str, BeforeValidator(_join_lines), StringConstraints(max_length=255)]
NotebookName = Annotated[Title, StringConstraints(min_length=1)]
Instructions = Annotated[str, BeforeValidator(_join_lines), StringConstraints(max_length=500)]
Content = Annotated[str, AfterValidator(_check_length)]


class NotebookTitle(Request):
    title: NotebookName


class NotebookChanges(Request):
    """At least one field; those that are left out stay unchanged. A `chat_model` of null means the usual model."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    title: NotebookName = ""
    instructions: Instructions = ""
    chat_model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None

    @model_validator(mode="after")
    def _require_a_change(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("name at least one field to change")
        return self


class NewNote(Request):
    title: Title = ""
    content: Content = ""
    notebook_id: UUID | None = None


class NoteChanges(Request):
    """Fields that are left out stay unchanged; a `notebook_id` of null moves the note out of its notebook.

    With `expected_updated_at`, the change is refused if the note has changed since then.
    """

    title: Title = ""
    content: Content = ""
    notebook_id: UUID | None = None
    expected_updated_at: AwareDatetime | None = None


class Notebook(BaseModel):
    """A notebook; the counts leave out the trash. `instructions` and `chat_model` are for answers about it alone."""

    id: UUID
    title: str
    instructions: str
    chat_model: str | None
    note_count: int
    document_count: int
    created_at: datetime
    updated_at: datetime


class NotebookPage(BaseModel):
    items: list[Notebook]
    next_cursor: str | None


class NoteFacts(BaseModel):
    """A note without its content. `status` is `empty`, `queued`, `indexed` or `failed`."""

    id: UUID
    notebook_id: UUID | None
    title: str
    status: str
    error_code: str | None
    error: str | None
    chunk_count: int
    lang: str | None
    attachment_count: int
    trashed_at: datetime | None
    created_at: datetime
    updated_at: datetime
    indexed_at: datetime | None


class Note(NoteFacts):
    content: str


class NoteItem(NoteFacts):
    """A note in a list; `snippet` is the beginning of its content as one line."""

    snippet: str


class NotePage(BaseModel):
    items: list[NoteItem]
    next_cursor: str | None
