"""Notes: found as soon as they are saved, replaced atomically, trashed, restored, deleted."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from functions.adapters.postgres.jobs import JobStore
from functions.core import errors
from functions.web.schemas.library import MAX_CONTENT
from tests.acceptance.support import inside, writing
from tests.support.local_server import Json, LocalServer, Person, problem_of, wait_until

BOILER = "The boiler burns wood chips in winter."
TURBINE = "The turbine turns at three thousand revolutions per minute."
ATTACHED = "The chimney was swept by a walrus."


def attach(person: Person, folder: Path, note: Json, **fields: Any) -> str:
    """An indexed attachment; returns its id."""
    document = person.add(inside.write(folder / "chimney.txt", ATTACHED.encode()), note_id=note["id"], **fields)
    assert document["status"] == "indexed"
    return str(document["id"])


# Saving and finding


def test_a_note_is_found_within_a_second_of_being_saved(server: LocalServer, ada: Person) -> None:
    """LIB-2"""
    writing.write(ada, "So that the model is warm.")
    seconds = []
    for number in range(5):
        note = writing.save(ada, f"The walrus number{number} sleeps.", title="Walruses")
        saved = time.monotonic()
        wait_until(lambda n=note: ("note", n["id"]) in writing.sources(ada, "Which walrus sleeps?", note_id=n["id"]))
        seconds.append(time.monotonic() - saved)
    assert statistics.median(seconds) <= 1.0, seconds


def test_saving_a_note_returns_all_its_fields(server: LocalServer, ada: Person) -> None:
    notebook_id = writing.add_notebook(ada)
    with server.worker.paused():
        note = writing.save(ada, BOILER, title=" The\nboiler ", notebook_id=notebook_id)
    times = {key: note.pop(key) for key in ("created_at", "updated_at")}
    assert all(times.values())
    assert note == {
        "id": note["id"],
        "notebook_id": notebook_id,
        "title": "The boiler",
        "content": BOILER,
        "status": "queued",
        "error_code": None,
        "error": None,
        "chunk_count": 0,
        "lang": None,
        "attachment_count": 0,
        "trashed_at": None,
        "indexed_at": None,
    }
    indexed = writing.follow(ada, note)
    assert (indexed["status"], indexed["chunk_count"], indexed["lang"]) == ("indexed", 1, "en")
    assert indexed["updated_at"] == times["updated_at"]  # indexing does not count as a change of the note


def test_a_title_is_searched_with_the_content(ada: Person) -> None:
    """LIB-2"""
    note = writing.write(ada, "It is swept every spring.", title="Chimney")
    answer = ada.get("/search", q="chimney", debug=True)["hits"]
    assert [(hit["document_id"], hit["arms"]["fts_rank"]) for hit in answer] == [(note["id"], 1)]


@pytest.mark.parametrize("content", ["", " \n\t", "\u200b\ufeff\u00ad"], ids=["nothing", "blanks", "invisible"])
def test_a_note_without_text_is_empty_and_not_queued(server: LocalServer, ada: Person, content: str) -> None:
    note = writing.save(ada, content, title="Later")
    assert (note["status"], note["content"]) == ("empty", content)
    assert writing.count_rows(server, ada) == {"notes": 1}


@pytest.mark.parametrize("content", ["---", "🙂", "```\n```", "\u00a0"], ids=["rule", "emoji", "fence", "hard-space"])
def test_a_note_of_punctuation_alone_is_empty_and_not_searched(server: LocalServer, ada: Person, content: str) -> None:
    """LIB-2"""
    note = writing.write(ada, BOILER)
    writing.change(ada, note, content=content)
    after = writing.follow(ada, note)
    assert (after["status"], after["error"], after["content"]) == ("empty", None, content)
    assert writing.texts(ada, "boiler") == []
    assert "chunks" not in writing.count_rows(server, ada)


class Instant:
    """An embedder that gives every text the same vector, for tests about the amount of text."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Any:
        return np.full((len(texts), self.dimensions), self.dimensions**-0.5, np.float32)


