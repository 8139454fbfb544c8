"""Response bodies of what is neither library nor answer: texts, receipts, sign-in, health."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class Page(BaseModel):
    """The stored text of a page, to which the offsets of citations refer."""

    page: int
    text: str
    warnings: list[Any]
    ocr_confidence: float | None


class DocumentText(BaseModel):
    document_id: str
    page_count: int | None
    pages: list[Page]


class Section(BaseModel):
    """A section; `end` is that of its title, or null where the page does not have the title at `start`."""

    title: str
    page: int
    start: int
    end: int | None


class DocumentOutline(BaseModel):
    document_id: str
    sections: list[Section]


class Match(BaseModel):
    page: int
    start: int
    end: int


class DocumentMatches(BaseModel):
    """The first matches; `has_more` says that there are others."""

    document_id: str
    matches: list[Match]
    has_more: bool


class NoteText(BaseModel):
    note_id: str
    page_count: int | None
    pages: list[Page]


class Download(BaseModel):
    """A signed address, valid for `expires_in` seconds."""

    url: str
    expires_in: int


class Receipt(BaseModel):
    """How many rows and files were deleted; with `files_pending` the storage failed, and its files go once it works."""

    removed: dict[str, int]
    files_pending: bool


class DocumentReceipt(Receipt):
    document_id: str


class NotebookReceipt(Receipt):
    """A receipt that says how many sources moved out of the notebook."""

    notebook_id: str
    moved: dict[str, int]


class NoteReceipt(Receipt):
    """A receipt that says how many attachments were kept."""

    note_id: str
    moved: dict[str, int]


class SignIn(BaseModel):
    """How a page signs people in; `url` and `key` are those of Supabase."""

    method: Literal["local", "token", "supabase"]
    url: str | None = None
    key: str | None = None


class Me(BaseModel):
    """Who is signed in; `scopes` are those of an API key, and null for a person."""

    id: str
    is_admin: bool
    scopes: list[str] | None
    mode: Literal["local", "cloud"]
    chat: Literal["extractive", "model"]
    chat_model: str | None
    chat_url: str


class Health(BaseModel):
    status: Literal["ok"]


class Check(BaseModel):
    ok: bool
    detail: str


class Readiness(BaseModel):
    """Whether every part works; `checks` has a sentence for each, where the caller may see them."""

    status: Literal["ok", "degraded"]
    checks: dict[str, Check]


class Retention(BaseModel):
    """How many conversations were deleted."""

    deleted: int
