"""Documents in the trash, and lists of documents that are filtered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support import writing
from tests.support.local_server import Json, LocalServer, Person, problem_of

BOILER = "The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn in winter?"


@pytest.fixture
def boiler(ada: Person, tmp_path: Path) -> Json:
    path = tmp_path / "boiler.txt"
    path.write_text(BOILER, encoding="utf-8")
    return ada.add(path)


def listed(person: Person, **params: Any) -> list[str]:
    return [item["file_name"] for item in person.get("/documents", **params)["items"]]


def test_a_document_in_the_trash_is_hidden_at_once_and_restored_as_it_was(ada: Person, boiler: Json) -> None:
    """LIB-1, LIB-8"""
    address = f"/documents/{boiler['id']}"
    assert ada.post(f"{address}/trash")["trashed_at"]
    assert (listed(ada), listed(ada, trashed=True)) == ([], ["boiler.txt"])
    assert writing.sources(ada, "boiler") == set()
    restored = ada.post(f"{address}/restore")
    assert restored | {"updated_at": boiler["updated_at"], "health": boiler["health"]} == boiler
    assert writing.sources(ada, "boiler") == {("document", boiler["id"])}


def test_trashing_and_restoring_a_document_can_be_repeated(server: LocalServer, ada: Person, boiler: Json) -> None:
    address = f"/documents/{boiler['id']}"
    with server.worker.paused():  # the worker adds to the health report after it has indexed a document
        trashed = ada.post(f"{address}/trash")
        assert ada.post(f"{address}/trash") == trashed
        restored = ada.post(f"{address}/restore")
        assert ada.post(f"{address}/restore") == restored


def test_a_source_in_the_trash_counts_as_deleted_until_it_is_restored(ada: Person, boiler: Json) -> None:
    """LIB-8"""
    conversation = ada.ask(QUESTION)["conversation_id"]

    def state() -> str:
        messages = ada.get(f"/conversations/{conversation}/messages")["items"]
        return str(messages[-1]["sources"][0]["state"])

    states = [state()]
    for action in ("trash", "restore"):
        ada.post(f"/documents/{boiler['id']}/{action}")
        states.append(state())
    assert states == ["current", "deleted", "current"]


def test_a_document_in_the_trash_cannot_be_moved_or_asked_about(ada: Person, boiler: Json) -> None:
    ada.post(f"/documents/{boiler['id']}/trash")
    moved = ada.http.patch(f"/api/rag/documents/{boiler['id']}", json={"notebook_id": None})
    asked = ada.http.post("/api/rag/chat", json={"query": QUESTION, "document_ids": [boiler["id"]]})
    assert [problem_of(answer) for answer in (moved, asked)] == [(409, "conflict")] * 2


def test_a_file_whose_twin_is_in_the_trash_is_a_new_document(ada: Person, boiler: Json, tmp_path: Path) -> None:
    """LIB-5"""
    ada.post(f"/documents/{boiler['id']}/trash")
    again = ada.add(tmp_path / "boiler.txt")
    assert (again["status"], again["version"], listed(ada)) == ("indexed", 1, ["boiler.txt"])


def test_the_older_versions_of_a_document_go_to_the_trash_with_it(ada: Person, boiler: Json, tmp_path: Path) -> None:
    """LIB-5"""
    (tmp_path / "boiler.txt").write_text("The boiler burns peat.", encoding="utf-8")
    newer = ada.add(tmp_path / "boiler.txt")
    for action, count in (("trash", 0), ("restore", 2)):
        ada.post(f"/documents/{newer['id']}/{action}")
        assert len(listed(ada, versions="all")) == count


def test_a_document_in_the_trash_can_be_deleted(ada: Person, boiler: Json) -> None:
    """LIB-8"""
    ada.post(f"/documents/{boiler['id']}/trash")
    assert writing.delete(ada, f"/documents/{boiler['id']}")["removed"]["documents"] == 1
    assert listed(ada, trashed=True) == []


def test_a_notebook_does_not_count_what_is_in_the_trash(ada: Person, boiler: Json) -> None:
    notebook = writing.add_notebook(ada)
    ada.http.patch(f"/api/rag/documents/{boiler['id']}", json={"notebook_id": notebook}).raise_for_status()
    ada.post(f"/documents/{boiler['id']}/trash")
    assert ada.get(f"/notebooks/{notebook}")["document_count"] == 0


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"status": ["indexed", "failed"]}, ["cloud.md", "boiler.txt"]),
        ({"status": "awaiting_upload"}, ["late.txt"]),
        ({"file_type": "md"}, ["cloud.md"]),
        ({"lang": "fr"}, ["cloud.md"]),
        ({"author": "Nobody"}, []),
        ({"added_from": "2026-01-01", "added_to": "2999-12-31", "title": "BOIL"}, ["boiler.txt"]),
        ({"added_to": "2020-12-31"}, []),
    ],
    ids=["statuses", "not-arrived", "type", "language", "author", "days", "before"],
)
def test_a_list_of_documents_is_filtered(
    ada: Person, boiler: Json, tmp_path: Path, params: Json, found: list[str]
) -> None:
    """LIB-6"""
    (tmp_path / "cloud.md").write_text("La chaudière brûle du bois pendant tout l'hiver.", encoding="utf-8")
    ada.add(tmp_path / "cloud.md")
    ada.announce("late.txt")
    assert listed(ada, **params) == found