def test_a_long_note_is_stored_and_searchable_to_its_end(server: LocalServer, ada: Person) -> None:
    """LIB-2"""
    beginning = "".join(f"Paragraph {n} tells of the boiler and of the turbine.\n\n" for n in range(4000))
    content = beginning[:199_966] + "\n\nAt the very end sleeps a walrus."
    with server.worker.paused():
        note = writing.save(ada, content)
        worker = server.services.make_worker()
        outcome = replace(worker, embedder=Instant(worker.embedder)).ingest_next(writing.job_of(server, note))
    assert outcome is not None
    assert outcome.status == "done"
    assert ada.get(f"/notes/{note['id']}")["content"] == content
    assert "".join(page["text"] for page in ada.get(f"/notes/{note['id']}/text")["pages"]) == content
    assert any("walrus" in text for text in writing.texts(ada, "walrus"))


def test_changing_a_note_replaces_its_text_at_once(server: LocalServer, ada: Person) -> None:
    """LIB-2: a search sees either the old text or the new one."""
    note = writing.write(ada, BOILER)
    with server.worker.paused():
        assert writing.change(ada, note, content=TURBINE)["status"] == "queued"
        assert writing.texts(ada, "boiler turbine") == [BOILER]
    assert writing.follow(ada, note)["content"] == TURBINE
    assert writing.texts(ada, "boiler turbine") == [TURBINE]
    assert writing.count_rows(server, ada)["generations"] == 1


def test_a_note_changed_during_indexing_ends_with_the_newest_text(server: LocalServer, ada: Person) -> None:
    """LIB-2"""
    with server.worker.paused():
        note = writing.save(ada, BOILER)
        job = JobStore(server.services.database).claim_ingest_job(writing.job_of(server, note), inside.HOUR)
        assert job is not None
        writing.change(ada, note, content=TURBINE)
        with pytest.raises(errors.LeaseLostError):
            JobStore(server.services.database).extend_ingest_lease(job, inside.HOUR)
    writing.follow(ada, note)
    assert writing.texts(ada, "boiler turbine") == [TURBINE]


def test_an_emptied_note_disappears_from_search_at_once(server: LocalServer, ada: Person) -> None:
    note = writing.write(ada, BOILER)
    assert writing.change(ada, note, content=" ")["status"] == "empty"
    assert writing.texts(ada, "boiler") == []
    rows = writing.count_rows(server, ada)
    assert rows == {"notes": 1, "ingest_jobs": 1}


def test_saving_the_same_text_again_changes_nothing(server: LocalServer, ada: Person) -> None:
    note = writing.write(ada, BOILER, title="Boiler")
    assert writing.change(ada, note, title="Boiler", content=BOILER, notebookId=None) == note
    assert writing.change(ada, note) == note
    assert inside.count_jobs(server, ada) == 1


def test_moving_a_note_indexes_nothing(server: LocalServer, ada: Person) -> None:
    notebook_id = writing.add_notebook(ada)
    note = writing.write(ada, BOILER, notebook_id=notebook_id)
    assert writing.change(ada, note, title="Boiler", content=BOILER)["notebook_id"] == notebook_id
    writing.follow(ada, note)
    assert writing.change(ada, note, notebook_id=None)["notebook_id"] is None
    assert writing.change(ada, note, notebook_id=notebook_id)["notebook_id"] == notebook_id
    assert inside.count_jobs(server, ada) == 2  # one job for the content, one for the title


def test_two_editors_do_not_overwrite_each_other(ada: Person) -> None:
    note = writing.save(ada, BOILER)
    mine = writing.change(ada, note, content=TURBINE, expected_updated_at=note["updated_at"])
    late = {"content": "Lost.", "expected_updated_at": note["updated_at"]}
    assert problem_of(ada.http.patch(f"/api/rag/notes/{note['id']}", json=late)) == (409, "conflict")
    assert writing.follow(ada, note)["content"] == TURBINE
    assert writing.change(ada, note, content=BOILER, expectedUpdatedAt=mine["updated_at"])["content"] == BOILER


def test_a_long_poll_returns_when_the_note_is_indexed(server: LocalServer, ada: Person) -> None:
    with server.worker.paused():
        note = writing.save(ada, BOILER)
        started = time.monotonic()
        assert ada.get(f"/notes/{note['id']}", wait=1)["status"] == "queued"
        assert 1 <= time.monotonic() - started < 4
    assert ada.get(f"/notes/{note['id']}", wait=20)["status"] == "indexed"
    assert problem_of(ada.http.get(f"/api/rag/notes/{note['id']}?wait=60")) == (400, "invalid_input")


class Refusing(Instant):
    """An embedder whose server refuses every text."""

    def embed(self, texts: Sequence[str]) -> Any:
        raise errors.ModelRejectedError


