"""Measures the scale of an embedding server's similarities in a library, without questions whose answers are known.

The floor is what only one unrelated pair in twenty exceeds: neutral sentences against the library's passages. Of a
model that keeps related texts far from unrelated ones it is higher: part of the way to what three sentences in four
reach with the passage that contains them. The ceiling is what only one of these sentences in four exceeds.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from functions.core import errors, models
from functions.core.ingestion import embedding, self_retrieval
from functions.core.retrieval.neutral_sentences import read_neutral_sentences

if TYPE_CHECKING:  # numpy costs 100 ms at import and most handlers never touch a vector
    from functions.core.ports import Embedder, Matrix

SAMPLE_PASSAGES = 400
"""With two sentences of each, the ceiling varies by a fiftieth of the scale's width from sample to sample."""
MIN_PASSAGES = 5
"""Fewer passages of a language say less about it than a scale that is already known."""
ENOUGH_PASSAGES = 100
"""From here on a measurement is better than the scale that a server comes with."""
SENTENCES = 2
"""So many of each passage are compared with it."""
MIN_SENTENCES = 5
"""From few passages, more sentences of each, so that there are so many in all."""
GROWTH = 2
"""The scales are measured again when the library has this many times the passages, or this fraction of them."""
UNRELATED_SHARE = 0.95
RELATED_SHARE = 0.75
WEAKLY_RELATED_SHARE = 0.25
FLOOR_POSITION = 0.42
"""The least floor, from the median of unrelated pairs (0) to weakly related ones (1).

At this value the floors of multilingual-e5-small are still its unrelated pairs', and that of all-MiniLM-L6-v2 is high
enough to refuse questions whose subject is only near those of the library.
"""
MIN_WIDTH = 0.01
"""A ceiling at least this far above the floor, for a model that tells nothing apart."""


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage of the library with its vector as it is stored."""

    text: str
    lang: str
    vector: Sequence[float]


class Library(Protocol):
    """What an installation holds from an embedding server."""

    def count_passages(self, server: models.EmbeddingServer) -> int | None:
        """How many passages the whole installation has from this server; None if the scales have changed meanwhile."""
        ...

    def sample_passages(self, server: models.EmbeddingServer, count: int) -> Sequence[StoredPassage]:
        """Up to `count` passages of each language from this server, spread over the installation."""
        ...

    def save_scales(
        self, server: models.EmbeddingServer, scales: Mapping[str, models.SimilarityScale], passages: int
    ) -> None:
        """Stores the scales measured in a library of so many passages, unless another worker has done so meanwhile."""
        ...


def needs_calibration(server: models.EmbeddingServer, passage_count: int) -> bool:
    """Whether a library of so many passages differs much from the one in which the scales were measured.

    A server of unknown scale is measured with its first passage, because without a scale nothing would be refused.
    """
    known = server.calibrated_passages
    if known is None:
        return passage_count >= (ENOUGH_PASSAGES if _has_scale(server) else 1)
    if passage_count < min(known, MIN_PASSAGES):
        return False
    return passage_count >= GROWTH * known or passage_count * GROWTH <= known


def calibrate(library: Library, server: models.EmbeddingServer, embedder: Embedder) -> bool:
    """Measures and stores the scales if they are due, and says whether it did; a server that fails keeps its scales."""
    passage_count = library.count_passages(server)
    if passage_count is None or not needs_calibration(server, passage_count):
        return False
    try:
        scales = measure_scales(library.sample_passages(server, SAMPLE_PASSAGES), server, embedder)
    except errors.IbidError as exc:
        _log.warning("the scale of similarities could not be measured: %s", exc.message)
        return False
    if scales:
        library.save_scales(server, scales, passage_count)
    return bool(scales)


def measure_scales(
    passages: Sequence[StoredPassage], server: models.EmbeddingServer, embedder: Embedder
) -> dict[str, models.SimilarityScale]:
    """The scales by pair of languages ("fr>en"), for questions in English and French and the passages' languages.

    The width of a scale depends on the language of the passages, because the sentences are theirs. Raises what the
    embedder raises.
    """
    import numpy as np

    counts = Counter(passage.lang for passage in passages)
    least = min(MIN_PASSAGES, max(counts.values(), default=0))
    vectors, related = {}, {}
    for lang in sorted(lang for lang, count in counts.items() if count >= least):
        stored = [passage for passage in passages if passage.lang == lang]
        rows = np.array([passage.vector for passage in stored], np.float32)
        cosines = _compare_with_own_sentences(stored, rows, server, embedder)
        if len(cosines) >= least:
            vectors[lang], related[lang] = rows, cosines
    # A library of tables has no sentences, and the neutral ones would be embedded after each of its documents.
    unrelated = _embed_neutral_sentences(server, embedder) if related else {}
    scales: dict[str, models.SimilarityScale] = {}
    for lang, cosines in related.items():
        compared = {asked: rows @ vectors[lang].T for asked, rows in unrelated.items()}
        floors = {asked: float(np.quantile(found, UNRELATED_SHARE)) for asked, found in compared.items()}
        width = max(MIN_WIDTH, float(np.quantile(cosines, RELATED_SHARE)) - floors.get(lang, min(floors.values())))
        for asked, floor in floors.items():
            # The sentences say how related texts of one language are, not of two.
            least_floor = _find_least_floor(compared[asked], cosines) if asked == lang else floor
            ceiling = min(floor + width, 1.0)
            raised = min(max(floor, least_floor), ceiling - MIN_WIDTH)
            scales[f"{asked}>{lang}"] = models.SimilarityScale(round(raised, 4), round(ceiling, 4))
    return scales


def average_scale(scales: Mapping[str, models.SimilarityScale]) -> models.SimilarityScale:
    """The mean of scales, for the pairs of languages that were not measured."""
    floors, ceilings = zip(*scales.values(), strict=True)
    return models.SimilarityScale(sum(floors) / len(floors), sum(ceilings) / len(ceilings))


def _embed_neutral_sentences(server: models.EmbeddingServer, embedder: Embedder) -> dict[str, Matrix]:
    sentences = read_neutral_sentences()
    return {
        lang: _embed(embedder, [server.query_prefix + getattr(sentence, lang) for sentence in sentences])
        for lang in ("en", "fr")
    }


def _has_scale(server: models.EmbeddingServer) -> bool:
    return bool(server.similarity_scales) or (server.similarity_floor, server.similarity_ceiling) != (0.0, 1.0)


def _find_least_floor(unrelated: Matrix, related: Sequence[float]) -> float:
    import numpy as np

    middle, weakly_related = float(np.median(unrelated)), float(np.quantile(related, WEAKLY_RELATED_SHARE))
    return middle + FLOOR_POSITION * (weakly_related - middle)


def _compare_with_own_sentences(
    passages: Sequence[StoredPassage], vectors: Matrix, server: models.EmbeddingServer, embedder: Embedder
) -> list[float]:
    """The cosine of sentences of each passage, as questions, with that passage."""
    count = max(SENTENCES, -(-MIN_SENTENCES // len(passages)))
    chosen = [
        (row, sentence) for row, passage in enumerate(passages) for sentence in _choose_sentences(passage, row, count)
    ]
    if not chosen:
        return []
    rows = _embed(embedder, [server.query_prefix + sentence for _, sentence in chosen])
    return [float(vector @ vectors[row]) for (row, _), vector in zip(chosen, rows, strict=True)]


def _choose_sentences(passage: StoredPassage, seed: int, count: int) -> list[str]:
    """Up to `count` sentences of five to forty words, not always from the first, which often repeats the title."""
    sample = self_retrieval.Sample(1, 0, len(passage.text), passage.text)
    found = [each.text for each in self_retrieval.choose_sentences([sample]) if len(each.text.split()) <= 40]
    return [found[(seed + place) % len(found)] for place in range(min(count, len(found)))]


def _embed(embedder: Embedder, texts: list[str]) -> Matrix:
    return embedding.check_vectors(embedder.embed(texts), len(texts), embedder.dimensions)
