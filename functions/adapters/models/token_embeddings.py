"""The embeddings of single tokens from a text-embeddings-inference server, https://github.com/huggingface/text-embeddings-inference.

`POST /embed_all` gives a vector for each token and `POST /tokenize` says which stretch of the text each token is, in
bytes of UTF-8; vLLM's `/tokenize` gives no offsets. Whole texts go through the same server's OpenAI protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from functions.adapters.models import openai_connection as connection
from functions.core import errors, models, ports

if TYPE_CHECKING:  # numpy costs 100 ms at import
    from functions.core.ports import Matrix, Vectors

Result = TypeVar("Result")

_PROBE = "."  # tokenized beside each text, to see how much the server puts before it
_UNSUPPORTED = "The embedding server gives no embeddings of single tokens, which late chunking needs."
_TOO_LONG = (
    "The embedding server takes less text at once than is set. An administrator should check the model's input limit."
)


class TokenServer:
    """An embedder whose server also gives the embeddings of single tokens.

    What is not about tokens is answered by `embedder`, the client of the same server's `/v1/embeddings`.
    """

    def __init__(
        self,
        embedder: ports.Embedder,
        *,
        base_url: str,
        api_key: str | None = None,
        patience: connection.Patience | None = None,
        read_seconds: float = connection.READ_SECONDS,
    ) -> None:
        """`base_url` may end in `/v1`, as for the OpenAI protocol: the routes for tokens are beside it."""
        self._embedder = embedder
        root = base_url.rstrip("/").removesuffix("/v1")
        self._server = connection.Connection(root, api_key, patience or connection.Patience(), read_seconds)
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

        Raises ModelRejectedError when the server has no such route, the text is longer than it takes, or the model
        does not pool by the mean: means of its tokens are then no vectors that it would find again.
        """
        self._check_pooling()
        return [self._embed_one(text) for text in texts]

    def _check_pooling(self) -> None:
        if self._pools_by_mean:
            return
        info: Any = self._ask(lambda: self._server.client.get("/info", cast_to=object))
        try:
            pooling = info["model_type"]["embedding"]["pooling"]
        except (TypeError, KeyError) as exc:  # a model that does not embed, or another server
            raise errors.ModelRejectedError(_UNSUPPORTED) from exc
        if pooling != "mean":
            raise errors.ModelRejectedError(
                "Late chunking needs an embedding model that pools its tokens by the mean.", pooling=str(pooling)
            )
        self._pools_by_mean = True

    def _embed_one(self, text: str) -> ports.TokenEmbeddings:
        import numpy as np

        if not text:  # refused with a 400
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
        return self._ask(lambda: self._server.client.post(route, body=body, cast_to=object))

    def _ask(self, request: Callable[[], Result]) -> Result:
        try:
            return self._server.ask(request, lambda refusal: False)
        except errors.ModelRejectedError as exc:
            status = exc.details.get("status")
            if status in (413, 422):
                raise errors.ModelRejectedError(_TOO_LONG, status=status) from exc
            if status in (400, 401, 403):
                raise
            raise errors.ModelRejectedError(_UNSUPPORTED, **exc.details) from exc

    def _read_vectors(self, reply: Any) -> Matrix:
        """(tokens, dimensions), the special ones included."""
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
                f"The embedding server returns token embeddings of {vectors.shape[1]} dimensions where "
                f"{self.dimensions} are set."
            )
        if not np.isfinite(vectors).all():
            raise errors.ModelRejectedError("The embedding server returned a vector that is not usable.")
        return vectors


def _read_tokens(reply: Any) -> list[list[models.Offsets | None]]:
    """The bytes of each token of the text and of the probe; None for special tokens, which stand nowhere."""
    try:
        text, probe = (
            [None if token["special"] else (int(token["start"]), int(token["stop"])) for token in row] for row in reply
        )
    except (TypeError, ValueError, KeyError) as exc:
        raise errors.ModelRejectedError(_UNSUPPORTED) from exc
    return [text, probe]


def _to_characters(text: str, spans: Sequence[models.Offsets], prompt: int) -> tuple[models.Offsets, ...]:
    """Byte offsets into a prompt of `prompt` bytes and `text` as characters of `text`.

    A token that is a part of a character's bytes stands for that character.
    """
    places = [index for index, character in enumerate(text) for _ in character.encode()]
    found = []
    for start, stop in spans:
        first, last = max(start - prompt, 0), stop - prompt - 1
        if last >= len(places) or first > last:
            raise errors.ModelRejectedError("The embedding server places tokens outside the text.")
        found.append((places[first], places[last] + 1))
    return tuple(found)
