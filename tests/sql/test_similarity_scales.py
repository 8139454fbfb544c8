"""Scales of similarity in the database: how they are measured and kept, and what the search does with them."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from functions.adapters.postgres import search
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.core import models
from functions.core.retrieval import retriever
from functions.core.settings import Settings
from tests.support.library import ADA, BOB, index_document, make_query

SCALE = models.SimilarityScale
UNIT = SCALE(0.0, 1.0)


def axis(place: int, server: models.EmbeddingServer) -> tuple[float, ...]:
    return tuple(float(i == place) for i in range(server.dimensions))


def current(db: Database) -> models.EmbeddingServer:
    with db.as_worker() as connection:
        return stored_settings.list_servers(connection)[0]


def test_passages_of_all_owners_are_counted_and_sampled(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-8"""
    index_document(db, database, ["alpha", "beta"], server=server)
    index_document(db, database, ["gamma"], server=server, user=BOB, lang="fr")
    store = JobStore(db)
    found = {(passage.text, passage.lang, passage.vector[0]) for passage in store.sample_passages(server, 50)}
    assert (store.count_passages(server), found) == (
        3,
        {("alpha", "en", 1.0), ("beta", "en", 0.0), ("gamma", "fr", 1.0)},
    )


def test_a_library_that_another_worker_has_measured_meanwhile_is_not_measured_again(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    index_document(db, database, ["alpha"], server=server)
    store = JobStore(db)
    store.save_scales(server, {"en>en": SCALE(0.7, 0.9)}, 40)
    assert (store.count_passages(server), store.count_passages(current(db))) == (None, 1)


def test_passages_of_notes_count(db: Database, database: str, server: models.EmbeddingServer) -> None:
    """LIB-2"""
    with psycopg.connect(database) as connection:
        connection.execute("insert into rag.notes (owner_id, content, chunk_count) values (%s, 'x', 3)", (ADA.id,))
    assert JobStore(db).count_passages(server) == 3


def test_a_sample_has_so_many_passages_of_each_language(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    for lang in ("en", "fr"):
        index_document(db, database, [f"{lang}{n}" for n in range(9)], server=server, lang=lang)
    assert sorted(p.lang for p in JobStore(db).sample_passages(server, 3)) == ["en"] * 3 + ["fr"] * 3


def test_scales_are_stored_once_for_each_size_of_the_library(db: Database, server: models.EmbeddingServer) -> None:
    store = JobStore(db)
    store.save_scales(server, {"en>en": SCALE(0.7, 0.9), "fr>en": SCALE(0.6, 0.8)}, 40)
    store.save_scales(server, {"en>en": SCALE(0.1, 0.2)}, 41)  # by a worker that knew the server before
    stored = current(db)
    assert (stored.scale("en", "en"), stored.scale("fr", "en"), stored.calibrated_passages) == (
        SCALE(0.7, 0.9),
        SCALE(0.6, 0.8),
        40,
    )
    assert tuple(stored.scale("fr", "fr")) == pytest.approx((0.65, 0.85))


@pytest.mark.parametrize(
    ("floor", "ceiling", "similarity"), [(0.0, 1.0, 0.8), (0.7, 0.9, 0.5), (0.9, 1.0, 0.0), (0.1, 0.3, 1.0)]
)
def test_similarities_are_on_the_scale_of_the_passages_language(
    db: Database, database: str, server: models.EmbeddingServer, floor: float, ceiling: float, similarity: float
) -> None:
    """RET-8"""
    vector = tuple(0.8 * a + 0.6 * b for a, b in zip(axis(0, server), axis(1, server), strict=True))
    index_document(db, database, ["bonjour"], server=server, vectors=[axis(0, server)], lang="fr")
    query_vector = retriever.QueryVector(server.id, vector, 1.0, (UNIT, SCALE(floor, ceiling), UNIT))
    (hit,) = search.hybrid_search(db, ADA, make_query("hello", [query_vector])).hits
    assert hit.similarity == pytest.approx(similarity, abs=1e-3)


def test_words_count_less_in_passages_of_another_language(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LANG-4"""
    index_document(db, database, ["Paris Match"], server=server, lang="fr")
    index_document(db, database, ["Paris is large and old and Paris grows"], server=server, lang="en")
    hits = search.hybrid_search(db, ADA, make_query("Paris Match", settings=Settings(foreign_fts_weight=0.0))).hits
    assert [(hit.lang, hit.is_foreign) for hit in hits] == [("en", False), ("fr", True)]
    equal = search.hybrid_search(db, ADA, make_query("Paris Match", settings=Settings(foreign_fts_weight=1.0))).hits
    assert [hit.lang for hit in equal] == ["fr", "en"]


def test_a_translated_question_finds_each_language_by_its_own_words(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LANG-4"""
    index_document(db, database, ["The lease ends in May"], server=server, lang="en")
    index_document(db, database, ["Le bail prend fin en mai"], server=server, lang="fr")
    query = replace(make_query(), versions=(("when does the lease end", "en"), ("quand le bail prend-il fin", "fr")))
    hits = search.hybrid_search(db, ADA, query).hits
    assert {(hit.lang, hit.is_foreign, round(hit.coverage)) for hit in hits} == {("en", False, 1), ("fr", False, 1)}


def test_a_translation_has_its_own_vector(db: Database, database: str, server: models.EmbeddingServer) -> None:
    """LANG-4"""
    vectors = [axis(0, server), axis(1, server)]
    index_document(db, database, ["one", "two"], server=server, vectors=vectors)
    queries = [retriever.QueryVector(server.id, vector, 1.0) for vector in vectors]
    hits = search.hybrid_search(db, ADA, make_query("", queries)).hits
    assert [(hit.text, hit.vector_rank, hit.similarity) for hit in hits] == [("one", 1, 1.0), ("two", 1, 1.0)]
