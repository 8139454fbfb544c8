"""Libraries of very different sizes from real passages: recombined sentences, vectors clustered around real ones."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.libraries import CHUNKS_OF_A_DOCUMENT, scatter
from tests.bench.peers import datasets

# The shares of the three tenants that are asked; many small ones share the rest.
SHARES = (0.30, 0.05, 0.01)
SMALL_SHARE = 0.002
CHUNKS_OF_A_TOPIC = 20
WORDS_OF_A_CHUNK = 150
COSINE_TO_TOPIC = 0.8
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\d])")


@dataclass(frozen=True, slots=True)
class Topic:
    """A passage of a question set, its vector, and the questions (by number) that it answers."""

    text: str
    vector: Any
    questions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant; `own` holds the numbers of the questions that its topics answer."""

    owner: str
    share: float
    own: tuple[int, ...]


def make_units(topics: Sequence[Topic], count: int, seed: int) -> tuple[list[datasets.Unit], Any, list[Tenant]]:
    """`count` units with their vectors (count, 384), and the tenants of SHARES.

    Documents of all tenants are interleaved, as when libraries grow side by side; units of a document are contiguous.
    """
    draw = random.Random(seed)
    sizes = [round(share * count) for share in SHARES]
    small = max(1, round(SMALL_SHARE * count))
    sizes += [small] * ((count - sum(sizes)) // small)
    sizes[-1] += count - sum(sizes)
    tenants, documents = [], []
    for number, size in enumerate(sizes):
        owner = str(uuid.UUID(int=draw.getrandbits(128), version=4))
        chosen = draw.sample(topics, min(len(topics), max(3, size // CHUNKS_OF_A_TOPIC)))
        if number < len(SHARES):
            own = sorted({question for topic in chosen for question in topic.questions})
            tenants.append(Tenant(owner, SHARES[number], tuple(own)))
        rows = [(owner, topic, text) for topic, text in _make_texts(chosen, size, draw)]
        documents += [rows[start : start + CHUNKS_OF_A_DOCUMENT] for start in range(0, size, CHUNKS_OF_A_DOCUMENT)]
    draw.shuffle(documents)
    rows = [row for document in documents for row in document]
    units = [datasets.Unit(str(number), text, owner) for number, (owner, _, text) in enumerate(rows)]
    centres = np.stack([topic.vector for _, topic, _ in rows])
    return units, scatter(centres, COSINE_TO_TOPIC, np.random.default_rng(seed)), tenants


def choose_questions(tenant: Tenant, question_count: int, count: int, seed: int) -> list[int]:
    """Half of the questions are about the tenant's topics, half about any."""
    draw = random.Random(f"{seed} {tenant.owner}")
    own = draw.choices(tenant.own, k=count // 2) if tenant.own else []
    chosen = own + draw.choices(range(question_count), k=count - len(own))
    draw.shuffle(chosen)
    return chosen


def _make_texts(topics: Sequence[Topic], count: int, draw: random.Random) -> Iterator[tuple[Topic, str]]:
    """Topics with a text of about WORDS_OF_A_CHUNK words each: their own sentences, then others, no two texts equal."""
    pools = [[s for s in _SENTENCE.split(" ".join(topic.text.split())) if s] for topic in topics]
    seen: set[str] = set()
    while len(seen) < count:
        number = draw.randrange(len(topics))
        wanted = draw.randint(WORDS_OF_A_CHUNK // 2, WORDS_OF_A_CHUNK * 3 // 2)
        text = _join_sentences(pools, number, wanted, draw)
        if text not in seen:
            seen.add(text)
            yield topics[number], text


def _join_sentences(pools: Sequence[Sequence[str]], number: int, wanted: int, draw: random.Random) -> str:
    """At least `wanted` words, beginning with sentences of the pool `number`."""
    words, chosen, pool = 0, [], pools[number]
    while True:
        for sentence in draw.sample(pool, len(pool)):
            chosen.append(sentence)
            words += len(sentence.split())
            if words >= wanted:
                return " ".join(chosen)
        pool = draw.choice(pools)
