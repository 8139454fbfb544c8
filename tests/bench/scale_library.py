"""Makes libraries of up to millions of passages, fast: rows are computed here and copied straight into the tables.

The text is that of the passages in the question sets. A document takes its sentences from a few of them, in random
order, so that no two passages are alike and words keep their frequencies and their company. Vectors lie near topics.
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, LiteralString

import numpy as np
import numpy.typing as npt
from psycopg import Cursor

from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.local.evaluation import question_sets
from tests.bench.libraries import CHUNK_COSINE, DIMENSIONS, QUESTION_COSINE, Vectors, normalize, scatter
from tests.support import library

SETS = ("passages/piaf", "passages/scifact", "passages/xquad_en")
DOCUMENT_CHUNKS = 50
BATCH_DOCUMENTS = 40
SOURCES = 10  # passages of the sets from which a document takes its sentences
SENTENCES = 5
TERM_DIMENSIONS = 1 << 28
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LEXEMES = """
select array_agg(x.term order by x.term) as terms, array_agg(x.frequency order by x.term) as frequencies
from unnest(%s::text[]) with ordinality as s (content, place)
left join lateral rag.lexemes(%s, s.content) x on true group by s.place order by s.place
"""
_NEW_IDS = """
select nextval(%s) as id from generate_series(1, %s)
"""

Terms = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    terms: Terms
    frequencies: Terms


@dataclass(slots=True)
class ScaleLibrary:
    """The library of `user`, whose vectors lie near `topics`; row i of `vectors` belongs to chunk `chunk_ids[i]`."""

    user: models.User
    topics: Vectors
    chunk_ids: list[int]
    vectors: list[npt.NDArray[np.float16]]


class ScaleLibraries:
    """Makes libraries in a migrated database, the same ones every time."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._random = np.random.default_rng(1)
        self.server = library.add_server(database, "scale", DIMENSIONS)
        sets = [question_sets.read_set(name) for name in SETS]
        self.questions = [(question.text, question.lang) for each in sets for question in each.questions]
        self._random.shuffle(self.questions)
        self._passages = [(name == SETS[0], self._read_passages(each)) for name, each in zip(SETS, sets, strict=True)]

    def make(self, topic_count: int) -> ScaleLibrary:
        """An empty library of a new user."""
        topics = normalize(self._random.standard_normal((topic_count, DIMENSIONS)))
        return ScaleLibrary(models.User.named(str(uuid.uuid4())), topics, [], [])

    def grow(self, grown: ScaleLibrary, chunk_count: int, *, keeps_vectors: bool = True) -> None:
        """Adds documents of 50 passages until the library has `chunk_count` passages."""
        while (missing := chunk_count - len(grown.chunk_ids)) > 0:
            documents = [self._make_document() for _ in range(min(BATCH_DOCUMENTS, -(-missing // DOCUMENT_CHUNKS)))]
            near = grown.topics[self._random.integers(0, len(grown.topics), len(documents) * DOCUMENT_CHUNKS)]
            vectors = scatter(near, CHUNK_COSINE, self._random).astype(np.float16)
            grown.chunk_ids += self._copy(grown.user, documents, vectors)
            if keeps_vectors:
                grown.vectors.append(vectors)

    def ask(self, asked: ScaleLibrary, count: int) -> Iterator[tuple[str, str, Vectors]]:
        """Questions of the sets with their language, each with a vector near a topic of the library."""
        for place in range(count):
            text, lang = self.questions[place % len(self.questions)]
            (vector,) = scatter(
                asked.topics[self._random.integers(0, len(asked.topics), 1)], QUESTION_COSINE, self._random
            )
            yield text, lang, vector

    def _read_passages(self, questions: question_sets.QuestionSet) -> list[list[Sentence]]:
        """The sentences of each passage with their terms, as rag.lexemes finds them."""
        lang = "fr" if questions.name == "piaf" else "en"
        split = [_SENTENCE_END.split(passage.text) for passage in questions.passages]
        texts = [sentence for sentences in split for sentence in sentences]
        with self.database.autocommit() as connection:
            rows = connection.execute(_LEXEMES, (texts, lang)).fetchall()
        known = iter(
            Sentence(
                text,
                np.array([term for term in row["terms"] if term is not None], np.int32),
                np.array([count for count in row["frequencies"] if count is not None], np.int32),
            )
            for text, row in zip(texts, rows, strict=True)
        )
        return [[next(known) for _ in sentences] for sentences in split]

    def _make_document(self) -> tuple[str, list[list[Sentence]]]:
        is_french, passages = self._passages[self._random.choice(len(self._passages), p=(0.25, 0.65, 0.1))]
        start = int(self._random.integers(0, max(1, len(passages) - SOURCES)))
        pool = [sentence for passage in passages[start : start + SOURCES] for sentence in passage]
        drawn = self._random.integers(0, len(pool), (DOCUMENT_CHUNKS, SENTENCES))
        return "fr" if is_french else "en", [[pool[place] for place in row] for row in drawn]

    def _copy(
        self, user: models.User, documents: Sequence[tuple[str, list[list[Sentence]]]], vectors: npt.NDArray[np.float16]
    ) -> list[int]:
        with self.database.autocommit() as connection, connection.transaction(), connection.cursor() as cursor:
            generations = _take_ids(cursor, "rag.generations_id_seq", len(documents))
            ids = _take_ids(cursor, "rag.chunk_ids", len(vectors))
            owner = uuid.UUID(user.id)
            copy = partial(_copy_rows, cursor)
            rows = list(zip(generations, documents, [uuid.uuid4() for _ in documents], strict=True))
            copy(
                "documents (id, owner_id, file_name, file_type, size_bytes, object_path, status, page_count,"
                " chunk_count, lang, generation, embedding_server_id)",
                ((id_, owner, f"{id_}.txt", "txt", 1, str(id_), "indexed", 1, DOCUMENT_CHUNKS, lang, generation,
                  self.server.id) for generation, (lang, _), id_ in rows),
            )  # fmt: skip
            copy("generations (id, owner_id, document_id)", ((row[0], owner, row[2]) for row in rows))
            chunks = [
                (id_, generation, owner, lang, sentences, index)
                for (generation, (lang, passages), _), batch in zip(rows, _batches(ids), strict=True)
                for index, (id_, sentences) in enumerate(zip(batch, passages, strict=True))
            ]
            copy(
                "chunks (id, generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset, text,"
                " search_prefix, lang, token_count)",
                ((id_, generation, owner, index, 1, 1, 0, 1, " ".join(s.text for s in sentences), "", lang, 130)
                 for id_, generation, owner, lang, sentences, index in chunks),
            )  # fmt: skip
            copy(
                "chunk_vectors (chunk_id, generation, owner_id, server_id, embedding)",
                ((chunk[0], chunk[1], owner, uuid.UUID(self.server.id), _pack_halfvec(vector))
                 for chunk, vector in zip(chunks, vectors, strict=True)),
                _write_vector,
            )  # fmt: skip
            counted = [_count_terms(chunk[4]) for chunk in chunks]
            copy(
                "chunk_terms (chunk_id, generation, owner_id, lang, terms)",
                ((chunk[0], chunk[1], owner, chunk[3], _pack_sparsevec(terms, _weigh(counts)))
                 for chunk, (terms, counts) in zip(chunks, counted, strict=True)),
                _write_vector,
            )  # fmt: skip
            copy(
                "generation_terms (generation, bucket, first_chunk_id, owner_id, terms)",
                ((row[0], bucket, batch[0], owner, counts)
                 for row, batch, each in zip(rows, _batches(ids), _batches(counted), strict=True)
                 for bucket, counts in _count_passages([terms for terms, _ in each])),
                _write_vector,
            )  # fmt: skip
        return ids


def _batches(rows: Sequence[Any]) -> list[Sequence[Any]]:
    return [rows[start : start + DOCUMENT_CHUNKS] for start in range(0, len(rows), DOCUMENT_CHUNKS)]


def _take_ids(cursor: Cursor[Any], sequence: str, count: int) -> list[int]:
    return [int(row["id"]) for row in cursor.execute(_NEW_IDS, (sequence, count)).fetchall()]


def _count_terms(sentences: Sequence[Sentence]) -> tuple[Terms, Terms]:
    terms, places = np.unique(np.concatenate([s.terms for s in sentences]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([s.frequencies for s in sentences]), len(terms))
    return terms.astype(np.int32), counts.astype(np.int32)


def _weigh(counts: Terms) -> npt.NDArray[np.float32]:
    """The weights of rag.index_chunks."""
    weights: npt.NDArray[np.float32] = np.round(1.9 * counts / (counts + 0.9 * (0.4 + 0.006 * counts.sum())), 4).astype(
        np.float32
    )
    return weights


def _count_passages(passages: Sequence[Terms]) -> Iterator[tuple[np.int16, bytes]]:
    """In how many passages each term is, in the buckets of rag.generation_terms."""
    terms, counts = np.unique(np.concatenate(passages), return_counts=True)
    buckets = 1 + ((terms - 1) >> 24)
    for bucket in np.unique(buckets):
        chosen = buckets == bucket
        yield np.int16(bucket), _pack_sparsevec(terms[chosen], counts[chosen].astype(np.float32))


def _pack_sparsevec(terms: Terms, values: npt.NDArray[np.float32]) -> bytes:
    """The binary format of pgvector, which counts dimensions from 0."""
    head = struct.pack("!iii", TERM_DIMENSIONS, len(terms), 0)
    return head + (terms - 1).astype(">i4").tobytes() + values.astype(">f4").tobytes()


def _pack_halfvec(vector: npt.NDArray[np.float16]) -> bytes:
    return struct.pack("!hh", len(vector), 0) + vector.astype(">f2").tobytes()


def _write_vector(row: Sequence[Any]) -> bytes:
    """A row of a binary COPY: integers of eight bytes, smallint of numpy, uuids, text, and a packed vector last."""
    fields = [_write_field(field) for field in row]
    return struct.pack("!h", len(fields)) + b"".join(struct.pack("!i", len(field)) + field for field in fields)


def _write_field(field: Any) -> bytes:
    if isinstance(field, bytes):
        return field
    if isinstance(field, uuid.UUID):
        return field.bytes
    if isinstance(field, str):
        return field.encode()
    return struct.pack("!h" if isinstance(field, np.int16) else "!q", field)


def _copy_rows(
    cursor: Cursor[Any],
    target: LiteralString,
    rows: Iterable[Sequence[Any]],
    write: Callable[[Sequence[Any]], bytes] | None = None,
) -> None:
    with cursor.copy(f"copy rag.{target} from stdin{' (format binary)' if write else ''}") as copy:
        if write is None:
            for row in rows:
                copy.write_row(row)
            return
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for row in rows:
            copy.write(write(row))
        copy.write(b"\xff\xff")
