"""A server full of libraries of very different sizes, as a service has them: made fast, and the same for every seed.

A pool of documents is indexed once through `rag.index_chunks`. Each library is copies of some of them, with vectors of
its own: around a few of the pool's topics, so that questions can be asked on and off its subjects.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from functions.adapters.postgres.connection import Database
from functions.core import models
from tests import library

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

DIMENSIONS = 384
TOPICS = 60
TOPICS_OF_A_LIBRARY = 6
CHUNKS_OF_A_DOCUMENT = 50
POOL_DOCUMENTS = 60
WORDS_OF_A_CHUNK = 130
COMMON_WORDS = "the of and to in is was for that on as with by at from it are this be or an which were not have has"

_COPY_DOCUMENTS = """
with made as (
    insert into rag.documents (id, owner_id, file_name, file_type, size_bytes, object_path, status, page_count,
        chunk_count, lang, generation, embedding_server_id)
    select d.id, %(owner)s, d.id || '.txt', 'txt', 1, d.id::text, 'indexed', 1, %(chunks)s, 'en', d.generation,
        %(server)s
    from unnest(%(ids)s::uuid[], %(generations)s::bigint[]) as d (id, generation)
    returning id, generation
)
insert into rag.generations (id, owner_id, document_id) overriding system value
select generation, %(owner)s, id from made
"""
_COPY_CHUNKS = """
insert into rag.chunks (id, generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset, text,
    search_text, lang, token_count)
select n.first_id + c.chunk_index, n.generation, %(owner)s, c.chunk_index, 1, 1, c.start_offset, c.end_offset, c.text,
    c.search_text, c.lang, c.token_count
from unnest(%(sources)s::bigint[], %(generations)s::bigint[], %(first_ids)s::bigint[])
    as n (source, generation, first_id)
join rag.chunks c on c.generation = n.source order by 1
"""
_COPY_TERMS = """
insert into rag.chunk_terms (chunk_id, generation, owner_id, lang, terms)
select n.first_id + c.chunk_index, n.generation, %(owner)s, t.lang, t.terms
from unnest(%(sources)s::bigint[], %(generations)s::bigint[], %(first_ids)s::bigint[])
    as n (source, generation, first_id)
