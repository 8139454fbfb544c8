"""The pure functions of the benchmark against other systems."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from tests.bench.peers import datasets, latency, tenants
from tests.bench.peers.environments import IBID
from tests.bench.peers.ibid_search import list_documents
from tests.bench.peers.quality import list_figures


def make_topics(count: int = 40) -> list[tenants.Topic]:
    return [
        tenants.Topic(" ".join(f"Word{t} number {s} of it." for s in range(30)), np.eye(384, dtype=np.float32)[t], (t,))
        for t in range(count)
    ]


def make_unit(owner: str, passage: str = "p") -> datasets.Unit:
    return datasets.Unit(passage, "text", owner)


def test_a_dataset_is_read_as_it_was_written(tmp_path: Path) -> None:
    vectors = np.eye(2, 384, dtype=np.float32)
    written = datasets.Dataset((make_unit("a"), make_unit("b")), vectors, ("one\u2028line?",), vectors[:1])
    read = datasets.read(datasets.write(tmp_path, written))
    assert (read.units, read.questions) == (written.units, written.questions)
    assert np.array_equal(read.vectors, vectors)
    assert np.array_equal(read.question_vectors, vectors[:1])


def test_tenants_have_their_shares_and_no_two_texts_are_equal() -> None:
    units, vectors, asked = tenants.make_units(make_topics(), 1000, seed=1)
    sizes = Counter(unit.owner for unit in units)
    assert [sizes[tenant.owner] for tenant in asked] == [300, 50, 10]
    assert sum(sizes.values()) == len({(unit.owner, unit.text) for unit in units}) == len(vectors) == 1000
    assert [unit.passage for unit in units] == [str(number) for number in range(1000)]


def test_vectors_lie_around_their_topics() -> None:
    units, vectors, _ = tenants.make_units(make_topics(), 1000, seed=1)
    topics = [int(unit.text.split()[0].removeprefix("Word")) for unit in units]
    cosines = vectors[np.arange(1000), topics]
    assert abs(cosines.mean() - tenants.COSINE_TO_TOPIC) < 0.02
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_half_of_the_questions_are_about_the_tenants_own_topics() -> None:
    tenant = tenants.Tenant("a", 0.01, (3, 4))
    chosen = tenants.choose_questions(tenant, 1_000_000, 50, seed=1)
    assert len(chosen) == 50
    assert sum(number in tenant.own for number in chosen) == 25


def test_a_document_ends_with_its_owner_or_at_its_size() -> None:
    units = [make_unit("a")] * 60 + [make_unit("b")] * 10
    assert list(list_documents(units)) == [(0, 50), (50, 10), (60, 10)]


def test_the_best_peer_is_the_one_with_the_best_mean() -> None:
    found = {
        "one": {IBID: [0.9], "a, whole passages": [0.8], "b, whole passages": [0.1], "a, Ibid's chunks": [0.9]},
        "two": {IBID: [0.7], "a, whole passages": [0.2], "b, whole passages": [0.7], "a, Ibid's chunks": [0.9]},
    }
    rows = [row for row in list_figures(found) if row["figure"].startswith("mean nDCG@10 to")]
    assert [(row["figure"].split(", ", 1)[1], row["baseline"], row["goal"], row["ok"]) for row in rows] == [
        ("a, whole passages", 0.5, 1.08, True),
        ("a, Ibid's chunks", 0.9, None, True),
    ]


def test_the_short_form_has_a_latency_goal_for_small_tenants_only() -> None:
    asked = {(IBID, 0.05): 1.0, (IBID, 0.3): 1.0, ("langchain-postgres", 0.05): 2.0, ("langchain-postgres", 0.3): 2.0}
    results = {key: [latency.Asked(ms, 10, 10)] for key, ms in asked.items()}
    rows = latency.list_figures(results, is_long=False)
    goals = [(row["goal"], row["ok"]) for row in rows if "p50" in row["figure"]]
    assert goals == [(3.0, False), (None, True)]
