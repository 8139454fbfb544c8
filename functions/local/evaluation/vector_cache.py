"""Embedders for measuring: one caches its vectors, one replaces the model where only full text is searched."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from functions.core.ports import Embedder, Matrix, TokenEmbedder, TokenEmbeddings

PROBE = "Whether a model still gives the vectors it gave."  # any text would do; another one empties every cache


class CachingEmbedder:
    """Caches every vector in a file, by model and text, so that a second run embeds nothing again.

    The cache is emptied when the model has changed: when it no longer embeds PROBE as the cached vector says.
    """

    def __init__(self, inner: Embedder, model: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._inner = inner
        self._model = model
        self._lock = threading.Lock()
        self._file = sqlite3.connect(path, check_same_thread=False, timeout=60)
        self._file.execute("create table if not exists vectors (key blob primary key, vector blob) without rowid")
        self._empty_outdated_cache()

    @property
    def dimensions(self) -> int:
        return self._inner.dimensions

    @property
    def max_input_tokens(self) -> int:
        return self._inner.max_input_tokens

    def count_tokens(self, text: str) -> int:
        return self._inner.count_tokens(text)

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenEmbeddings]:
        return cast("TokenEmbedder", self._inner).embed_tokens(texts)

    def embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        keys = [self._key(text) for text in texts]
        known = self._find(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            rows = self._inner.embed(list(missing.values()))
            found = {key: row.tobytes() for key, row in zip(missing, rows, strict=True)}
            with self._lock, self._file:
                self._file.executemany("insert or ignore into vectors values (?, ?)", found.items())
            known |= found
        flat = np.frombuffer(b"".join(known[key] for key in keys), np.float32)
        return flat.reshape(len(texts), self.dimensions)

    def close(self) -> None:
        self._file.close()

    def _empty_outdated_cache(self) -> None:
        import numpy as np

        key = self._key(PROBE)
        known, now = self._find([key]).get(key), self._inner.embed([PROBE])[0]
        if known is None or not np.allclose(np.frombuffer(known, np.float32), now, atol=1e-3):
            with self._file:
                self._file.execute("delete from vectors")
                self._file.execute("insert into vectors values (?, ?)", (key, now.tobytes()))

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._model}\0{text}".encode("utf-8", "replace")).digest()

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            rows = (self._file.execute("select key, vector from vectors where key = ?", (key,)) for key in keys)
            return dict(row for found in rows for row in found)


class ConstantEmbedder:
    """Counts tokens as `inner` does, and gives all texts the same vector: for measuring full text search alone."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    @property
    def dimensions(self) -> int:
        return self._inner.dimensions

    @property
    def max_input_tokens(self) -> int:
        return self._inner.max_input_tokens

    def count_tokens(self, text: str) -> int:
        return self._inner.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        return np.eye(1, self.dimensions, dtype=np.float32).repeat(len(texts), axis=0)