join rag.chunks c on c.generation = n.source join rag.chunk_terms t on t.chunk_id = c.id order by 1
"""
_COPY_FREQUENCIES = """
insert into rag.generation_terms (generation, owner_id, term, chunk_frequency)
select n.generation, %(owner)s, t.term, t.chunk_frequency
from unnest(%(sources)s::bigint[], %(generations)s::bigint[]) as n (source, generation)
join rag.generation_terms t on t.generation = n.source order by 1, 3
"""


@dataclass(frozen=True, slots=True)
class Tenant:
    """The owner of a library about `topics`; row i of `vectors`, as it is stored, belongs to chunk `first_id` + i."""

    user: models.User
    topics: tuple[int, ...]
    first_id: int
    vectors: Vectors

    @property
    def chunk_count(self) -> int:
        return len(self.vectors)


class Crowd:
    """Makes libraries in a migrated database; `dsn` is its owner's."""

    def __init__(self, database: Database, dsn: str, seed: int = 1) -> None:
        import numpy as np

        self._dsn = dsn
        self._random = np.random.default_rng(seed)
        self.server = library.add_server(database, "crowd", DIMENSIONS)
        self.topics = _normalize(self._random.normal(size=(TOPICS, DIMENSIONS)))
        self.tenants: dict[str, Tenant] = {}
        self._words = [*COMMON_WORDS.split(), *(f"{a}{b}{c}" for a in "brst" for b in "aeiou" for c in self._stems())]
        with psycopg.connect(dsn, autocommit=True) as connection:
            self._pool = self._index_pool(connection)  # generations that all others are copied from

    def add(self, sizes: Mapping[str, int]) -> None:
        """A library for each name, of that many chunks (rounded up to whole documents)."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("set row_security = off")
            connection.execute("set search_path = public, extensions")
            for name, size in sizes.items():
                self.tenants[name] = self._add_library(connection, size)
            connection.execute("vacuum analyze")

    def ask(self, name: str, count: int, *, off_topic: bool = False) -> Iterator[tuple[str, Vectors]]:
        """Questions as words and unit vector, near the passages of a library or far from all of them."""
        tenant = self.tenants[name]
        others = [topic for topic in range(TOPICS) if topic not in tenant.topics]
        for _ in range(count):
            topic = self._random.choice(others if off_topic else tenant.topics)
            vector = _normalize(self.topics[[topic]] + self._random.normal(size=(1, DIMENSIONS)) * 0.05)[0]
            yield " ".join(["what", "is", "the", *self._draw_content(5)]), vector

    def _stems(self) -> list[str]:
        letters = "bcdfglmnprstvz"
        return [f"{a}{b}{c}" for a in letters for b in "aeiou" for c in letters]

    def _draw(self, count: int) -> list[str]:
        """Words by Zipf's law, the commonest being stop words."""
        ranks = self._random.zipf(1.15, size=count * 4) - 1
        return [self._words[rank] for rank in ranks if rank < len(self._words)][:count]

    def _draw_content(self, count: int) -> list[str]:
        """Words that are no stop words."""
        return [word for word in self._draw(count * 10) if word not in COMMON_WORDS.split()][:count]

    def _index_pool(self, connection: psycopg.Connection[Any]) -> list[int]:
        owner = str(uuid.uuid4())
        generations = [self._next(connection, "rag.generations_id_seq", 1)[0] for _ in range(POOL_DOCUMENTS)]
        rows = []
        for generation in generations:
            first = self._next(connection, "rag.chunk_ids", CHUNKS_OF_A_DOCUMENT)[0]
            for index in range(CHUNKS_OF_A_DOCUMENT):
                text = " ".join(self._draw(WORDS_OF_A_CHUNK))
                rows.append((first + index, generation, owner, index, 1, 1, 0, len(text), text, text, "en", 200))
        columns = (
            "id, generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset, text, search_text,"
            " lang, token_count"
        )
        with connection.cursor() as cursor:
            with cursor.copy(f"copy rag.chunks ({columns}) from stdin") as copy:
                for row in rows:
                    copy.write_row(row)
            cursor.execute("select rag.index_chunks(%s)", ([row[0] for row in rows],))
        return generations

    def _next(self, connection: psycopg.Connection[Any], sequence: str, count: int) -> list[int]:
        """That many ids in a row."""
        query = "select setval(%s::regclass, nextval(%s::regclass) + %s - 1)"
        row = connection.execute(query, (sequence, sequence, count)).fetchone()
        assert row is not None
        return list(range(row[0] - count + 1, row[0] + 1))

    def _add_library(self, connection: psycopg.Connection[Any], size: int) -> Tenant:
        user = models.User(str(uuid.uuid4()), False, {})
        count = -(-size // CHUNKS_OF_A_DOCUMENT)
        chosen = tuple(int(t) for t in self._random.choice(TOPICS, TOPICS_OF_A_LIBRARY, replace=False))
        first = self._next(connection, "rag.chunk_ids", count * CHUNKS_OF_A_DOCUMENT)
        values = {
            "owner": user.id,
            "server": self.server.id,
            "chunks": CHUNKS_OF_A_DOCUMENT,
            "ids": [str(uuid.uuid4()) for _ in range(count)],
            "generations": self._next(connection, "rag.generations_id_seq", count),
            "sources": self._random.choice(self._pool, count).tolist(),
            "first_ids": first[::CHUNKS_OF_A_DOCUMENT],
        }
        for query in (_COPY_DOCUMENTS, _COPY_CHUNKS, _COPY_TERMS, _COPY_FREQUENCIES):
            connection.execute(query, values)
        near = self.topics[self._random.choice(chosen, len(first))]
        vectors = _normalize(near + self._random.normal(size=near.shape) * 0.06)
        self._copy_vectors(connection, user, values["generations"], first, vectors)
        return Tenant(user, chosen, first[0], vectors.astype("float16").astype("float32"))

    def _copy_vectors(
        self,
        connection: psycopg.Connection[Any],
        user: models.User,
        generations: Sequence[int],
        chunk_ids: Sequence[int],
        vectors: Vectors,
    ) -> None:
        from pgvector import HalfVector
        from pgvector.psycopg import register_vector

        register_vector(connection)
        target = "rag.chunk_vectors (chunk_id, generation, owner_id, server_id, embedding)"
        with connection.cursor() as cursor, cursor.copy(f"copy {target} from stdin (format binary)") as copy:
            copy.set_types(["int8", "int8", "uuid", "uuid", "halfvec"])
            owner, server = uuid.UUID(user.id), uuid.UUID(self.server.id)
            for index, chunk_id in enumerate(chunk_ids):
                generation = generations[index // CHUNKS_OF_A_DOCUMENT]
                copy.write_row((chunk_id, generation, owner, server, HalfVector(vectors[index])))


def _normalize(rows: npt.NDArray[Any]) -> Vectors:
    import numpy as np

    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit
