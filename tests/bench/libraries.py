"""Makes libraries of very different sizes on one server, quickly and the same ones every time.

A pool of documents is indexed once. Each library consists of copies of some of them, with vectors of its own near a few
topics, so that questions can be on or off its topics.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.local.evaluation import question_sets
from functions.local.evaluation.library import Document, copy_vectors, write_documents
from tests.support import library

Vectors = npt.NDArray[np.float32]

DOCUMENT_CHUNKS = 50
SEPARATOR = "\n\n"
DIMENSIONS = 384
TOPICS = 60
LIBRARY_TOPICS = 6
POOL_DOCUMENTS = 60
CHUNK_WORDS = 130
COMMON_WORDS = "the of and to in is was for that on as with by at from it are this be or an which were not have has"
# The mean cosine between a vector and its topic.
CHUNK_COSINE, QUESTION_COSINE = 0.65, 0.71

_COPY_DOCUMENTS = """
with sources as materialized (
    select d.id as source_id, d.generation as source_generation, gen_random_uuid() as id,
        nextval(pg_get_serial_sequence('rag.generations', 'id')) as generation
    from unnest(%(sources)s::uuid[]) as s (id) join rag.documents d using (id)
), chunks as materialized (
    select nextval('rag.chunk_ids') as id, o.generation, o.source_id
    from (
        select s.generation, c.id as source_id
        from sources s join rag.chunks c on c.generation = s.source_generation order by s.generation, c.chunk_index
    ) o
), copied_documents as (
    insert into rag.documents (id, owner_id, file_name, file_type, size_bytes, object_path, status, page_count,
        chunk_count, lang, generation, embedding_server_id)
    select s.id, %(owner)s, s.id || '.txt', d.file_type, d.size_bytes, s.id, d.status, d.page_count,
        d.chunk_count, d.lang, s.generation, d.embedding_server_id
    from sources s join rag.documents d on d.id = s.source_id
), copied_generations as (
    insert into rag.generations (id, owner_id, document_id) overriding system value
    select generation, %(owner)s, id from sources
), copied_chunks as (
    insert into rag.chunks (id, generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset, text,
        search_prefix, search_text, lang, token_count)
    select n.id, n.generation, %(owner)s, c.chunk_index, c.page_start, c.page_end, c.start_offset, c.end_offset, c.text,
        c.search_prefix, c.search_text, c.lang, c.token_count
    from chunks n join rag.chunks c on c.id = n.source_id order by 1
), copied_terms as (
    insert into rag.chunk_terms (chunk_id, generation, owner_id, lang, terms)
    select n.id, n.generation, %(owner)s, t.lang, t.terms
    from chunks n join rag.chunk_terms t on t.chunk_id = n.source_id order by 1
), copied_frequencies as (
    insert into rag.generation_terms (generation, bucket, first_chunk_id, owner_id, terms)
    select s.generation, t.bucket, t.first_chunk_id, %(owner)s, t.terms
    from sources s join rag.generation_terms t on t.generation = s.source_generation order by 1, 2
)
select id, generation from chunks order by id
"""


def make_document(name: str, texts: Sequence[str], vectors: Iterable[Vectors]) -> Document:
    """Makes a document of one page whose chunks are these texts, with a vector each."""
    chunks, start = [], 0
    for index, text in enumerate(texts):
        end = start + len(text)
        chunks.append(models.Chunk(index, 1, 1, start, end, text, text, None, "en", len(text.split())))
        start = end + len(SEPARATOR)
    passage = question_sets.Passage(name, None, SEPARATOR.join(texts))
    return Document(passage, chunks, list(vectors))


def scatter(centres: Vectors, cosine: float, random: np.random.Generator) -> Vectors:
    """Draws a unit vector near each centre, at this cosine on average."""
    noise = random.standard_normal(centres.shape).astype(np.float32)
    return normalize(cosine * centres + (1 - cosine**2) ** 0.5 * normalize(noise))


def normalize(rows: npt.NDArray[Any]) -> Vectors:
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


@dataclass(frozen=True, slots=True)
class Library:
    """The library of `user`; row i of `vectors`, rounded as it is stored, belongs to chunk `first_id` + i."""

    user: models.User
    topics: tuple[int, ...]
    first_id: int
    vectors: Vectors

    @property
    def chunk_count(self) -> int:
        return len(self.vectors)


class Libraries:
    """Makes libraries in a migrated database; the words of their texts follow Zipf's law."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._random = np.random.default_rng(1)
        self.server = library.add_server(database, "libraries", DIMENSIONS)
        self.topics = normalize(self._random.standard_normal((TOPICS, DIMENSIONS)))
        self.by_name: dict[str, Library] = {}
        self._common_words = COMMON_WORDS.split()
        letters = "bcdfglmnprstvz"
        stems = [f"{a}{b}{c}" for a in letters for b in "aeiou" for c in letters]
        self._words = [*self._common_words, *(f"{a}{b}{stem}" for a in "brst" for b in "aeiou" for stem in stems)]
        self._pool = self._write_pool()

    def add(self, sizes: Mapping[str, int]) -> None:
        """Adds a library of that many chunks for each name, rounded up to whole documents."""
        for name, size in sizes.items():
            self.by_name[name] = self._add_library(-(-size // DOCUMENT_CHUNKS))
        with self._database.autocommit() as connection:
            connection.execute("vacuum analyze")

    def ask(self, name: str, count: int, *, off_topic: bool = False) -> Iterator[tuple[str, Vectors]]:
        """Draws questions as text and unit vector, near the passages of a library or far from all of them."""
        own = self.by_name[name].topics
        others = [topic for topic in range(TOPICS) if topic not in own]
        for _ in range(count):
            topic = self._random.choice(others if off_topic else own)
            (vector,) = scatter(self.topics[[topic]], QUESTION_COSINE, self._random)
            words = [word for word in self._draw(50) if word not in self._common_words]
            yield " ".join(["what", "is", "the", *words[:5]]), vector

    def _draw(self, count: int) -> list[str]:
        """Draws words by Zipf's law; the most frequent ones are stop words."""
        ranks = self._random.zipf(1.15, size=count * 4) - 1
        return [self._words[rank] for rank in ranks if rank < len(self._words)][:count]

    def _write_pool(self) -> list[str]:
        texts = [" ".join(self._draw(CHUNK_WORDS)) for _ in range(POOL_DOCUMENTS * DOCUMENT_CHUNKS)]
        vectors = scatter(np.repeat(self.topics, len(texts) // TOPICS, axis=0), CHUNK_COSINE, self._random)
        documents = [
            make_document(str(row), texts[row : row + DOCUMENT_CHUNKS], vectors[row : row + DOCUMENT_CHUNKS])
            for row in range(0, len(texts), DOCUMENT_CHUNKS)
        ]
        owner = models.User.named(str(uuid.uuid4()))
        return write_documents(self._database, owner, self.server, documents)

    def _add_library(self, documents: int) -> Library:
        user = models.User.named(str(uuid.uuid4()))
        topics = tuple(int(t) for t in self._random.choice(TOPICS, LIBRARY_TOPICS, replace=False))
        near = self.topics[self._random.choice(topics, documents * DOCUMENT_CHUNKS)]
        vectors = scatter(near, CHUNK_COSINE, self._random).astype(np.float16).astype(np.float32)
        sources = self._random.choice(self._pool, documents).tolist()
        with self._database.autocommit() as connection, connection.transaction(), connection.cursor() as cursor:
            rows = cursor.execute(_COPY_DOCUMENTS, {"owner": user.id, "sources": sources}).fetchall()
            keys = ((row["id"], row["generation"]) for row in rows)
            copied = ((*key, vector) for key, vector in zip(keys, vectors, strict=True))
            copy_vectors(cursor, user, self.server, copied)
        return Library(user, topics, rows[0]["id"], vectors)
