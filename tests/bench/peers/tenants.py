"""Makes libraries of very different sizes from real passages, with recombined sentences and vectors near real ones."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.libraries import DOCUMENT_CHUNKS, scatter
from tests.bench.peers import datasets

# The shares of the three tenants that are asked; many small tenants have the rest.
SHARES = (0.30, 0.05, 0.01)
SMALL_SHARE = 0.002
TOPIC_CHUNKS = 20
CHUNK_WORDS = 150
COSINE_TO_TOPIC = 0.8
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\d])")


@dataclass(frozen=True, slots=True)
class Topic:
    """A passage of a question set, its vector, and the numbers of the questions that it answers."""

    text: str
    vector: Any
    questions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tenant:
    """An owner of units; `own` are the numbers of the questions that its topics answer."""

    owner: str
    share: float
    own: tuple[int, ...]


def make_units(topics: Sequence[Topic], count: int, seed: int) -> tuple[list[datasets.Unit], Any, list[Tenant]]:
    """Makes `count` units with their vectors (count, 384), and the tenants of SHARES.

    The documents of all tenants are shuffled, as in libraries that grow at the same time. The units of a document stay
    together.
    """
    draw = random.Random(seed)
    sizes = [round(share * count) for share in SHARES]
    small = max(1, round(SMALL_SHARE * count))
    sizes += [small] * ((count - sum(sizes)) // small)
    sizes[-1] += count - sum(sizes)
    tenants, documents = [], []
    for number, size in enumerate(sizes):
        owner = str(uuid.UUID(int=draw.getrandbits(128), version=4))
        chosen = draw.sample(topics, min(len(topics), max(3, size // TOPIC_CHUNKS)))
        if number < len(SHARES):
            own = sorted({question for topic in chosen for question in topic.questions})
            tenants.append(Tenant(owner, SHARES[number], tuple(own)))
        rows = [(owner, topic, text) for topic, text in _make_texts(chosen, size, draw)]
        documents += [rows[start : start + DOCUMENT_CHUNKS] for start in range(0, size, DOCUMENT_CHUNKS)]
    draw.shuffle(documents)
    rows = [row for document in documents for row in document]
    units = [datasets.Unit(str(number), text, owner) for number, (owner, _, text) in enumerate(rows)]
    centres = np.stack([topic.vector for _, topic, _ in rows])
    return units, scatter(centres, COSINE_TO_TOPIC, np.random.default_rng(seed)), tenants


def choose_questions(tenant: Tenant, question_count: int, count: int, seed: int) -> list[int]:
    """Draws questions, half of them about the tenant's topics and half about any."""
    draw = random.Random(f"{seed} {tenant.owner}")
    own = draw.choices(tenant.own, k=count // 2) if tenant.own else []
    chosen = own + draw.choices(range(question_count), k=count - len(own))
    draw.shuffle(chosen)
    return chosen


def _make_texts(topics: Sequence[Topic], count: int, draw: random.Random) -> Iterator[tuple[Topic, str]]:
    """Yields distinct texts of about CHUNK_WORDS words with their topic: its sentences first, then those of others."""
    pools = [[s for s in _SENTENCE.split(" ".join(topic.text.split())) if s] for topic in topics]
    seen: set[str] = set()
    while len(seen) < count:
        number = draw.randrange(len(topics))
        wanted = draw.randint(CHUNK_WORDS // 2, CHUNK_WORDS * 3 // 2)
        text = _join_sentences(pools, number, wanted, draw)
        if text not in seen:
            seen.add(text)
            yield topics[number], text


def _join_sentences(pools: Sequence[Sequence[str]], number: int, wanted: int, draw: random.Random) -> str:
    """Joins sentences to at least `wanted` words, beginning with those of the pool `number`."""
    words, chosen, pool = 0, [], pools[number]
    while True:
        for sentence in draw.sample(pool, len(pool)):
            chosen.append(sentence)
            words += len(sentence.split())
            if words >= wanted:
                return " ".join(chosen)
        pool = draw.choice(pools)
