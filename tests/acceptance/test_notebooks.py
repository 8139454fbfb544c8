"""Notebooks: created, listed with counts, renamed, and deleted with or without their contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support import inside, writing
from tests.support import documents
from tests.support.local_server import Json, LocalServer, Person, problem_of, read

BOILER = "The boiler burns wood chips in winter."


def add_file(person: Person, folder: Path, name: str, text: str, **place: Any) -> str:
    document = person.add(inside.write(folder / name, text.encode()), **place)
    assert document["status"] == "indexed"
    return str(document["id"])


def listed(person: Person, **params: Any) -> list[str]:
    return [item["title"] for item in person.get("/notebooks", **params)["items"]]


def test_a_notebook_is_created_read_and_renamed(ada: Person) -> None:
    """LIB-1"""
    answer = ada.http.post("/api/rag/notebooks", json={"title": "  Heating \n plan "})
    assert answer.status_code == 201
    notebook = answer.json()
    assert (notebook["title"], notebook["note_count"], notebook["document_count"]) == ("Heating plan", 0, 0)
    assert ada.get(f"/notebooks/{notebook['id']}") == notebook
    renamed = read(ada.http.patch(f"/api/rag/notebooks/{notebook['id']}", json={"title": "Été"}))
    assert renamed == notebook | {"title": "Été", "updated_at": renamed["updated_at"]}
    assert renamed["updated_at"] > notebook["updated_at"]


def test_notebooks_are_listed_by_last_change_and_filtered_by_title(ada: Person) -> None:
    first = writing.add_notebook(ada, "Boiler")
    for title in ("Turbine", "Chimney 100%"):
        writing.add_notebook(ada, title)
    assert listed(ada) == ["Chimney 100%", "Turbine", "Boiler"]
    ada.http.patch(f"/api/rag/notebooks/{first}", json={"title": "Old boiler"})
    assert listed(ada) == ["Old boiler", "Chimney 100%", "Turbine"]
    assert (listed(ada, title="BOIL"), listed(ada, title="%"), listed(ada, title="\x00")) == (
        ["Old boiler"],
        ["Chimney 100%"],
        [],
    )


def test_paging_loses_and_repeats_nothing(ada: Person) -> None:
    for number in range(5):
        writing.add_notebook(ada, str(number))
    pages = [ada.get("/notebooks", limit=2)]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append(ada.get("/notebooks", limit=2, cursor=cursor))
    assert [[item["title"] for item in page["items"]] for page in pages] == [["4", "3"], ["2", "1"], ["0"]]


def test_the_counts_of_a_notebook_match_its_lists(ada: Person, tmp_path: Path) -> None:
    notebook_id = writing.add_notebook(ada)
    note, trashed = (writing.save(ada, BOILER, notebook_id=notebook_id) for _ in range(2))
    place = {"notebook_id": notebook_id}
    for version in ("first", "second"):  # one document is the older version of the other
        add_file(ada, tmp_path, "report.txt", f"The {version} text.", **place)
    for owner in (note, trashed):
        add_file(ada, tmp_path, "attached.txt", f"Attached to {owner['id']}.", note_id=owner["id"], **place)
    ada.post(f"/notes/{trashed['id']}/trash")
    (notebook,) = ada.get("/notebooks")["items"]
    assert (notebook["note_count"], notebook["document_count"]) == (1, 2)
    assert len(ada.get("/notes", **place)["items"]) == 1
    assert len(ada.get("/documents", **place)["items"]) == 2


def fill(person: Person, folder: Path) -> Json:
    """A notebook with a note, a trashed note, a document, an attachment in the notebook and one only at the note."""
    notebook_id = writing.add_notebook(person)
    place = {"notebook_id": notebook_id}
    note, trashed = (writing.write(person, BOILER, **place) for _ in range(2))
    person.post(f"/notes/{trashed['id']}/trash")
    return {
        "notebook_id": notebook_id,
        "notes": [note["id"], trashed["id"]],
        "documents": [
            add_file(person, folder, "a.txt", "The turbine turns.", **place),
            add_file(person, folder, "b.txt", "The chimney smokes.", note_id=note["id"], **place),
            add_file(person, folder, "c.txt", "The walrus sleeps.", note_id=note["id"]),
        ],
    }


def test_deleting_a_notebook_keeps_its_contents_by_default(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-1"""
    made = fill(ada, tmp_path)
    before = writing.count_rows(server, ada)
    deleted = writing.delete(ada, f"/notebooks/{made['notebook_id']}")
    assert deleted == {
        "notebook_id": made["notebook_id"],
        "removed": {},
        "moved": {"notes": 2, "documents": 2},
        "files_pending": False,
    }
    assert {ada.get(f"/notes/{note_id}")["notebook_id"] for note_id in made["notes"]} == {None}
    assert {ada.get(f"/documents/{document_id}")["notebook_id"] for document_id in made["documents"]} == {None}
    assert writing.count_rows(server, ada) == before
    assert problem_of(ada.http.get(f"/api/rag/notebooks/{made['notebook_id']}")) == (404, "not_found")


