"""The seams: what the domain needs of the outside, each with at least two implementations in `functions/adapters`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from functions.core import models

if TYPE_CHECKING:  # numpy costs 100 ms at import and most handlers never touch a vector
    from array import array

    import numpy as np
    import numpy.typing as npt

    # float32, with `tolist` and `tobytes`: as numpy, or without it, which answering through a remote model never loads.
    Matrix = npt.NDArray[np.float32]
    Vector = npt.NDArray[np.float32] | array[float]
    Vectors = Matrix | list[array[float]]


Schema = dict[str, Any]
"""A JSON schema."""


class Embedder(Protocol):
    """Turns texts into unit vectors, one row a text, (len(texts), dimensions)."""

    @property
    def dimensions(self) -> int: ...

    @property
    def max_input_tokens(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Raises ModelUnavailableError, ModelRateLimitedError or ModelRejectedError."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` as this model counts them, special tokens not included."""
        ...


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """What a model makes of each token of one text: `vectors` has a row (not normalised) for each of `offsets`."""

    offsets: tuple[models.Offsets, ...]
    vectors: Matrix


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also gives the embeddings of single tokens, special tokens left out."""

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenEmbeddings]:
        """One for each text, of at most `max_input_tokens`; raises what `embed` raises."""
        ...


class TextRecognizer(Protocol):
    """Reads the text off a picture."""

    def recognize(self, png: bytes, *, timeout: float) -> RecognizedPage:
        """Raises RecognitionError when the picture cannot be read within `timeout` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class RecognizedPage:
    """Text in reading order, paragraphs apart by an empty line, with the box and the mean confidence of its words."""

    text: str
    recognition: models.Recognition


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool as a model wrote it: nothing of it is checked, `arguments` may be no JSON at all."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message as chat models take it; the result of a tool (`role` tool) names the call it answers."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class ChatStream(Protocol):
    """The text of a running completion, piece by piece.

    `usage`, and `tool_calls`, which a model may make after or instead of text, are complete when the iteration has
    ended.
    """

    @property
    def usage(self) -> models.Usage: ...

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]: ...

    def __iter__(self) -> Iterator[str]: ...

    def close(self) -> None: ...


class ChatModel(Protocol):
    """A language model; `takes_tools` until its server has refused them."""

    @property
    def takes_tools(self) -> bool: ...

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        json_schema: dict[str, Any] | None = None,
        tools: Sequence[Tool] = (),
    ) -> ChatStream:
        """Raises ModelUnavailableError, ModelRateLimitedError or ModelRejectedError, here or while iterating.

        A server that takes no tools is asked without them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model is told of a tool; `parameters` and `result` are JSON schemas of objects."""

    name: str
    title: str
    description: str
    parameters: Schema
    result: Schema


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave: as a model reads it, as a program does, and the passages that may be cited for it."""

    text: str
    data: dict[str, Any]
    hits: tuple[models.SearchHit, ...] = ()
    is_error: bool = False


class ToolRunner(Protocol):
    """Runs the tools for one person."""

    def run(self, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
        """Never raises: what went wrong is a result for the model to read."""
        ...


class Reranker(Protocol):
    """Reads question and passage together, which is slower than comparing vectors and mostly tells more."""

    def score(self, query_text: str, texts: Sequence[str]) -> list[float]:
        """One finite score for each text, in their order; only their order means anything.

        Raises ModelUnavailableError, ModelRateLimitedError or ModelRejectedError.
        """
        ...


@dataclass(frozen=True, slots=True)
class ResumableUpload:
    """The same by TUS 1.0.0 (https://tus.io), for files that come in pieces of `chunk_size` bytes."""

    url: str
    headers: dict[str, str]
    metadata: dict[str, str]
    chunk_size: int


@dataclass(frozen=True, slots=True)
class SignedUpload:
    """Where and how a client puts the bytes of one object; `resumable` where the store takes them in pieces too."""

    url: str
    method: str
    headers: dict[str, str]
    expires_in: int
    resumable: ResumableUpload | None = None


class ObjectStore(Protocol):
    """Keeps the uploaded bytes. Paths are `{owner_id}/{document_id}/original.{ext}`."""

    def sign_upload(self, path: str) -> SignedUpload: ...

    def sign_download(self, path: str, file_name: str, expires_in: int = 300) -> str: ...

    def info(self, path: str) -> models.StoredObject | None: ...

    def download(self, path: str, target: Path) -> None:
        """Writes the object to `target`; raises NotFoundError or StorageUnavailableError."""
        ...

    def remove(self, paths: Sequence[str]) -> int:
        """Removes what exists and says how many objects that were."""
        ...


class Authenticator(Protocol):
    """Turns a bearer token into a user."""

    def authenticate(self, token: str) -> models.User:
        """Raises NotSignedInError, with a reason in words, for anything but a valid token of role `authenticated`."""
        ...
