"""The fusion in SQL equals weighted reciprocal rank fusion as written down in Python, for any passages and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings, strategies

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.core.retrieval.retriever import QueryVector
from functions.core.settings import Settings
from tests.support.library import index_document, make_query

WORDS = ("luther", "treaty", "river", "harbour", "boiler")
TEXTS = strategies.lists(
    strategies.lists(strategies.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12
)
# Of half precision exactly, and with equal cosines among them.
VECTORS = strategies.sampled_from([(1, 0, 0, 0), (0, 1, 0, 0), (0.6015625, 0.798828125, 0, 0), (-1, 0, 0, 0)])
WEIGHTS = strategies.sampled_from([0.0, 0.5, 1.0, 3.0])


@dataclass(frozen=True)
class Ranks:
    """Places in the three rankings, from 1; None where a ranking lacks the passage."""

    lexical: int | None
    dense: int | None
    blend: int


def fuse(ranks: Ranks, weights: Settings, server_weight: float) -> float:
    lexical = weights.fts_weight / (weights.rrf_k + ranks.lexical) if ranks.lexical else 0
    dense = weights.vector_weight * server_weight / (weights.rrf_k + ranks.dense) if ranks.dense else 0
    return lexical + dense + weights.blend_weight / (weights.rrf_k + ranks.blend)


def rank(values: dict[int, float | None]) -> dict[int, int]:
    """Passage → place, the highest value first, and of equal ones the first passage."""
    known = {passage: value for passage, value in values.items() if value is not None}
    ordered = sorted(known, key=lambda passage: (-known[passage], passage))
    return {passage: place for place, passage in enumerate(ordered, 1)}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(strategies.data(), TEXTS, WEIGHTS, WEIGHTS, WEIGHTS, strategies.integers(1, 60))
def test_hits_are_fused_as_the_formula_says(
    db: Database,
    database: str,
    server: models.EmbeddingServer,
    data: strategies.DataObject,
    texts: list[str],
    fts_weight: float,
    vector_weight: float,
    blend_weight: float,
    rrf_k: int,
) -> None:
    """RET-4"""
    user = models.User.named(str(uuid4()))
    vectors: list[Any] = data.draw(strategies.lists(VECTORS, min_size=len(texts), max_size=len(texts)))
    index_document(db, database, texts, server=server, user=user, vectors=vectors)
    weights = Settings(fts_weight=fts_weight, vector_weight=vector_weight, blend_weight=blend_weight, rrf_k=rrf_k)
    query = make_query("luther river", [QueryVector(server.id, (1.0, 0.0, 0.0, 0.0), 0.5)], settings=weights)
    hits = search.hybrid_search(db, user, query).hits
    found = {hit.chunk_index: hit for hit in hits}
    assert sorted(found) == list(range(len(texts)))  # the dense arm finds each of them

    lexical = rank(
        {n: hit.fts_score if {"luther", "river"} & set(texts[n].split()) else None for n, hit in found.items()}
    )
    dense = rank({n: vectors[n][0] for n in found})
    blend = rank({n: hit.blend_score for n, hit in found.items()})
    assert {n: hit.fts_rank for n, hit in found.items()} == {n: lexical.get(n) for n in found}
    assert {n: hit.vector_rank for n, hit in found.items()} == dense
    scores = {n: fuse(Ranks(lexical.get(n), dense[n], blend[n]), weights, 0.5) for n in found}
    assert all(abs(found[n].score - score) < 1e-5 for n, score in scores.items())
    assert [hit.chunk_index for hit in hits] == sorted(scores, key=lambda n: (-round(found[n].score, 9), n))
