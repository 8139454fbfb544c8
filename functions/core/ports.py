"""What the core needs from outside services, as protocols, because `core` may not import the adapters.

Embedders, object stores and tool runners have several implementations. `ChatModel`, `TextRecognizer` and `Reranker`
have one each, and tests put fakes in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from functions.core import models

if TYPE_CHECKING:  # numpy costs 100 ms at import and most handlers never touch a vector
    from array import array

    import numpy as np
    import numpy.typing as npt

    # float32 values with `tolist` and `tobytes`; functions that embed with a remote model use `array` and skip numpy.
    Matrix = npt.NDArray[np.float32]
    Vector = npt.NDArray[np.float32] | array[float]
    Vectors = Matrix | list[array[float]]


Schema = dict[str, Any]
"""A JSON schema."""


class QuestionEmbedder(Protocol):
    """What a search needs of an embedder."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Raises what `Embedder.embed` raises."""
        ...


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
    """The embeddings of the tokens of one text: row i of `vectors` (not normalised) belongs to `offsets[i]`."""

    offsets: tuple[models.Offsets, ...]
    vectors: Matrix


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also returns the embeddings of single tokens, without special tokens."""

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenEmbeddings]:
        """One result per text; a text has at most `max_input_tokens`. Raises what `embed` raises."""
        ...


class TextRecognizer(Protocol):
    """Reads the text of a page image (OCR)."""

    def recognize(self, png: bytes, *, timeout: float) -> RecognizedPage:
        """Raises RecognitionError if the image cannot be read within `timeout` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class RecognizedPage:
    """Text in reading order, with an empty line between paragraphs, and the boxes and mean confidence of its words."""

    text: str
    recognition: models.Recognition


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as a model wrote it. Nothing is validated: `arguments` may not even be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message to or from a chat model; a tool's result (`role` tool) has the id of its call in `tool_call_id`."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class ChatStream(Protocol):
    """The text of a running completion, piece by piece.

    `usage` and `tool_calls` are complete once the iteration has ended; a model may call tools after or instead of text.
    """

    @property
    def usage(self) -> models.Usage: ...

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]: ...

    def __iter__(self) -> Iterator[str]: ...

    def close(self) -> None: ...


class ChatModel(Protocol):
    """A language model; `takes_tools` is true until its server refuses a request with tools."""

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

        If the server refuses tools, the request is repeated without them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is described to a model; `parameters` and `result` are JSON schemas of objects."""

    name: str
    title: str
    description: str
    parameters: Schema
    result: Schema


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call: `text` for a model, `data` for a program, and the `hits` that an answer may cite."""

    text: str
    data: dict[str, Any]
    hits: tuple[models.SearchHit, ...] = ()
    is_error: bool = False


class ToolRunner(Protocol):
    """Runs the tools on behalf of one user."""

    def run(self, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
        """Never raises: an error becomes a result that the model reads."""
        ...


class Translator(Protocol):
    """Translates passages of documents between English and French."""

    def translate(self, text: str, source: models.Lang, target: models.Lang) -> tuple[str, models.Usage]:
        """Raises ModelUnavailableError, ModelRateLimitedError or ModelRejectedError."""
        ...


class Reranker(Protocol):
    """Scores a question and a passage together, which is slower than comparing vectors and usually more accurate."""

    def score(self, query_text: str, texts: Sequence[str]) -> list[float]:
        """One finite score per text, in the order of `texts`. Only the order of the scores is meaningful.

        Raises ModelUnavailableError, ModelRateLimitedError or ModelRejectedError.
        """
        ...


@dataclass(frozen=True, slots=True)
class ResumableUpload:
    """How a client uploads one object by TUS 1.0.0 (https://tus.io), in pieces of `chunk_size` bytes."""

    url: str
    headers: dict[str, str]
    metadata: dict[str, str]
    chunk_size: int


@dataclass(frozen=True, slots=True)
class SignedUpload:
    """How a client uploads one object within `expires_in` seconds; `resumable` if it may upload in pieces too."""

    url: str
    method: str
    headers: dict[str, str]
    expires_in: int
    resumable: ResumableUpload | None = None


BUCKET: Final = "documents"
"""The bucket of the uploaded files; the triggers in the database know it by this name, too."""


NO_LONGER_STORED: Final = "The file is no longer stored. Delete the document and upload the file again."


class ObjectStore(Protocol):
    """Stores the uploaded files. Paths are `{owner_id}/{document_id}/original.{ext}`."""

    def check(self) -> None:
        """Raises StorageUnavailableError with advice unless uploads can be signed now, for nobody but their users."""
        ...

    def sign_upload(self, path: str) -> SignedUpload: ...

    def sign_download(self, path: str, file_name: str, expires_in: int = 300) -> str: ...

    def info(self, path: str) -> models.StoredObject | None: ...

    def download(self, path: str, target: Path) -> None:
        """Writes the object to `target`; raises NotFoundError or StorageUnavailableError."""
        ...

    def remove(self, paths: Sequence[str]) -> int:
        """Removes those objects that exist and returns their number."""
        ...

    def close(self) -> None:
        """Closes the connections that are open."""
        ...