def fail(server: LocalServer, note: Json) -> None:
    """Runs the note's job with a model that refuses; the worker must be paused."""
    worker = server.services.make_worker()
    outcome = replace(worker, embedder=Refusing(worker.embedder)).ingest_next(writing.job_of(server, note))
    assert outcome is not None
    assert outcome.status == "failed"


def test_a_failed_note_has_a_reason_and_can_be_indexed_again(server: LocalServer, ada: Person) -> None:
    with server.worker.paused():
        note = writing.save(ada, BOILER)
        fail(server, note)
        failed = ada.get(f"/notes/{note['id']}")
        assert (failed["status"], failed["error_code"], bool(failed["error"])) == ("failed", "model_rejected", True)
        again = ada.post(f"/notes/{note['id']}/reindex")
        assert (again["status"], again["error_code"], again["error"]) == ("queued", None, None)
    assert writing.follow(ada, note)["status"] == "indexed"


def test_indexing_a_note_requested_twice_is_queued_once(server: LocalServer, ada: Person) -> None:
    note = writing.write(ada, BOILER)
    with server.worker.paused():
        for _ in range(3):
            ada.post(f"/notes/{note['id']}/reindex")
        assert inside.count_jobs(server, ada) == 2
        assert writing.texts(ada, "boiler") == [BOILER]
    empty = writing.save(ada)
    assert problem_of(ada.http.post(f"/api/rag/notes/{empty['id']}/reindex")) == (409, "conflict")


# Citations


def test_an_answer_cites_a_note_at_its_offsets(ada: Person) -> None:
    """RET-7, CHAT-5"""
    note = writing.write(ada, f"# Heating\n\n{TURBINE} {BOILER}", title="Heating")
    answer = ada.ask("What does the boiler burn in winter?")
    source = answer["sources"][0]
    assert (source["source"], source["document_id"], source["file_name"]) == ("note", note["id"], "Heating")
    assert (source["quote"], source["check"]) == (BOILER, "exact")
    text = ada.get(f"/notes/{note['id']}/text", page=source["page_start"])
    assert text["pages"][0]["text"][source["start_offset"] : source["end_offset"]] == BOILER


def test_the_text_of_a_note_is_returned_in_parts(ada: Person) -> None:
    note = writing.write(ada, BOILER)
    page = {"page": 1, "text": BOILER, "warnings": [], "ocr_confidence": None}
    whole = {"note_id": note["id"], "page_count": 1, "pages": [page]}
    assert ada.get(f"/notes/{note['id']}/text") == whole == ada.get(f"/notes/{note['id']}/text", page=1)
    assert problem_of(ada.http.get(f"/api/rag/notes/{note['id']}/text?page=2")) == (404, "not_found")
    empty = writing.save(ada)
    assert ada.get(f"/notes/{empty['id']}/text") == {"note_id": empty["id"], "page_count": 0, "pages": []}


@pytest.mark.parametrize("scope", ["note_id", "notebook_id"])
def test_the_scope_of_a_note_includes_its_attachments(ada: Person, tmp_path: Path, scope: str) -> None:
    """CHAT-3"""
    notebook_id = writing.add_notebook(ada)
    note = writing.write(ada, BOILER, notebook_id=notebook_id)
    document_id = attach(ada, tmp_path, note, notebook_id=notebook_id)
    writing.write(ada, "Another walrus swept another chimney.")
    ids = {"note_id": note["id"], "notebook_id": notebook_id}
    found = writing.sources(ada, "What about the boiler and the chimney?", **{scope: ids[scope]})
    assert found == {("note", note["id"]), ("document", document_id)}
    answer = ada.ask("Who swept the chimney?", **{scope: ids[scope]})
    assert {source["document_id"] for source in answer["sources"]} == {document_id}
    assert answer["scope"]["kind"] == scope.removesuffix("_id")


def test_the_scope_of_a_notebook_includes_the_attachments_of_its_notes(ada: Person, tmp_path: Path) -> None:
    """CHAT-3"""
    notebook_id = writing.add_notebook(ada)
    note = writing.write(ada, BOILER, notebook_id=notebook_id)
    document_id = attach(ada, tmp_path, note)
    assert ("document", document_id) in writing.sources(ada, "Who swept the chimney?", notebook_id=notebook_id)
    answer = ada.ask("Who swept the chimney?", notebook_id=notebook_id, note_id=note["id"])
    assert [source["document_id"] for source in answer["sources"]] == [document_id]


