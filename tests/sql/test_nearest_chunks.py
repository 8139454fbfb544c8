from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
import pytest

from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.embedding import vector_indexes
from functions.core import models
from functions.local.evaluation import library
from tests.bench.libraries import make_document
from tests.support.database import Clusters
from tests.support.library import ADA, BOB, add_server

LARGE, SMALL = 11_000, 300
DIMENSIONS = 16
PLAN_STATES = ("auto", "force_custom_plan", "force_generic_plan")


def make_vectors(count: int, seed: int) -> npt.NDArray[np.float32]:
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)


def make_neighbours(count: int, seed: int) -> npt.NDArray[np.float32]:
    """Vectors on one side of the space, but not in a corner: there the graph of some builds has a dead end."""
    rows = make_vectors(count, seed) + np.eye(1, DIMENSIONS)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)


def make_far(count: int, seed: int) -> npt.NDArray[np.float32]:
    """Vectors on the other side of the space."""
    rows = make_vectors(count, seed)
    rows[:, 0] = -np.abs(rows[:, 0])
    return rows


CAROL = models.User("00000000-0000-4000-8000-00000000000c", False, {})
VECTORS = {
    ADA.id: make_vectors(LARGE, 1),
    BOB.id: make_vectors(SMALL, 2),
    CAROL.id: make_neighbours(LARGE, 3),
}
EXACT = "rag.chunk_vectors_generation"


@pytest.fixture(scope="module")
def large(clusters: Clusters, postgres_major: int) -> Iterator[str]:
    """The DSN of a database where Ada and Carol have large libraries (over 10,000 here), and Bob a small one."""
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    with closing(Database(dsn)) as store, psycopg.connect(dsn) as connection:
        server = add_server(store, "sixteen", DIMENSIONS)
        row = connection.execute("select pg_get_functiondef('rag.prefers_vector_index'::regproc)").fetchone()
        assert row is not None
        connection.execute(row[0].replace("50000", "10000"))
        for owner, vectors in VECTORS.items():
            document = make_document("one.txt", [""] * len(vectors), vectors)
            library.write_documents(store, models.User.named(owner), server, [document])
        connection.execute("analyze rag.chunk_vectors")
    yield dsn
    cluster.drop(dsn)


@pytest.fixture(scope="module")
def indexed(large: str) -> Iterator[str]:
    """Builds the index that the large libraries need, in the database of `large`; yields its name."""
    with closing(Database(large)) as store:
        (name,) = vector_indexes.build_vector_indexes(store)
    yield f"rag.{name}"
    with psycopg.connect(large) as connection:
        connection.execute(f"drop index rag.{name}")


@pytest.fixture
def session(large: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(large, autocommit=True) as connection:
        yield connection


def find_nearest(
    connection: psycopg.Connection[Any], user: models.User, query: npt.NDArray[np.float32], count: int = 50
) -> tuple[list[int], dict[str, int]]:
    """The chunk indices found, nearest first, and how often each index of the table was scanned."""
    with connection.transaction():
        connection.execute(
            "select set_config('role', 'authenticated', true), set_config('request.jwt.claims', %s, true)",
            (json.dumps({"sub": user.id, "role": "authenticated"}),),
        )
        rows = connection.execute(
            "select (select c.chunk_index from rag.chunks c where c.id = n.chunk_id)"
            " from rag.search_scope(null, null, null, '{}') s,"
            " rag.nearest_chunks((select id from rag.embedding_servers where name = 'sixteen'),"
            " %s::text::extensions.halfvec, s.generations, s.chunk_count, %s) n order by n.distance, 1",
            (str(query.tolist()), count),
        ).fetchall()
        connection.execute("reset role")
        scans = connection.execute(
            "select coalesce(i.indexrelid::regclass::text, 'none'), pg_stat_get_xact_numscans(r.oid)"
            " from (select 'rag.chunk_vectors'::regclass::oid as oid union all"
            " select indexrelid from pg_index where indrelid = 'rag.chunk_vectors'::regclass) r"
            " left join pg_index i on i.indexrelid = r.oid where pg_stat_get_xact_numscans(r.oid) > 0"
        ).fetchall()
    return [row[0] for row in rows], dict(scans)


def recall(user: models.User, query: npt.NDArray[np.float32], found: list[int], count: int = 20) -> float:
    exact = np.argsort(-(VECTORS[user.id] @ query), kind="stable")[:count]
    return len(set(exact.tolist()) & set(found)) / count


def ask(
    session: psycopg.Connection[Any], user: models.User, queries: npt.NDArray[np.float32]
) -> tuple[set[tuple[str, ...]], list[float]]:
    """The indexes that served the queries, and the recall of each among the first 20."""
    answers = [find_nearest(session, user, query) for query in queries]
    return (
        {tuple(scans) for _, scans in answers},
        [recall(user, query, found[:20]) for query, (found, _) in zip(queries, answers, strict=True)],
    )


def test_without_an_index_a_large_scope_is_searched_exactly(session: psycopg.Connection[Any]) -> None:
    """RET-3"""
    assert ask(session, ADA, make_vectors(3, 5)) == ({(EXACT,)}, [1.0] * 3)


def test_an_index_is_built_when_a_library_is_large_enough(large: str, indexed: str) -> None:
    """RET-3"""
    with closing(Database(large)) as store:
        assert vector_indexes.build_vector_indexes(store) == []


@pytest.mark.parametrize("plan_state", PLAN_STATES)
def test_a_large_scope_uses_the_index_in_every_plan_state(
    session: psycopg.Connection[Any], indexed: str, plan_state: str
) -> None:
    """RET-3: the first calls of a session, the twelfth, and after ANALYZE."""
    session.execute(f"set plan_cache_mode = {plan_state}")
    first = ask(session, ADA, make_far(12, 6))
    session.execute("analyze rag.chunk_vectors")
    later = ask(session, ADA, make_far(8, 7))
    assert first[0] | later[0] == {(indexed,)}
    assert np.mean(first[1] + later[1]) >= 0.97


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("plan_state", PLAN_STATES)
def test_a_small_scope_is_exact_beside_a_large_one(session: psycopg.Connection[Any], plan_state: str) -> None:
    """RET-3: fill rate and recall are 1 whatever other users have."""
    session.execute(f"set plan_cache_mode = {plan_state}")
    assert ask(session, BOB, make_vectors(12, 8)) == ({(EXACT,)}, [1.0] * 12)


@pytest.mark.parametrize("plan_state", PLAN_STATES)
def test_an_index_that_finds_mostly_other_users_chunks_is_not_trusted(
    session: psycopg.Connection[Any], indexed: str, plan_state: str
) -> None:
    """RET-3: the nearest chunks in the index are Carol's, and Ada's nearest chunks are far away."""
    session.execute(f"set plan_cache_mode = {plan_state}")
    used, recalls = ask(session, ADA, make_neighbours(12, 10))
    assert ({name for names in used for name in names}, recalls) == ({indexed, EXACT}, [1.0] * 12)


@pytest.mark.usefixtures("indexed")
def test_a_large_scope_returns_as_many_rows_as_asked_for(session: psycopg.Connection[Any]) -> None:
    """RET-3"""
    found, _ = find_nearest(session, ADA, make_vectors(1, 9)[0], count=200)
    assert len(set(found)) == 200
