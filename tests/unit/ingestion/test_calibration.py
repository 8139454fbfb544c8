"""The scale of similarities, measured in a library whose answers nobody has labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from functions.core import errors, models
from functions.core.ingestion import calibration
from functions.core.ingestion.calibration import StoredPassage

if TYPE_CHECKING:
    from functions.core.ports import Matrix

SERVER = models.EmbeddingServer("s", "s", "openai", "m", 256, 512, (), query_prefix="q: ")
SUBJECTS = ("harbour", "orchard", "tribunal", "symphony", "glacier", "compiler", "vaccine", "bakery")


class WordEmbedder:
    """Unit vectors with a cosine of `lowest` between texts without a common word, and more the more they share."""

    dimensions = 256
    max_input_tokens = 512

    def __init__(self, lowest: float = 0.0, error: errors.IbidError | None = None) -> None:
        self.lowest = lowest
        self.error = error
        self.received: list[str] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        if self.error:
            raise self.error
        self.received += texts
        return np.array([self._embed(text) for text in texts], np.float32)

    def _embed(self, text: str) -> Matrix:
        vector = np.zeros(self.dimensions, np.float32)
        for word in text.lower().split():
            vector[1 + sum(word.encode()) * 7 % 255] += 1
        vector *= np.sqrt(1 - self.lowest) / np.linalg.norm(vector)
        vector[0] = np.sqrt(self.lowest)
        return vector

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def make_passages(embedder: WordEmbedder, lang: str = "en", count: int = 8) -> list[StoredPassage]:
    texts = [
        f"The {subject} of the town drew several visitors last year. Nobody closed the {subject} since then."
        for subject in SUBJECTS[:count]
    ]
    return [StoredPassage(text, lang, row) for text, row in zip(texts, embedder.embed(texts), strict=True)]


@dataclass
class FakeLibrary:
    passages: list[StoredPassage]
    count: int | None
    saved: list[tuple[Mapping[str, models.SimilarityScale], int]] = field(default_factory=list)

    def count_passages(self, server: models.EmbeddingServer) -> int | None:
        return self.count

    def sample_passages(self, server: models.EmbeddingServer, count: int) -> Sequence[StoredPassage]:
        return self.passages

    def save_scales(
        self, server: models.EmbeddingServer, scales: Mapping[str, models.SimilarityScale], passages: int
    ) -> None:
        self.saved.append((scales, passages))


@pytest.mark.parametrize(
    ("calibrated", "count", "is_due"),
    [
        *((None, 0, False), (None, 1, True)),
        *((1, 2, True), (3, 5, False), (3, 6, True)),
        *((100, 199, False), (100, 200, True), (100, 51, False), (100, 50, True), (100, 4, False)),
    ],
)
def test_scales_are_due_when_the_library_has_changed_much(calibrated: int | None, count: int, is_due: bool) -> None:
    """RET-8"""
    assert calibration.needs_calibration(replace(SERVER, calibrated_passages=calibrated), count) is is_due


@pytest.mark.parametrize("known", [{"similarity_ceiling": 0.9}, {"similarity_scales": {"en>en": (0.7, 0.9)}}])
def test_a_known_scale_is_kept_until_there_are_enough_passages(known: dict[str, Any]) -> None:
    """RET-8"""
    server = replace(SERVER, **known)
    assert [calibration.needs_calibration(server, count) for count in (1, 99, 100)] == [False, False, True]


def test_the_first_passage_gives_a_scale() -> None:
    """RET-8: without one, a server of unknown scale would let every question pass."""
    embedder = WordEmbedder(lowest=0.75)
    scales = calibration.measure_scales(make_passages(embedder, count=1), SERVER, embedder)
    assert sorted(scales) == ["en>en", "fr>en"]
    assert all(0.75 < scale.floor < scale.ceiling < 1 for scale in scales.values())


def test_the_floor_has_a_least_position_between_unrelated_and_related_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """RET-8: for questions in the language of the passages alone, because its sentences tell nothing of another."""
    embedder = WordEmbedder()
    passages = make_passages(embedder)
    unraised = calibration.measure_scales(passages, SERVER, embedder)
    monkeypatch.setattr(calibration, "FLOOR_POSITION", 0.9)
    raised = calibration.measure_scales(passages, SERVER, embedder)
    assert unraised["en>en"].floor < raised["en>en"].floor < raised["en>en"].ceiling
    assert raised == unraised | {"en>en": unraised["en>en"]._replace(floor=raised["en>en"].floor)}


def test_each_language_of_the_library_gets_a_scale_for_both_languages_of_questions() -> None:
    """RET-8, LANG-4"""
    embedder = WordEmbedder()
    passages = make_passages(embedder) + make_passages(embedder, "fr") + make_passages(embedder, "simple", count=4)
    scales = calibration.measure_scales(passages, SERVER, embedder)
    assert sorted(scales) == ["en>en", "en>fr", "fr>en", "fr>fr"]
    assert all(scale.floor < scale.ceiling for scale in scales.values())


def test_cosines_that_all_lie_high_get_the_same_similarities() -> None:
    """RET-8: a model whose cosines are 0.75 and more is scaled as one whose cosines begin at 0."""
    plain, high = WordEmbedder(), WordEmbedder(lowest=0.75)
    low_scale = calibration.measure_scales(make_passages(plain), SERVER, plain)["en>en"]
    high_scale = calibration.measure_scales(make_passages(high), SERVER, high)["en>en"]
    assert tuple(high_scale) == pytest.approx([0.75 + 0.25 * cosine for cosine in low_scale], abs=1e-3)


def test_a_model_that_tells_nothing_apart_gets_a_scale_that_can_be_stored() -> None:
    constant = WordEmbedder(lowest=1.0)
    scale = calibration.measure_scales(make_passages(constant), SERVER, constant)["en>en"]
    assert tuple(scale) == pytest.approx((0.99, 1.0))


def test_sentences_are_embedded_as_questions() -> None:
    embedder = WordEmbedder()
    passages = make_passages(embedder)
    embedder.received.clear()
    calibration.measure_scales(passages, SERVER, embedder)
    assert {text[:3] for text in embedder.received} == {"q: "}


def test_a_library_without_sentences_costs_no_embedding() -> None:
    embedder = WordEmbedder()
    tables = [replace(passage, text="| Lyon | 39 |") for passage in make_passages(embedder)]
    embedder.received.clear()
    assert calibration.measure_scales(tables, SERVER, embedder) == {}
    assert embedder.received == []


def test_measured_scales_are_stored_with_the_size_of_the_library() -> None:
    embedder = WordEmbedder()
    library = FakeLibrary(make_passages(embedder), 8)
    assert calibration.calibrate(library, SERVER, embedder)
    assert library.saved == [(calibration.measure_scales(library.passages, SERVER, embedder), 8)]


@pytest.mark.parametrize(
    ("library", "embedder"),
    [
        pytest.param(FakeLibrary([], 0), WordEmbedder(), id="empty"),
        pytest.param(FakeLibrary([], None), WordEmbedder(), id="measured-meanwhile"),
        pytest.param(FakeLibrary([], 80), WordEmbedder(), id="nothing-to-read"),
        pytest.param(FakeLibrary([], 80), WordEmbedder(error=errors.ModelUnavailableError()), id="failing-server"),
    ],
)
def test_without_a_measurement_the_scales_stay(library: FakeLibrary, embedder: WordEmbedder) -> None:
    assert not calibration.calibrate(library, SERVER, embedder)
    assert library.saved == []


def test_pairs_that_were_not_measured_get_the_average() -> None:
    scale = models.SimilarityScale
    average = calibration.average_scale({"en>en": scale(0.2, 0.6), "fr>en": scale(0.4, 0.8)})
    assert tuple(average) == pytest.approx((0.3, 0.7))