def test_a_note_without_a_title_is_cited_by_its_first_line(ada: Person) -> None:
    writing.write(ada, f"\n## Heating plan\n\n{BOILER}")
    (hit,) = ada.get("/search", q="boiler")["hits"]
    assert (hit["file_name"], hit["title"]) == ("Heating plan", None)


# Trash


def test_trashing_hides_a_note_and_its_attachments_at_once_and_restoring_brings_them_back(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-1, LIB-2"""
    note = writing.write(ada, BOILER)
    document_id = attach(ada, tmp_path, note)
    both = {("note", note["id"]), ("document", document_id)}
    before = writing.chunk_ids(server, ada), inside.count_jobs(server, ada)
    assert writing.sources(ada, "boiler chimney") == both
    assert ada.post(f"/notes/{note['id']}/trash")["trashed_at"]
    assert writing.sources(ada, "boiler chimney") == set()
    assert ada.ask("Who swept the chimney?")["sources"] == []
    assert ada.post(f"/notes/{note['id']}/restore")["trashed_at"] is None
    assert writing.sources(ada, "boiler chimney") == both
    assert (writing.chunk_ids(server, ada), inside.count_jobs(server, ada)) == before


def test_trashing_and_restoring_can_be_repeated(ada: Person) -> None:
    note = writing.save(ada, BOILER)
    trashed = ada.post(f"/notes/{note['id']}/trash")
    assert ada.post(f"/notes/{note['id']}/trash")["trashed_at"] == trashed["trashed_at"]
    restored = ada.post(f"/notes/{note['id']}/restore")
    assert ada.post(f"/notes/{note['id']}/restore")["updated_at"] == restored["updated_at"]


def test_a_note_in_the_trash_cannot_be_changed(ada: Person) -> None:
    note = writing.save(ada, BOILER)
    ada.post(f"/notes/{note['id']}/trash")
    answer = ada.http.patch(f"/api/rag/notes/{note['id']}", json={"content": TURBINE})
    assert problem_of(answer) == (409, "conflict")
    assert "Restore it first" in answer.json()["detail"]
    assert ada.get(f"/notes/{note['id']}")["content"] == BOILER


def test_nothing_can_be_attached_to_a_note_in_the_trash(ada: Person) -> None:
    note = writing.save(ada, BOILER)
    document_id = ada.announce("a.txt").json()["document"]["id"]
    ada.post(f"/notes/{note['id']}/trash")
    place = {"note_id": note["id"]}
    assert problem_of(ada.announce("b.txt", **place)) == (409, "conflict")
    assert problem_of(ada.http.patch(f"/api/rag/documents/{document_id}", json=place)) == (409, "conflict")
    assert ada.get("/documents", **place)["items"] == []


def test_a_note_trashed_before_it_was_indexed_is_indexed_and_stays_hidden(server: LocalServer, ada: Person) -> None:
    with server.worker.paused():
        note = writing.save(ada, BOILER)
        ada.post(f"/notes/{note['id']}/trash")
    assert writing.follow(ada, note)["status"] == "indexed"
    assert writing.texts(ada, "boiler") == []
    ada.post(f"/notes/{note['id']}/restore")
    assert writing.texts(ada, "boiler") == [BOILER]


# Lists


def test_the_list_is_ordered_by_last_change_and_can_be_filtered(ada: Person) -> None:
    notebook_id = writing.add_notebook(ada)
    first, second, third = (writing.save(ada, title=title)["id"] for title in ("Été 100%", "Boiler", "Trashed"))
    ada.post(f"/notes/{third}/trash")
    writing.change(ada, {"id": first}, notebook_id=notebook_id)

    def listed(**params: Any) -> list[str]:
        return [item["id"] for item in ada.get("/notes", **params)["items"]]

    assert (listed(), listed(trashed=True)) == ([first, second], [third])
    assert (listed(notebook_id=notebook_id), listed(notebook_id=str(uuid4()))) == ([first], [])
    assert (listed(title="bOIL"), listed(title="%"), listed(title="_"), listed(title="a\x00b")) == (
        [second],
        [first],
        [],
        [],
    )


def test_the_list_shows_a_snippet_of_each_note(ada: Person, tmp_path: Path) -> None:
    note = writing.write(ada, "# Heating\n\n  " + "The boiler burns wood. " * 50)
    attach(ada, tmp_path, note)
    (item,) = ada.get("/notes")["items"]
    assert "content" not in item
    assert item["snippet"] == ("# Heating " + "The boiler burns wood. " * 50)[:200]
    assert item["attachment_count"] == 1


def test_paging_loses_and_repeats_nothing(ada: Person) -> None:
    made = [writing.save(ada)["id"] for _ in range(5)]
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = ada.get("/notes", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert seen == made[::-1]


@pytest.mark.parametrize("path", ["notes", "notebooks"])
@pytest.mark.parametrize(
    "cursor",
    ["x", "é", "WyJhIl0", "WyJhIiwiYiJd", "WyJcdWQ4MDAiLCJiIl0", "WyIyMDI2LTAxLTAxIiwiYiJd", "bnVsbA", "W" * 501],
)
def test_a_forged_cursor_is_refused(ada: Person, path: str, cursor: str) -> None:
    assert problem_of(ada.http.get(f"/api/rag/{path}", params={"cursor": cursor})) == (400, "invalid_input")


# Deleting


def empty(server: LocalServer, person: Person) -> Json:
    return writing.save(person)


def queued(server: LocalServer, person: Person) -> Json:
    return writing.save(person, BOILER)


def running(server: LocalServer, person: Person) -> Json:
    note = queued(server, person)
    assert JobStore(server.services.database).claim_ingest_job(writing.job_of(server, note), inside.HOUR)
    return note


def indexed(server: LocalServer, person: Person) -> Json:
    note = queued(server, person)
    server.services.make_worker().ingest_next(writing.job_of(server, note))
    return note


def changed(server: LocalServer, person: Person) -> Json:
    return writing.change(person, indexed(server, person), content=TURBINE)


def trashed(server: LocalServer, person: Person) -> Json:
    return person.post(f"/notes/{indexed(server, person)['id']}/trash")


def failed(server: LocalServer, person: Person) -> Json:
    note = queued(server, person)
    fail(server, note)
    return note


NOTHING = {"notes": 1, "documents": 0, "pages": 0, "chunks": 0, "vectors": 0, "jobs": 0, "objects": 0}
INDEXED = NOTHING | {"pages": 1, "chunks": 1, "vectors": 1, "jobs": 1}


@pytest.mark.parametrize(
    ("status", "make", "receipt"),
    [
        ("empty", empty, NOTHING),
        ("queued", queued, NOTHING | {"jobs": 1}),
        ("queued", running, NOTHING | {"jobs": 1}),
        ("indexed", indexed, INDEXED),
        ("queued", changed, INDEXED | {"jobs": 2}),
        ("indexed", trashed, INDEXED),
        ("failed", failed, NOTHING | {"jobs": 1}),
    ],
    ids=["empty", "queued", "running", "indexed", "changed", "trashed", "failed"],
)
def test_deleting_in_any_state_leaves_nothing_and_returns_a_receipt(
    server: LocalServer, ada: Person, status: str, make: Callable[[LocalServer, Person], Json], receipt: Json
) -> None:
    """LIB-8"""
    with server.worker.paused():
        note_id = make(server, ada)["id"]
        assert ada.get(f"/notes/{note_id}")["status"] == status
        deleted = writing.delete(ada, f"/notes/{note_id}")
    assert deleted == {"note_id": note_id, "removed": receipt, "moved": {"documents": 0}, "files_pending": False}
    assert writing.count_rows(server, ada) == {}
    assert writing.texts(ada, "boiler") == []
    for method in ("GET", "DELETE"):
        assert problem_of(ada.http.request(method, f"/api/rag/notes/{note_id}")) == (404, "not_found")


def test_a_note_deleted_during_its_indexing_stays_deleted(server: LocalServer, ada: Person) -> None:
    """LIB-8"""

    class Deleting(Instant):
        def embed(self, texts: Sequence[str]) -> Any:
            if writing.count_rows(server, ada).get("pages"):  # the first batch is saved
                writing.delete(ada, f"/notes/{note['id']}")
            return super().embed(texts)

    with server.worker.paused():
        note = writing.save(ada, f"{BOILER}\n\n" * 5000)
        worker = server.services.make_worker()
        outcome = replace(worker, embedder=Deleting(worker.embedder)).ingest_next(writing.job_of(server, note))
    assert outcome is not None
    assert outcome.status == "superseded"
    assert writing.count_rows(server, ada) == {}


def test_attachments_are_deleted_with_their_note_by_default(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-1, LIB-8"""
    note = writing.write(ada, BOILER)
    attach(ada, tmp_path, note)
    removed = writing.delete(ada, f"/notes/{note['id']}")["removed"]
    assert removed == {"notes": 1, "documents": 1, "pages": 2, "chunks": 2, "vectors": 2, "jobs": 2, "objects": 1}
    assert writing.count_rows(server, ada) == {}
    assert inside.stored_files(server, ada) == []


def test_attachments_can_be_kept_in_the_notebook_of_their_note(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-1"""
    notebook_id = writing.add_notebook(ada)
    note = writing.write(ada, BOILER, notebook_id=notebook_id)
    document_id = attach(ada, tmp_path, note)
    deleted = writing.delete(ada, f"/notes/{note['id']}?attachments=keep")
    assert deleted == {
        "note_id": note["id"],
        "removed": INDEXED,
        "moved": {"documents": 1},
        "files_pending": False,
    }
    document = ada.get(f"/documents/{document_id}")
    assert (document["note_id"], document["notebook_id"]) == (None, notebook_id)
    assert writing.sources(ada, "boiler chimney") == {("document", document_id)}


def test_an_answer_keeps_its_quote_when_the_note_is_deleted(ada: Person) -> None:
    """LIB-8"""
    note = writing.write(ada, BOILER)
    conversation_id = ada.ask("What does the boiler burn in winter?", note_id=note["id"])["conversation_id"]
    writing.delete(ada, f"/notes/{note['id']}")
    saved = ada.get(f"/conversations/{conversation_id}/messages")["items"][1]
    assert saved["sources"][0]["quote"] == BOILER
    assert problem_of(ada.http.get(f"/api/rag/notes/{note['id']}/text")) == (404, "not_found")


# Invalid and hostile input


@pytest.mark.parametrize(
    "body",
    [
        {"title": "x" * 256},
        {"title": 7},
        {"title": None},
        {"content": None},
        {"content": ["a"]},
        {"content": "x" * (MAX_CONTENT + 1)},
        {"notebook_id": "mine"},
        {"owner_id": "00000000-0000-4000-8000-00000000000e"},
        {"trashed_at": "2026-01-01T00:00:00Z"},
        {"expected_updated_at": "yesterday"},
        {"expected_updated_at": "2026-01-01T00:00:00"},
    ],
    ids=lambda body: f"{next(iter(body))}-{str(next(iter(body.values())))[:20]}",
)
def test_an_invalid_note_is_refused_with_the_reason(ada: Person, body: Json) -> None:
    note = writing.save(ada, BOILER)
    for answer in (
        ada.http.post("/api/rag/notes", json=body),
        ada.http.patch(f"/api/rag/notes/{note['id']}", json=body),
    ):
        assert problem_of(answer) == (400, "invalid_input")
        assert len(answer.json()["faults"]) == 1
    assert [item["id"] for item in ada.get("/notes")["items"]] == [note["id"]]


def test_a_note_that_is_too_long_is_refused_with_advice(ada: Person) -> None:
    answer = ada.http.post("/api/rag/notes", json={"content": "x" * (MAX_CONTENT + 1)})
    assert answer.json()["faults"] == [
        {
            "key": "content",
            "message": f"A note holds at most {MAX_CONTENT} characters, and a request at most 1 MB."
            " Upload a longer text as a file.",
        }
    ]
    assert problem_of(ada.http.post("/api/rag/notes", json={"content": "é" * 600_000})) == (413, "too_large")


def test_characters_that_cannot_be_stored_are_replaced(ada: Person) -> None:
    """ING-4"""
    body = b'{"title": "a\\u0000b\\ud800c", "content": "The boiler\\u0000 burns \\udfff wood."}'
    answer = ada.http.post("/api/rag/notes", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201
    note = writing.follow(ada, answer.json())
    assert (note["title"], note["content"]) == ("a\ufffdb\ufffdc", "The boiler\ufffd burns \ufffd wood.")
    assert note["status"] == "indexed"


@pytest.mark.parametrize("field", ["title", "content"])
def test_hostile_text_is_stored_unchanged(ada: Person, field: str) -> None:
    hostile = "'); drop table rag.notes; -- <script>alert(1)</script> {{7*7}} %s \\ 🙂 \u202e"
    note = writing.follow(ada, writing.save(ada, **{"content": BOILER, field: hostile}))
    assert (note[field], note["status"]) == (hostile, "indexed")
