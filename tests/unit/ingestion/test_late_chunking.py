from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Sequence

import numpy as np
import pytest

from functions.adapters.laptop import minilm as minilm_model
from functions.adapters.laptop.embedder import LocalEmbedder
from functions.core import ports
from functions.core.ingestion.late_chunking import embed_late, plan_windows

ESSAY = (
    "Marie Curie was born in Warsaw in 1867. She moved to Paris to study physics. The university admitted her at once. "
    "It awarded her a degree two years later. Bananas are rich in potassium."
)
PAGE = "".join(
    f"Paragraph {number} says that revenue of segment {number * 7} rose by {number % 9} percent, mainly in Europe.\n"
    for number in range(60)
)


@functools.cache
def minilm() -> LocalEmbedder:
    return LocalEmbedder(minilm_model.NAME)


class NumberedWords:
    """The tokens are words w0, w1, …; each has its own direction, or that of the window's first word."""

    max_input_tokens = 10
    dimensions = 64

    def __init__(self, *, by_window: bool = False) -> None:
        self.by_window = by_window
        self.windows: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> ports.Matrix:
        return np.full((len(texts), self.dimensions), self.dimensions**-0.5, np.float32)

    def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]:
        (text,) = texts
        assert self.count_tokens(text) <= self.max_input_tokens
        self.windows.append(text)
        words = list(re.finditer(r"w(\d+)", text))
        numbers = [int(words[0][1]) if self.by_window else int(word[1]) for word in words]
        return [ports.TokenEmbeddings(tuple(word.span() for word in words), np.eye(64, dtype=np.float32)[numbers])]


TEXT = " ".join(f"w{number:02}" for number in range(40))


def span_of(first: int, last: int) -> tuple[int, int]:
    """The words from w`first` to w`last`."""
    starts = [match.span() for match in re.finditer(r"w\d+", TEXT)]
    return starts[first][0], starts[last][1]


def words_in(vector: np.ndarray) -> list[int]:
    """The words whose mean is the vector, if each counts once."""
    found = np.flatnonzero(vector)
    np.testing.assert_allclose(vector[found], len(found) ** -0.5, atol=1e-6)
    return found.tolist()


def test_a_span_is_the_mean_of_its_own_tokens_only() -> None:
    """ING-9"""
    vectors = embed_late(NumberedWords(), TEXT, [span_of(7, 9), span_of(0, 0), span_of(8, 12), span_of(7, 9)])
    assert [words_in(vector) for vector in vectors] == [[7, 8, 9], [0], [8, 9, 10, 11, 12], [7, 8, 9]]


def test_a_span_longer_than_a_window_counts_each_token_once() -> None:
    """ING-9"""
    vectors = embed_late(NumberedWords(), TEXT, [(0, len(TEXT)), span_of(3, 30), span_of(2, 13)])
    assert [words_in(vector) for vector in vectors] == [list(range(40)), list(range(3, 31)), list(range(2, 14))]


def test_a_span_is_taken_from_the_window_in_which_it_is_most_central() -> None:
    """ING-9"""
    embedder = NumberedWords(by_window=True)
    vectors = embed_late(embedder, TEXT, [span_of(4, 5), span_of(8, 9), span_of(13, 13), span_of(38, 39)])
    assert plan_windows(TEXT, 10, embedder.count_tokens)[1][0] == TEXT.index("w05")
    assert [words_in(vector) for vector in vectors] == [[0], [5], [10], [30]]


def test_only_the_needed_windows_are_embedded_and_once_each() -> None:
    embedder = NumberedWords()
    embed_late(embedder, TEXT, [span_of(1, 2), span_of(36, 37), span_of(1, 3)])
    assert [window.split()[0] for window in embedder.windows] == ["w00", "w30"]


def test_a_span_without_a_token_is_embedded_by_itself() -> None:
    embedder = NumberedWords()
    vectors = embed_late(embedder, f"{TEXT} …  ", [(len(TEXT) + 1, len(TEXT) + 2), (4, 4), span_of(0, 0)])
    assert np.array_equal(vectors[:2], embedder.embed(["…", ""]))
    assert words_in(vectors[2]) == [0]


def test_no_spans_embed_nothing() -> None:
    embedder = NumberedWords()
    assert embed_late(embedder, TEXT, []).shape == (0, 64)
    assert embed_late(embedder, "", [(0, 0)]).shape == (1, 64)


@pytest.mark.parametrize("span", [(-1, 3), (5, 4), (0, len(TEXT) + 1)])
def test_a_span_outside_the_text_is_an_error(span: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not part of the text"):
        embed_late(NumberedWords(), TEXT, [span])


def test_a_token_that_includes_the_space_before_it_belongs_to_its_own_span() -> None:
    class SpacedWords(NumberedWords):
        def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]:
            (found,) = super().embed_tokens(texts)
            offsets = tuple((max(start - 1, 0), end) for start, end in found.offsets)
            return [ports.TokenEmbeddings(offsets, found.vectors)]

    vectors = embed_late(SpacedWords(), TEXT, [span_of(3, 5), span_of(6, 6)])
    assert [words_in(vector) for vector in vectors] == [[3, 4, 5], [6]]


