"""Response bodies of embedding servers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class ServerFacts(BaseModel):
    name: str
    model: str
    dimensions: int


class Server(ServerFacts):
    """A registered server, with the name of the variable that holds its key, and how much is indexed with it."""

    id: str
    kind: Literal["local", "openai"]
    api_key_env: str | None
    max_input_tokens: int
    languages: list[str]
    batch_size: int
    token_level: bool
    query_prefix: str
    passage_prefix: str
    price_per_million_tokens: float
    managed: bool
    base_url: str | None
    key_is_set: bool
    is_default: bool
    active: bool
    is_leaving: bool
    documents: int
    notes: int


class Move(BaseModel):
    """How many documents and notes are re-indexed, remain, and cannot be moved."""

    done: int
    remaining: int
    failed: int
    paused: bool


class WordsAlone(BaseModel):
    """A server that is switched off, and how many documents and notes only their words find."""

    name: str
    sources: int


class Servers(BaseModel):
    """All servers, the model in force, the one that the environment configures, and how far a move has come."""

    servers: list[Server]
    stored: ServerFacts
    configured: ServerFacts
    can_adopt: bool
    reindexing: Move | None
    words_alone: list[WordsAlone]
    rejected: int
    detail: str


class Estimate(BaseModel):
    """What a move would embed again; time and cost are None if they are not known."""

    documents: int
    notes: int
    pages: int
    passages: int
    tokens: int
    embedding_seconds: float | None
    cost_usd: float | None


class TrialError(BaseModel):
    code: str
    detail: str


class TrialDimensions(BaseModel):
    configured: int
    returned: int | None


class PrefixPair(BaseModel):
    query: str
    passage: str


class TrialPrefixes(BaseModel):
    configured: PrefixPair
    suggested: PrefixPair


class Trial(BaseModel):
    """What a server returned for a few sentences, or what is wrong with it."""

    ok: bool
    error: TrialError | None
    dimensions: TrialDimensions
    prefixes: TrialPrefixes
    milliseconds: float
    texts_per_second: float | None


class EmbeddingModel(BaseModel):
    id: str
    name: str
    model: str


class Embeddings(BaseModel):
    """The vectors of texts, in their order."""

    server: EmbeddingModel
    prefix: str
    dimensions: int
    milliseconds: float
    embeddings: list[list[float]]
