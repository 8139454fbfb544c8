"""multilingual-e5-small on onnxruntime: about a hundred languages, texts of up to 512 tokens."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from functions.adapters.laptop import e5_graph, e5_weights, onnx_graph
from functions.adapters.laptop.unigram_tokenizer import Tokens, UnigramTokenizer
from functions.core import ports

if TYPE_CHECKING:  # numpy loads on the first use of the model only
    import numpy as np
    import numpy.typing as npt

    from functions.core.ports import Matrix

T = TypeVar("T")

NAME: Final = "intfloat/multilingual-e5-small"
SPECIAL_TOKENS: Final = 2  # <s> and </s>
MAX_INPUT_TOKENS: Final = e5_weights.POSITIONS - SPECIAL_TOKENS


class _Turns:
    """Lets at most `limit()` threads run at once; the limit may change while they wait."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._running = 0
        self._has_ended = threading.Condition()

    def __enter__(self) -> None:
        with self._has_ended:
            self._has_ended.wait_for(lambda: self._running < self._limit())
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._has_ended:
            self._running -= 1
            self._has_ended.notify_all()  # the limit may have risen by more than one


class Model:
    """The loaded model; each text runs by itself, so its vector does not depend on the texts around it.

    Each of `threads` runs one text at a time: several threads on one text are slower, also for a single question.
    """

    def __init__(self, threads: int, limit: Callable[[], int] | None = None, bits: int | None = None) -> None:
        """`limit` is asked before each text how many may run at once, those of other callers included."""
        weights = e5_weights.read_weights(e5_weights.find_weights())
        vocabulary = weights.vocabulary
        self.tokenizer = UnigramTokenizer(
            vocabulary.pieces, vocabulary.scores.tolist(), vocabulary.unknown, vocabulary.replacements
        )
        self._start, self._end = vocabulary.start, vocabulary.end
        self._words = weights.blocks["emb.word"]
        types = weights.floats["emb.type"].reshape(-1, e5_weights.DIMENSIONS)
        # Every token has type 0, so its row is added to the positions once.
        self._positions = weights.floats["emb.pos"].reshape(-1, e5_weights.DIMENSIONS) + types[0]
        graph = e5_graph.build_graph(weights, bits or e5_graph.choose_bits())
        self._session, self._tensors = onnx_graph.open_session(*graph, threads=1)
        self._pool = ThreadPoolExecutor(threads, "embed") if threads > 1 else None
        # Texts of many callers take turns: more at a time than there are processors end later on average, and keep
        # everything else in the process waiting.
        most = max(threads, os.cpu_count() or 1)
        self._turns = _Turns(limit or (lambda: most))

    def embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        return np.concatenate(self._map(lambda text: self._run("embedding", self._tokenize(text).ids), texts))

    def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]:
        return self._map(self._embed_tokens_of, texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [self.tokenizer.count(text) for text in texts]

    def _embed_tokens_of(self, text: str) -> ports.TokenEmbeddings:
        tokens = self._tokenize(text)
        return ports.TokenEmbeddings(tuple(tokens.offsets), self._run("tokens", tokens.ids)[0, 1:-1].copy())

    def _map(self, work: Callable[[str], T], texts: Sequence[str]) -> list[T]:
        return list(map(work, texts) if self._pool is None or len(texts) < 2 else self._pool.map(work, texts))

    def _tokenize(self, text: str) -> Tokens:
        return self.tokenizer.encode(text, MAX_INPUT_TOKENS)

    def _run(self, output: str, ids: list[int]) -> npt.NDArray[np.float32]:
        words = e5_weights.to_floats(self._words[[self._start, *ids, self._end]])
        words += self._positions[: len(words)]
        with self._turns:
            result: npt.NDArray[np.float32] = self._session.run([output], {"inputs": words[None]})[0]
        return result