ODD_TEXTS = {
    "page": PAGE,
    "chinese": "公司在二零一九年确认了收入和利润" * 60,
    "one-word": "incomprehensibilities" * 200,
    "unknown-word": "x" * 3000,
    "spaces": "a" + " " * 3000 + "b" * 40,
    "emoji": "🙂👩‍👩‍👧👋🏽 " * 200,
    "mixed": " \n".join(["word " * 90, "電" * 400, "é" * 500, "1234567890" * 50]),
    "short": "one",
    "blank": "   \n ",
    "empty": "",
}


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_windows_cover_the_text_overlap_and_respect_the_limit(text: str) -> None:
    """ING-9"""
    windows = plan_windows(text, 254, minilm().count_tokens)
    assert (windows[0][0], windows[-1][1]) == (0, len(text))
    for (start, end), (following, last) in itertools.pairwise(windows):
        assert start < following < end < last
    assert max(minilm().count_tokens(text[start:end]) for start, end in windows) <= 254


def test_windows_are_nearly_full_and_advance_by_about_half() -> None:
    windows = plan_windows(PAGE, 254, minilm().count_tokens)
    sizes = [minilm().count_tokens(PAGE[start:end]) for start, end in windows[:-1]]
    steps = [minilm().count_tokens(PAGE[a[0] : b[0]]) for a, b in itertools.pairwise(windows)]
    assert min(sizes) > 245
    assert all(110 < step < 144 for step in steps)


def test_windows_cut_no_word() -> None:
    borders = {0, len(PAGE), *(match.start() for match in re.finditer(r"\S+", PAGE))}
    assert {at for window in plan_windows(PAGE, 254, minilm().count_tokens) for at in window} <= borders


def test_a_limit_below_one_token_terminates() -> None:
    assert plan_windows("abc", 1, lambda text: 2 * len(text)) == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("text", ["      ", "    ab", "abcdef"])
def test_a_window_without_the_start_of_a_word_ends_anywhere(text: str) -> None:
    assert plan_windows(text, 4, len) == [(0, 4), (2, 6)]


def test_the_work_grows_linearly_with_the_text() -> None:
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return len(text.split())

    plan_windows("word and " * 20_000, 254, count)
    assert counted < 60 * 180_000


@pytest.mark.parametrize("text", [text for text in ODD_TEXTS.values() if text.strip()], ids=lambda text: text[:8])
def test_vectors_of_any_text_are_finite_and_of_unit_length(text: str) -> None:
    """ING-9"""
    places = random.Random(3)
    pairs = [places.choices(range(len(text) + 1), k=2) for _ in range(12)]
    vectors = embed_late(minilm(), text, [(0, len(text)), *((min(pair), max(pair)) for pair in pairs)])
    assert (vectors.shape, vectors.dtype) == ((13, 384), np.dtype(np.float32))
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5


@pytest.mark.parametrize(("words", "least"), [(1, 0.8), (12, 0.99), (60, 0.999), (180, 0.9998)])
def test_a_text_in_one_span_differs_from_its_whole_vector_by_the_two_special_tokens_only(
    words: int, least: float
) -> None:
    """ING-9: the model's own mean includes [CLS] and [SEP], late chunks do not; short texts differ most."""
    text = " ".join(PAGE.split()[:words])
    late, whole = embed_late(minilm(), text, [(0, len(text))])[0], minilm().embed([text])[0]
    assert late @ whole > least
    (tokens,) = minilm().embed_tokens([text])
    mean = tokens.vectors.mean(axis=0)
    np.testing.assert_allclose(late, mean / np.linalg.norm(mean), atol=1e-6)


def sentences_of(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"[A-Z][^.]*\.", text)]


def test_a_sentence_with_a_pronoun_is_nearer_to_its_referent() -> None:
    """ING-9"""
    spans = sentences_of(ESSAY)
    late, fixed = embed_late(minilm(), ESSAY, spans), minilm().embed([ESSAY[slice(*span)] for span in spans])
    query = minilm().embed(["Where did Marie Curie study?"])[0]
    gains = (late - fixed) @ query
    assert gains[1:4].min() > 0.05
    order = np.argsort(-(late @ query)).tolist()
    assert order[-1] == 4


def test_the_same_call_gives_the_same_bytes() -> None:
    """ING-9"""
    spans = [match.span() for match in re.finditer(r"[^\n]+", PAGE)]
    first = embed_late(minilm(), PAGE, spans)
    assert first.tobytes() == embed_late(LocalEmbedder(minilm_model.NAME), PAGE, spans).tobytes()
    assert np.array_equal(embed_late(minilm(), PAGE, spans[::-1])[::-1], first)


def test_no_more_than_one_window_is_held_at_a_time() -> None:
    class OneAtATime(NumberedWords):
        def embed_tokens(self, texts: Sequence[str]) -> list[ports.TokenEmbeddings]:
            assert len(texts) == 1
            return super().embed_tokens(texts)

    assert embed_late(OneAtATime(), TEXT, [(0, len(TEXT))]).shape == (1, 64)
