"""RET-2: in large scopes words are searched in posting lists, which find exactly what reading every passage finds."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg
import pytest

from functions.adapters.postgres import search as search_library
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.local.evaluation import library
from tests.bench.libraries import make_document
from tests.support.library import ADA, BOB, make_query, translate_everything, write_posting_lists

WORDS = [f"word{n}" for n in range(200)]
SEEDS = range(4)
LARGE = 20  # passages of a library that is large in these tests
_BOTH = """
with scope as materialized (select * from rag.search_scope(null, null, null, %(filters)s)),
queries as materialized (
    select array_agg(q.query) as queries
    from scope, rag.lexical_queries(array[%(text)s], array['en'], generations, chunk_count) q
), every as (
    select m.* from scope, queries, rag.lexical_matches(queries, generations, %(count)s) with ordinality m
), listed as (
    select m.* from scope, queries, rag.posting_matches(queries, generations, %(count)s) with ordinality m
)
select (select jsonb_agg(e order by e.ordinality) from every e),
    (select jsonb_agg(l order by l.ordinality) from listed l)
"""


_FREQUENCIES = """
select rag.chunk_frequencies(t.terms, s.generations), rag.posting_frequencies(t.terms, s.generations)
from rag.search_scope(null, null, null, '{}') s,
    (select array_agg(rag.term_id(w)) as terms from unnest(%s::text[]) as w) t
"""


def write(
    db: Database, server: models.EmbeddingServer, seed: int, documents: int = 12, user: models.User = ADA
) -> list[str]:
    """Indexes documents of random words, some in every second passage and most of them rare; returns their ids."""
    rng = random.Random(seed)
    weights = [1 / (place + 1) for place in range(len(WORDS))]
    vector = np.eye(1, server.dimensions, dtype=np.float32)
    made = []
    for name in range(documents):
        texts = [" ".join(rng.choices(WORDS, weights, k=rng.randrange(1, 40))) for _ in range(rng.randrange(1, 30))]
        made.append(make_document(f"{seed}-{name}", texts, vector.repeat(len(texts), 0)))
    return library.write_documents(db, user, server, made)


def renew(dsn: str, segment_chunks: int = 60) -> list[int]:
    """Writes segments until nothing is left to do; returns their sizes."""
    return write_posting_lists(dsn, LARGE, segment_chunks)


def search(dsn: str, text: str, count: int = 10, filters: str = "{}") -> tuple[list[Any], list[Any]]:
    """What reading every passage and the posting lists find, as Ada."""
    with psycopg.connect(dsn) as connection:
        act_as(connection, ADA)
        row = connection.execute(_BOTH, {"text": text, "count": count, "filters": filters}).fetchone()
    assert row is not None
    return row[0], row[1]


def count_terms(dsn: str) -> tuple[Any, Any]:
    """In how many passages of Ada's library each word is, by the counts of batches and by posting lists."""
    with psycopg.connect(dsn) as connection:
        act_as(connection, ADA)
        row = connection.execute(_FREQUENCIES, (WORDS,)).fetchone()
    assert row is not None
    return row[0], row[1]


def act_as(connection: psycopg.Connection[Any], user: models.User) -> None:
    connection.execute(
        "select set_config('role', 'authenticated', true), set_config('request.jwt.claims', %s, true)",
        (json.dumps({"sub": user.id, "role": "authenticated"}),),
    )


def delete(db: Database, documents: Sequence[str]) -> None:
    with db.as_user(ADA) as connection:
        for document in documents:
            connection.execute("select rag.delete_document(%s)", (document,))


def assert_same(dsn: str, seed: int, **scope: Any) -> None:
    """Asserts that both ways find the same passages with the same scores, for questions of 1 to 8 words."""
    found = [search(dsn, question, **scope) for question in draw_questions(seed)]
    assert [listed for _, listed in found] == [every for every, _ in found]
    assert any(listed for _, listed in found)


def _read_one(connection: psycopg.Connection[Any], statement: Any, parameters: Sequence[Any]) -> Any:
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None
    return row[0]


def draw_questions(seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.sample(WORDS, k=rng.randrange(1, 9))) for _ in range(12)]


@pytest.mark.parametrize("seed", SEEDS)
def test_posting_lists_find_what_reading_every_passage_finds(
    db: Database, database: str, server: models.EmbeddingServer, seed: int
) -> None:
    """RET-2: passages in several segments, in none, and deleted ones that are still in a segment."""
    documents = write(db, server, seed)
    assert renew(database)
    write(db, server, seed + 100, documents=3)
    delete(db, documents[:2])
    assert_same(database, seed, count=1 + seed * 7)
    every, listed = count_terms(database)
    assert listed == every


