"""Embeds texts on this machine, by one of two models: no key, no network, no GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from functions.adapters.laptop import e5, e5_weights, minilm, minilm_graph
from functions.core import errors, ports

if TYPE_CHECKING:  # numpy loads on the first use of the model only
    from functions.core.ports import Matrix

DEFAULT: Final = e5.NAME


class _Model(Protocol):
    def embed(self, texts: Sequence[str]) -> Matrix: ...

    def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]: ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a model is found and loaded (with threads and their limit), and the sizes known without loading it."""

    find: Callable[[], Path]
    load: Callable[[int, Callable[[], int] | None], _Model]
    dimensions: int
    max_input_tokens: int


_KINDS: Final = {
    e5.NAME: _Kind(e5_weights.find_weights, e5.Model, e5_weights.DIMENSIONS, e5.MAX_INPUT_TOKENS),
    minilm.NAME: _Kind(
        minilm.find_model, lambda threads, _: minilm.Model(threads), minilm_graph.DIMENSIONS, minilm.MAX_INPUT_TOKENS
    ),
}


def is_installed(model: str) -> bool:
    """Whether the files of a local model are on this machine."""
    try:
        _KINDS[model].find()
    except errors.ModelRejectedError:
        return False
    return True


class LocalEmbedder:
    """One model for all threads of the process; the first call loads it, not the constructor.

    `threads` is the number that one call uses; calls from several threads always run in parallel. E5 asks `limit`
    before each text how many may run at once.
    """

    def __init__(self, model: str = DEFAULT, *, threads: int = 1, limit: Callable[[], int] | None = None) -> None:
        if model not in _KINDS:
            raise errors.ModelRejectedError(f"No local embedding model is called {model}.")
        self.model = model
        self._kind = _KINDS[model]
        self._threads, self._limit = threads, limit
        self._lock = threading.Lock()
        self._loaded: _Model | None = None

    @property
    def dimensions(self) -> int:
        return self._kind.dimensions

    @property
    def max_input_tokens(self) -> int:
        """The longest input, any prefix included, without the special tokens."""
        return self._kind.max_input_tokens

    def load(self) -> None:
        """Loads the model before the first call needs it; raises ModelRejectedError when it is not installed."""
        self._load_once()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors in the order of `texts`; tokens beyond the model's longest input are ignored."""
        with _model_errors():  # an installation without the model may also lack numpy
            import numpy as np
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        model = self._load_once()
        with _model_errors():
            return model.embed(texts)

    def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]:
        """The last hidden states without special tokens, in the order of `texts`, truncated as in `embed`."""
        if not texts:
            return []
        model = self._load_once()
        with _model_errors():
            return model.embed_tokens(texts)

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`, special tokens not included, however long it is."""
        return self.count_tokens_batch([text])[0]

    def count_tokens_batch(self, texts: Sequence[str]) -> list[int]:
        return self._load_once().count_tokens(texts)

    def _load_once(self) -> _Model:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    with _model_errors():
                        self._loaded = self._kind.load(self._threads, self._limit)
        return self._loaded


@contextmanager
def _model_errors() -> Iterator[None]:
    """Turns every failure into ModelRejectedError, because the same input on the same machine would fail again."""
    try:
        yield
    except errors.IbidError:
        raise
    except ImportError as exc:
        raise errors.ModelRejectedError(f"The local embedding model needs the Python package {exc.name}.") from exc
    except Exception as exc:
        raise errors.ModelRejectedError(f"The local embedding model failed: {type(exc).__name__}.") from exc