def test_a_notebook_can_be_deleted_with_everything_in_it(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-1, LIB-8"""
    made = fill(ada, tmp_path)
    kept = writing.write(ada, "The heat pump hums.")
    deleted = writing.delete(ada, f"/notebooks/{made['notebook_id']}?contents=delete")
    counts = {"notes": 2, "documents": 3, "pages": 5, "chunks": 5, "vectors": 5, "jobs": 5, "objects": 3}
    assert deleted == {"notebook_id": made["notebook_id"], "removed": counts, "moved": {}, "files_pending": False}
    assert [item["id"] for item in ada.get("/notes")["items"]] == [kept["id"]]
    assert writing.sources(ada, "turbine chimney walrus boiler") == {("note", kept["id"])}
    rows = writing.count_rows(server, ada)
    assert {table: rows[table] for table in ("notes", "generations", "chunks", "ingest_jobs")} == {
        "notes": 1,
        "generations": 1,
        "chunks": 1,
        "ingest_jobs": 1,
    }
    assert inside.stored_files(server, ada) == []


def test_older_versions_are_deleted_with_a_document_of_the_notebook(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-5, LIB-8"""
    notebook_id = writing.add_notebook(ada)
    for version in ("first", "second", "third"):
        add_file(ada, tmp_path, "report.txt", f"The {version} text.", notebook_id=notebook_id)
    removed = writing.delete(ada, f"/notebooks/{notebook_id}?contents=delete")["removed"]
    assert (removed["documents"], removed["objects"]) == (3, 3)
    assert writing.count_rows(server, ada) == {}


def test_a_notebook_can_be_deleted_while_its_contents_are_indexed(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-8"""
    notebook_id = writing.add_notebook(ada)
    with server.worker.paused():
        writing.save(ada, BOILER, notebook_id=notebook_id)
        pdf = documents.make_pdf(tmp_path / "a.pdf", *inside.PAGES).read_bytes()
        document = ada.add_bytes("a.pdf", pdf, notebook_id=notebook_id)
        inside.claim(server, document["id"])
        removed = writing.delete(ada, f"/notebooks/{notebook_id}?contents=delete")["removed"]
    assert (removed["notes"], removed["documents"], removed["jobs"], removed["objects"]) == (1, 1, 2, 1)
    assert writing.count_rows(server, ada) == {}


def test_an_unknown_contents_parameter_is_refused(ada: Person) -> None:
    notebook_id = writing.add_notebook(ada)
    answer = ada.http.delete(f"/api/rag/notebooks/{notebook_id}?contents=burn")
    assert problem_of(answer) == (400, "invalid_input")
    assert ada.get(f"/notebooks/{notebook_id}")["id"] == notebook_id


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    "body",
    [{}, {"title": ""}, {"title": " \n"}, {"title": "x" * 256}, {"title": None}, {"title": 7}, {"title": "a", "id": 1}],
    ids=lambda body: str(body)[:20],
)
def test_an_invalid_title_is_refused(ada: Person, method: str, body: Json) -> None:
    notebook_id = writing.add_notebook(ada, "Kept")
    path = "/api/rag/notebooks" if method == "POST" else f"/api/rag/notebooks/{notebook_id}"
    assert problem_of(ada.http.request(method, path, json=body)) == (400, "invalid_input")
    assert listed(ada) == ["Kept"]


@pytest.mark.parametrize("value", ["1", "null", "' or 1=1 --", "x" * 300, "%00", "../../etc/passwd"])
@pytest.mark.parametrize("what", ["notebooks/{}", "notes/{}", "notes/{}/text"])
def test_a_malformed_id_is_answered_like_an_unknown_id(ada: Person, what: str, value: str) -> None:
    """SEC-3"""
    assert problem_of(ada.http.get("/api/rag/" + what.format(value))) == (404, "not_found")
