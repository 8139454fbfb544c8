"""Response bodies of questions and searches, in our own protocol and in OpenAI's."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from functions.core.models import CheckResult, MessageStatus, SupportResult

Mode = Literal["model", "extractive", "guard"]


class Problem(BaseModel):
    """An error (RFC 9457); `code` is stable, `detail` is a sentence for people, `faults` name the invalid fields.

    `documents` and `notes` are the numbers of those that `server_in_use` is about.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    faults: list[dict[str, str]] | None = None
    conversation_id: str | None = None
    documents: int | None = None
    notes: int | None = None


class OpenAIFault(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error in OpenAI's form."""

    error: OpenAIFault


class Scope(BaseModel):
    """What was searched; a field without a value is left out."""

    kind: Literal["documents", "conversation", "notebook", "note", "library"]
    document_ids: list[str] | None = None
    notebook_id: str | None = None
    note_id: str | None = None
    filters: dict[str, str] | None = None


class Section(BaseModel):
    """A part of an answer, with the numbers of its citations; `source_ids` is the older name of `segment_ids`.

    `emphasis` are the words of a quotation's text to be shown in bold, because they carry the answer; often empty.
    """

    text: str
    segment_ids: list[str]
    source_ids: list[str]
    citations: list[int]
    unsupported_numbers: list[str]
    is_remark: bool = False
    emphasis: str = ""


class Citation(BaseModel):
    """A source: `quote` is page text [start_offset:end_offset]; `document_id` is the older name of `source_id`.

    `translation` is that of the whole passage into the question's language, if it was made with the indexing.
    """

    number: int
    source: Literal["document", "note"]
    source_id: str
    document_id: str
    chunk_index: int
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


class Usage(BaseModel):
    """Tokens as the model server counted them, their cost if prices are set, and why a model did not answer."""

    prompt_tokens: int | None
    completion_tokens: int | None
    model: str | None
    cost_usd: float | None = None
    degraded: str | None = None


class Answer(BaseModel):
    """An answer; `suggestions` are questions that other passages answer, `error` says what interrupted it."""

    conversation_id: str
    question_id: str
    message_id: str
    answer: str
    sections: list[Section]
    sources: list[Citation]
    scope: Scope
    status: MessageStatus
    mode: Mode
    usage: Usage
    search_query: str | None
    translated_query: str | None
    degraded: list[str]
    suggestions: list[str]
    error: Problem | None = None


class Arms(BaseModel):
    """The rank and the score of a hit in each method of the search; null where the method did not find it."""

    fts_rank: int | None
    vector_rank: int | None
    blend_rank: int | None
    rerank_rank: int | None
    fts_score: float | None
    similarity: float | None
    blend_score: float | None
    coverage: float
    rerank_score: float | None


class Hit(BaseModel):
    """A passage; `document_id` is the older name of `source_id`, and `arms` and `evidence` come with `debug`."""

    source: Literal["document", "note"]
    source_id: str
    document_id: str
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
    markdown: str | None
    lang: str
    score: float
    translation: str | None
    is_foreign: bool
    arms: Arms | None = None
    evidence: float | None = None


class SearchFigures(BaseModel):
    """What a search looked at and how long it took, in milliseconds."""

    candidate_sources: int
    candidate_chunks: int
    context: list[str]
    embed_ms: float
    search_ms: float
    rerank_ms: float | None
    degraded: list[str]


class SearchResults(BaseModel):
    query: str
    lang: str
    scope: Scope
    hits: list[Hit]
    degraded: list[str]
    debug: SearchFigures | None = None


class Suggestions(BaseModel):
    """Questions that the documents answer."""

    items: list[str]


class ModelObject(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(BaseModel):
    object: Literal["list"]
    data: list[ModelObject]


class CompletionMessage(BaseModel):
    role: Literal["assistant"]
    content: str
    refusal: None


class CompletionChoice(BaseModel):
    index: int
    message: CompletionMessage
    logprobs: None
    finish_reason: Literal["stop", "length"]


class CompletionUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionDetails(BaseModel):
    """What OpenAI's protocol lacks."""

    sections: list[Section]
    sources: list[Citation]
    scope: Scope
    mode: Mode
    status: MessageStatus
    degraded: str | None
    search_degraded: list[str]
    search_query: str | None
    translated_query: str | None


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    ibid: CompletionDetails


class RpcReply(BaseModel):
    """A JSON-RPC reply, as the Model Context Protocol describes it."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
