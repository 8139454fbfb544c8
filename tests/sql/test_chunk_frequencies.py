"""RET-2: a search counts exactly in how many chunks of its scope a term occurs, however the counts are stored."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg
import pytest

from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.local.evaluation import library
from tests.bench.libraries import make_document
from tests.support.library import ADA, BOB

WORDS = [f"word{n}" for n in range(60)]


def write(
    db: Database, server: models.EmbeddingServer, sizes: Sequence[int], user: models.User = ADA
) -> list[list[set[str]]]:
    """Indexes documents of so many chunks of random words; returns the words of each chunk of each document."""
    rng = random.Random(str(sizes))
    texts = [[" ".join(rng.choices(WORDS, k=rng.randrange(1, 40))) for _ in range(size)] for size in sizes]
    index(db, server, texts, user)
    return [[set(text.split()) for text in found] for found in texts]


def index(db: Database, server: models.EmbeddingServer, texts: Sequence[Sequence[str]], user: models.User) -> None:
    vector = np.eye(1, server.dimensions, dtype=np.float32)
    documents = [make_document(f"{n}", found, vector.repeat(len(found), 0)) for n, found in enumerate(texts)]
    library.write_documents(db, user, server, documents)


def count(dsn: str, words: Sequence[str], generations: Sequence[int] | None = None) -> dict[str, int]:
    """The words that occur, with their counts, in these generations or in all of Ada's."""
    with psycopg.connect(dsn) as connection:
        if generations is None:
            generations = read_generations(connection)
        terms: dict[str, str] = dict(
            connection.execute("select rag.term_id(w)::text, w from unnest(%s::text[]) as w", (list(words),)).fetchall()
        )
        found: Any = connection.execute(
            "select rag.chunk_frequencies(%s::int[], %s)", (list(map(int, terms)), list(generations))
        ).fetchone()
    return {terms[term]: frequency for term, frequency in (found[0] or {}).items()}


def read_generations(connection: psycopg.Connection) -> list[int]:
    rows = connection.execute("select id from rag.generations where owner_id = %s order by id", (ADA.id,)).fetchall()
    return [row[0] for row in rows]


def tally(documents: Sequence[Sequence[set[str]]], words: Sequence[str] = WORDS) -> dict[str, int]:
    counts = Counter(word for chunks in documents for chunk in chunks for word in chunk)
    return {word: counts[word] for word in words if counts[word]}


@pytest.mark.parametrize(
    "sizes", [[1], [7], [8], [1, 7, 8, 40], [1, 2, 7, 8, 30] * 6], ids=["one", "seven", "eight", "few", "many"]
)
def test_every_count_is_exact(db: Database, database: str, server: models.EmbeddingServer, sizes: list[int]) -> None:
    documents = write(db, server, sizes)
    write(db, server, [3, 9], BOB)
    assert count(database, WORDS) == tally(documents)


@pytest.mark.parametrize("size", [1, 40])
def test_only_the_given_generations_count(
    db: Database, database: str, server: models.EmbeddingServer, size: int
) -> None:
    documents = write(db, server, [size] * 25)
    with psycopg.connect(database) as connection:
        generations = read_generations(connection)
    for scope in (slice(0, 2), slice(1, 24)):
        assert count(database, WORDS, generations[scope]) == tally(documents[scope])


def test_nothing_is_counted_for_terms_that_do_not_occur(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    write(db, server, [1, 8])
    assert count(database, ["absent"]) == count(database, []) == {}


@pytest.mark.parametrize("size", [1, 8])
def test_users_count_only_their_own_documents(
    db: Database, database: str, server: models.EmbeddingServer, size: int
) -> None:
    """SEC-2"""
    write(db, server, [size] * 25)
    statement = "select rag.chunk_frequencies(array[rag.term_id('word1')], %s::bigint[]) as found"
    with psycopg.connect(database) as connection:
        generations = read_generations(connection)
    found = []
    for user, scope in ((ADA, generations), (BOB, generations), (BOB, generations[:2])):
        with db.as_user(user) as asking:
            found += [row["found"] is not None for row in asking.execute(statement, (scope,)).fetchall()]
    assert found == [True, False, False]


def test_a_batch_with_more_terms_than_a_row_may_have_is_counted(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """A sparse vector has at most 16,000 elements, and a row of the table at most a page."""
    words = [f"number{n}" for n in range(20_000)]
    texts = [" ".join(["word0", *words[n::2]]) for n in range(2)]
    index(db, server, [texts], ADA)
    assert count(database, ["word0", words[0], words[-1]]) == {"word0": 2, words[0]: 1, words[-1]: 1}
