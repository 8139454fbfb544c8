"""Settings at their limits: with every allowed value, documents are indexed and questions answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.local_server import Person, problem_of

TEXT = "The boiler burns wood chips in winter. " * 40 + "\n\n# Chimney\n\nThe chimney is forty metres tall.\n"


def defaults(person: Person) -> dict[str, Any]:
    return {row["key"]: row["default"] for row in person.get("/settings/schema")["settings"]}


@pytest.fixture
def tuner(admin: Person) -> Iterator[Person]:
    """An administrator; all settings are restored afterwards."""
    yield admin
    assert admin.http.patch("/api/rag/settings", json=defaults(admin)).status_code == 200


@pytest.mark.parametrize("bound", ["minimum", "maximum"])
def test_the_service_works_with_every_setting_at_its_bound(tuner: Person, bound: str) -> None:
    """SET-3"""
    chosen = {row["key"]: row[bound] for row in tuner.get("/settings/schema")["settings"] if bound in row}
    assert tuner.http.patch("/api/rag/settings", json=chosen).status_code == 200
    document = tuner.follow(tuner.add_bytes("boiler.md", TEXT.encode())["id"])
    assert (document["status"], document["error"]) == ("indexed", None)
    assert tuner.get("/search", q="How tall is the chimney?")["hits"][0]["document_id"] == document["id"]
    # The words of the first question stand in the document, and some of the second do not.
    question = "How tall is the chimney?" if bound == "minimum" else "Who painted the chimney of the town hall green?"
    assert tuner.ask(question)["status"] == ("complete" if bound == "minimum" else "guarded")


@pytest.mark.parametrize(
    "chosen",
    [{"chunk_tokens": 64, "chunk_overlap": 400}, {"fts_weight": 0, "vector_weight": 0, "blend_weight": 0}],
    ids=["overlap-above-size", "no-weight"],
)
def test_contradictory_settings_do_no_harm(tuner: Person, chosen: dict[str, Any]) -> None:
    """SET-3"""
    assert tuner.http.patch("/api/rag/settings", json=chosen).status_code == 200
    document = tuner.follow(tuner.add_bytes("boiler.md", TEXT.encode())["id"])
    assert (document["status"], document["error"]) == ("indexed", None)
    assert tuner.http.get("/api/rag/search", params={"q": "chimney"}).status_code == 200


def test_match_count_limits_a_search_that_sets_no_limit(tuner: Person) -> None:
    """SET-3"""
    text = "".join(f"# Chimney {n}\n\nThis chimney is {n} metres tall.\n\n" for n in range(12))
    tuner.follow(tuner.add_bytes("chimneys.md", text.encode())["id"])
    tuner.http.patch("/api/rag/settings", json={"match_count": 5})
    assert len(tuner.get("/search", q="How tall is the chimney?")["hits"]) == 5
    assert len(tuner.get("/search", q="How tall is the chimney?", limit=11)["hits"]) == 11


def test_a_document_with_too_many_pages_fails_with_that_code(tuner: Person) -> None:
    """LIB-4"""
    tuner.http.patch("/api/rag/settings", json={"max_pages": 1})
    document = tuner.follow(tuner.add_bytes("long.txt", (TEXT * 30).encode())["id"])
    assert (document["status"], document["error_code"]) == ("failed", "too_many_pages")


@pytest.mark.parametrize(
    "changes",
    [{"rrf_k": 0}, {"rrf_k": 201}, {"rrf_k": 1.5}, {"rrf_k": True}, {"rrf_k": None}, {"blend_alpha": 1.01}, {"x": 1}],
    ids=["below", "above", "fraction", "boolean", "null", "share", "unknown"],
)
def test_a_value_out_of_bounds_changes_nothing(admin: Person, changes: dict[str, Any]) -> None:
    """SET-3"""
    answer = admin.http.patch("/api/rag/settings", json={"context_turns": 7} | changes)
    assert problem_of(answer) == (400, "invalid_settings")
    assert [fault["key"] for fault in answer.json()["faults"]] == list(changes)
    assert admin.get("/settings") == defaults(admin)
