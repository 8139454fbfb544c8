"""Token embeddings from a text-embeddings-inference server, https://github.com/huggingface/text-embeddings-inference.

`POST /embed_all` returns a vector for each token, and `POST /tokenize` the offsets of each token in UTF-8 bytes; vLLM's
`/tokenize` returns no offsets. Whole texts are embedded through the OpenAI protocol of the same server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from functions.adapters.models import openai_connection as connection
from functions.core import errors, models, ports

if TYPE_CHECKING:  # numpy costs 100 ms at import
    from functions.core.ports import Matrix, Vectors

Result = TypeVar("Result")

_PROBE = "."  # tokenized beside each text, to measure the prompt that the server puts before it
_UNSUPPORTED = "The embedding server returns no token embeddings, which late chunking needs."
_TOO_LONG = (
    "The embedding server accepts less text than configured. An administrator should check the model's input limit."
)


class TokenServer:
    """An embedder whose server also returns token embeddings.

    Everything else is delegated to `embedder`, the client of the same server's `/v1/embeddings`.
    """

    def __init__(
        self,
        embedder: ports.Embedder,
        *,
        base_url: str,
        api_key: str | None = None,
        retry_policy: connection.RetryPolicy | None = None,
        read_seconds: float = connection.READ_SECONDS,
    ) -> None:
        """`base_url` may end in `/v1`, as for the OpenAI protocol; the token routes are one level above."""
        self._embedder = embedder
        root = base_url.rstrip("/").removesuffix("/v1")
        self._server = connection.Connection(root, api_key, retry_policy or connection.RetryPolicy(), read_seconds)
        self._pools_by_mean = False

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def max_input_tokens(self) -> int:
        return self._embedder.max_input_tokens

    def count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.embed(texts)

    def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]:
        """The last hidden states without the special tokens, in the order of `texts`, one request at a time.

        Raises ModelRejectedError when the server has no such route, when the text is too long for it, or when the model
        does not pool by the mean: the mean of a passage's tokens would then not match vectors of whole texts.
        """
        self._check_pooling()
        return [self._embed_one(text) for text in texts]

    def _check_pooling(self) -> None:
        if self._pools_by_mean:
            return
        info: Any = self._send(lambda: self._server.client.get("/info", cast_to=object))
        try:
            pooling = info["model_type"]["embedding"]["pooling"]
        except (TypeError, KeyError) as exc:  # the model does not embed, or the server is not text-embeddings-inference
            raise errors.ModelRejectedError(_UNSUPPORTED) from exc
        if pooling != "mean":
            raise errors.ModelRejectedError(
                "Late chunking needs an embedding model with mean pooling.", pooling=str(pooling)
            )
        self._pools_by_mean = True

    def _embed_one(self, text: str) -> ports.TokenEmbeddings:
        import numpy as np

        if not text:  # the server refuses an empty input with a 400
            return ports.TokenEmbeddings((), np.zeros((0, self.dimensions), np.float32))
        rows = self._post("/tokenize", {"inputs": [text, _PROBE], "add_special_tokens": True})
        vectors = self._read_vectors(self._post("/embed_all", {"inputs": [text], "truncate": False}))
        tokens, probe = _read_tokens(rows)
        if len(tokens) != len(vectors):
            raise errors.ModelRejectedError(
                "The embedding server did not return one vector for each token.",
                tokens=len(tokens),
                returned=len(vectors),
            )
        prompt = max((token[1] for token in probe if token), default=1) - len(_PROBE)
        kept = {index: token for index, token in enumerate(tokens) if token and token[1] > prompt}
        return ports.TokenEmbeddings(_to_characters(text, list(kept.values()), prompt), vectors[list(kept)])

    def _post(self, route: str, body: dict[str, Any]) -> Any:
        return self._send(lambda: self._server.client.post(route, body=body, cast_to=object))

    def _send(self, request: Callable[[], Result]) -> Result:
        try:
            return self._server.send(request, lambda refusal: False)
        except errors.ModelRejectedError as exc:
            status = exc.details.get("status")
            if status in (413, 422):
                raise errors.ModelRejectedError(_TOO_LONG, status=status) from exc
            if status in (400, 401, 403):
                raise
            raise errors.ModelRejectedError(_UNSUPPORTED, **exc.details) from exc

    def _read_vectors(self, reply: Any) -> Matrix:
        """The vectors of all tokens, special tokens included: (tokens, dimensions)."""
        import numpy as np

        try:
            (rows,) = reply
            vectors: Matrix = np.asarray(rows, np.float32)
        except (TypeError, ValueError) as exc:
            raise errors.ModelRejectedError(_UNSUPPORTED) from exc
        if vectors.ndim != 2:
            raise errors.ModelRejectedError(_UNSUPPORTED)
        if vectors.shape[1] != self.dimensions:
            raise errors.ModelRejectedError(
                f"The embedding server returns token embeddings of {vectors.shape[1]} dimensions, but "
                f"{self.dimensions} are configured."
            )
        if not np.isfinite(vectors).all():
            raise errors.ModelRejectedError("The embedding server returned a vector that is not finite.")
        return vectors


def _read_tokens(reply: Any) -> list[list[models.Offsets | None]]:
    """The byte offsets of each token of the text and of the probe; None for special tokens, which have none."""
    try:
        text, probe = (
            [None if token["special"] else (int(token["start"]), int(token["stop"])) for token in row] for row in reply
        )
    except (TypeError, ValueError, KeyError) as exc:
        raise errors.ModelRejectedError(_UNSUPPORTED) from exc
    return [text, probe]


def _to_characters(text: str, spans: Sequence[models.Offsets], prompt: int) -> tuple[models.Offsets, ...]:
    """Turns byte offsets into the server's prompt (`prompt` bytes) plus `text` into character offsets into `text`.

    A token that covers only some bytes of a character gets the offsets of that character.
    """
    characters = [index for index, character in enumerate(text) for _ in character.encode()]
    offsets = []
    for start, stop in spans:
        first, last = max(start - prompt, 0), stop - prompt - 1
        if last >= len(characters) or first > last:
            raise errors.ModelRejectedError("The embedding server returned tokens outside the text.")
        offsets.append((characters[first], characters[last] + 1))
    return tuple(offsets)
