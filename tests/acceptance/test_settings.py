"""Settings at and beyond their limits, their description, and the audit of their changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from threading import Barrier
from typing import Any

import pytest

from functions.core.settings import Settings
from tests.support.local_server import Json, LocalServer, Person, problem_of

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


# Every setting, at and beyond its edge

WRONG_TYPES: dict[str, list[Any]] = {
    "integer": [None, True, "7", "", [], {}, 7.0, 7.5, 10**30, -(10**30)],
    "number": [None, False, "0.5", "", [], {}, 10**30, -1e300],
    "boolean": [None, 0, 1, "true", "", [], {}],
    "string": [None, True, 7, 0.5, [], {}, "a\x00b", "a\ud800b"],
}


def edges_of(row: Json) -> list[Any]:
    """The outermost values that a setting accepts."""
    if row["type"] == "boolean":
        return [False, True]
    if "choices" in row:
        return [choice["value"] for choice in row["choices"]]
    return ["", "é" * row["max_length"]] if row["type"] == "string" else [row["minimum"], row["maximum"]]


def values_beyond(row: Json) -> list[Any]:
    """The nearest values that it refuses."""
    if row["type"] == "boolean":
        return []
    if "choices" in row:
        return [choice["value"].upper() for choice in row["choices"]] + ["", row["choices"][0]["value"] + " "]
    if row["type"] == "string":
        return ["é" * (row["max_length"] + 1)]
    step = 1 if row["type"] == "integer" else 1e-9
    return [row["minimum"] - step, row["maximum"] + step]


@pytest.mark.parametrize("key", sorted(asdict(Settings())))
def test_a_setting_takes_its_edges_and_refuses_what_lies_beyond(tuner: Person, key: str) -> None:
    """SET-3"""
    row = next(row for row in tuner.get("/settings/schema")["settings"] if row["key"] == key)
    for value in edges_of(row):
        changed = tuner.http.patch("/api/rag/settings", json={key: value})
        assert (changed.status_code, changed.json()[key], tuner.get("/settings")[key]) == (200, value, value)
    before = tuner.get("/settings")
    for value in values_beyond(row) + WRONG_TYPES[row["type"]]:
        body = json.dumps({key: value, "context_turns": 9 if key != "context_turns" else value})
        answer = tuner.http.patch("/api/rag/settings", content=body, headers={"Content-Type": "application/json"})
        assert (problem_of(answer), value) == ((400, "invalid_settings"), value)
        assert [fault["key"] for fault in answer.json()["faults"]] == [key]
    assert tuner.get("/settings") == before


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_refused(admin: Person, text: str) -> None:
    """SET-3"""
    headers = {"Content-Type": "application/json"}
    answer = admin.http.patch("/api/rag/settings", content=f'{{"fts_weight": {text}}}', headers=headers)
    assert problem_of(answer) == (400, "invalid_settings")


@pytest.mark.parametrize("key", ["", "RRF_K", "rrf_k ", "rrfK", "x" * 10_000, "a\x00b", "__class__"])
def test_an_unknown_key_is_refused_by_its_name(admin: Person, key: str) -> None:
    """SET-3"""
    answer = admin.http.patch("/api/rag/settings", json={key: 1})
    assert problem_of(answer) == (400, "invalid_settings")
    assert answer.json()["faults"] == [{"key": key.replace("\x00", "\ufffd"), "message": "There is no such setting."}]


@pytest.mark.parametrize("content", ["[]", "7", '"rrf_k"', "null", "", "{"])
def test_a_body_that_is_no_object_is_refused(admin: Person, content: str) -> None:
    """SET-3"""
    headers = {"Content-Type": "application/json"}
    answer = admin.http.patch("/api/rag/settings", content=content, headers=headers)
    assert problem_of(answer) == (400, "invalid_input")


# The schema and the audit


def test_the_schema_is_in_the_language_that_is_asked_for(admin: Person) -> None:
    """SET-5"""
    french = admin.get("/settings/schema", lang="fr")
    assert (french["lang"], french["groups"][1]) == ("fr", {"key": "search", "label": "Recherche"})
    profile = next(row for row in french["settings"] if row["key"] == "prompt_profile")
    assert profile["choices"][0] == {"value": "auto", "label": "Automatique"}
    assert problem_of(admin.http.get("/api/rag/settings/schema", params={"lang": "de"})) == (400, "invalid_input")


def test_simultaneous_changes_lose_nothing_and_the_audit_names_both(tuner: Person, server: LocalServer) -> None:
    """SET-3, SET-4"""
    with server.person("Hedy", admin=True) as other:
        start = Barrier(2)

        def change(person: Person, own: str, first: int) -> None:
            for value in range(first, first + 20, 2):
                start.wait()
                body = {own: value, "rrf_k": value}
                assert person.http.patch("/api/rag/settings", json=body).json()[own] == value

        with ThreadPoolExecutor(2) as pool:
            done = [pool.submit(change, tuner, "arm_count", 20), pool.submit(change, other, "max_pages", 21)]
        assert [one.result() for one in done] == [None, None]
        settings = tuner.get("/settings")
        assert (settings["arm_count"], settings["max_pages"]) == (38, 39)
        both = {tuner.id, other.id}
        changes = [item for item in read_audit(tuner) if item["changed_by"] in both]
    for key, by in (("arm_count", {tuner.id}), ("max_pages", {other.id}), ("rrf_k", both)):
        found = [item for item in changes if item["key"] == key]
        assert {item["changed_by"] for item in found} == by
        assert [item["old_value"] for item in found[:-1]] == [item["new_value"] for item in found[1:]]
        assert found[0]["new_value"] == settings[key]


def read_audit(person: Person) -> list[Json]:
    """All changes, newest first, read in pages of seven."""
    items: list[Json] = []
    cursor: Json = {}
    while True:
        page = person.get("/settings/audit", limit=7, **cursor)
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        cursor = {"cursor": page["next_cursor"]}


def test_the_audit_says_who_changed_what_from_which_value_to_which(tuner: Person) -> None:
    """SET-4"""
    for value in ("Ask the librarian.", "Ask me."):
        tuner.http.patch("/api/rag/settings", json={"guard_message": value})
    newest = tuner.get("/settings/audit", limit=1)["items"][0]
    assert datetime.fromisoformat(newest.pop("changed_at")) <= datetime.now(UTC)
    assert newest.pop("id")
    assert newest == {
        "key": "guard_message",
        "old_value": "Ask the librarian.",
        "new_value": "Ask me.",
        "changed_by": tuner.id,
    }


def test_only_administrators_read_the_audit(ada: Person, admin: Person) -> None:
    """SET-4"""
    assert problem_of(ada.http.get("/api/rag/settings/audit")) == (403, "not_admin")
    for cursor in ("nonsense", "WyIxIl0", "W10"):
        assert problem_of(admin.http.get("/api/rag/settings/audit", params={"cursor": cursor})) == (
            400,
            "invalid_input",
        )