def test_no_match_is_lost_where_more_passages_have_the_rarest_word_than_there_are_candidates(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-2: what has too little of the rarer words is dropped before the commonest one is read."""
    rng = random.Random(21)
    shares = {"badger": 0.25, "harbour": 0.3, "lantern": 0.35, "meadow": 0.4, "orchard": 0.8}
    texts = [
        " ".join(word for word, share in shares.items() if rng.random() < share for _ in range(rng.randrange(1, 4)))
        + " kettle" * rng.randrange(1, 9)
        for _ in range(1500)
    ]
    vector = np.eye(1, server.dimensions, dtype=np.float32).repeat(len(texts), 0)
    library.write_documents(db, ADA, server, [make_document("all.txt", texts, vector)])
    assert renew(database) == [1500]
    found = [search(database, " ".join(shares), count=count) for count in (3, 5, 6)]
    assert [listed for _, listed in found] == [every for every, _ in found]


def test_a_part_of_a_library_is_searched_like_the_whole(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-2, RET-10"""
    documents = write(db, server, 7)
    assert renew(database)
    with db.as_worker() as connection:
        connection.execute("update rag.documents set file_type = 'pdf' where id = any (%s::uuid[])", (documents[:7],))
    assert_same(database, 8, filters='{"file_type": "pdf"}')


def test_each_passage_is_searched_with_the_words_of_its_language(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-2"""
    write(db, server, 9)
    with db.as_worker() as connection:
        connection.execute("update rag.chunk_terms set lang = (array['en', 'fr', 'simple'])[1 + chunk_id % 3]")
    assert renew(database)
    assert_same(database, 10)


@pytest.mark.parametrize("is_written_again", [False, True])
def test_translations_are_searched_whether_they_came_before_the_lists_or_after(
    db: Database, database: str, server: models.EmbeddingServer, is_written_again: bool
) -> None:
    """RET-2, LANG-2: a question finds the translations by their words, and counts a term of both forms once."""
    write(db, server, 9)
    assert renew(database)
    translate_everything(db, "word1 word40 traduction")
    if is_written_again:
        assert renew(database)
    assert_same(database, 10)
    every, listed = search(database, "traduction word40", count=1000)
    assert listed == every
    assert min(found["chunk_id"] for found in listed) < 0
    assert count_terms(database)[0] == count_terms(database)[1]


def test_passages_with_equal_scores_come_in_the_order_of_their_ids(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-2: nothing shows then that the others come later, so every passage is read."""
    vector = np.eye(1, server.dimensions, dtype=np.float32).repeat(600, 0)
    library.write_documents(db, ADA, server, [make_document("same.txt", ["the same word"] * 600, vector)])
    assert renew(database) == [600]
    every, listed = search(database, "which word", count=5)
    assert listed == every
    assert len(listed) == 5


def test_a_search_of_a_large_library_reads_posting_lists(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-2: the hits and their scores are those of the search before there were any."""
    write(db, server, 11)
    query = make_query("word3 word40 word120")
    before = search_library.hybrid_search(db, ADA, query).hits
    assert renew(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update rag.chunk_terms set generation = -1")  # only a scan looks for the generation
    assert search_library.hybrid_search(db, ADA, query).hits == before


def test_only_large_libraries_get_posting_lists(db: Database, database: str, server: models.EmbeddingServer) -> None:
    """RET-2"""
    write(db, server, 12)
    write(db, server, 13, documents=1, user=BOB)
    assert renew(database)
    with psycopg.connect(database) as connection:
        rows = connection.execute("select distinct owner_id::text from rag.posting_lists").fetchall()
    assert rows == [(ADA.id,)]


def test_nothing_stays_of_a_deleted_document_once_its_segment_is_written_again(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LIB-8"""
    documents = write(db, server, 14)
    renew(database, segment_chunks=1000)
    delete(db, documents[:1])
    renew(database, segment_chunks=1000)
    with psycopg.connect(database) as connection:
        stray = connection.execute(
            "select count(*) from rag.posting_lists p cross join unnest(p.postings) as l (posting)"
            " where not exists (select from rag.chunk_terms t where t.chunk_id = l.posting >> 15)"
        ).fetchone()
    assert stray == (0,)
    assert_same(database, 15)


def test_a_forgotten_user_has_no_posting_lists(db: Database, database: str, server: models.EmbeddingServer) -> None:
    """LIB-8"""
    write(db, server, 16)
    assert renew(database)
    with db.as_worker() as connection:
        connection.execute("select rag.forget_user(%s, 1000)", (ADA.id,))
        rows = connection.execute("select from rag.posting_lists union all select from rag.segments").fetchall()
    assert rows == []


def test_the_schedule_writes_the_lists_of_all_large_libraries(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-2"""
    renew(database)
    with psycopg.connect(database) as connection:
        row = _read_one(connection, "select pg_get_functiondef('rag.renew_segments'::regproc)", ())
        connection.execute(row.replace("DEFAULT 20000", "DEFAULT 1"))
    for user in (ADA, BOB):
        write(db, server, 17, user=user)
    assert len(search_library.renew_segments(db)) == 2
    assert search_library.renew_segments(db) == []
