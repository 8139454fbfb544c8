"""A document can be searched while it is reindexed, and can be deleted in any state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from functions.adapters.postgres import documents as stored_documents
from functions.core import errors
from tests.acceptance.support import inside
from tests.support import documents
from tests.support.local_server import Json, LocalServer, Person, problem_of

# Reindexing


def test_a_document_can_be_searched_while_it_is_reindexed(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-7"""
    document_id = ada.add(inside.MAKERS["md"](tmp_path))["id"]
    with server.worker.paused():
        assert ada.post(f"/documents/{document_id}/reindex")["status"] == "reindexing"
        inside.claim(server, document_id)
        assert [hit["document_id"] for hit in ada.get("/search", q="boiler wood")["hits"]] == [document_id]
    with server.services.database.as_worker() as connection:
        connection.execute("update rag.ingest_jobs set lease_expires_at = now() where document_id = %s", (document_id,))
    assert ada.follow(document_id)["status"] == "indexed"
    assert len(ada.get("/search", q="boiler wood")["hits"]) == 1


def test_a_reindex_requested_twice_is_queued_once(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    document_id = ada.add(inside.MAKERS["md"](tmp_path))["id"]
    with server.worker.paused():
        for _ in range(3):
            ada.post(f"/documents/{document_id}/reindex")
        assert inside.count_jobs(server, ada) == 2


def test_a_failed_document_can_be_retried(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """WEB-2"""
    document = ada.add(inside.MAKERS["txt"](tmp_path))
    path = server.services.config.home / "storage" / "documents" / ada.id / document["id"] / "original.txt"
    failed = ada.add(inside.write(tmp_path / "blank.txt", b" "))
    (path.parent.parent / failed["id"] / "original.txt").write_bytes(b"Not blank any more, thank you.")
    assert ada.post(f"/documents/{failed['id']}/retry")["error"] is None
    again = ada.follow(failed["id"])
    assert (again["status"], again["error_code"], again["error"]) == ("indexed", None, None)


@pytest.mark.parametrize("what", ["retry", "reindex"])
def test_a_document_without_bytes_cannot_be_reindexed(ada: Person, what: str) -> None:
    document_id = ada.announce("a.txt").json()["document"]["id"]
    assert problem_of(ada.http.post(f"/api/rag/documents/{document_id}/{what}")) == (409, "conflict")


# Deleting


def delete(person: Person, document_id: str) -> Json:
    answer = person.http.delete(f"/api/rag/documents/{document_id}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["document_id"] == document_id
    removed: Json = answer.json()["removed"]
    return removed


def announced(server: LocalServer, person: Person) -> str:
    return str(person.announce("a.txt").json()["document"]["id"])


def uploaded(server: LocalServer, person: Person) -> str:
    return str(person.add_bytes("a.txt", b"The boiler burns wood.")["id"])


def processing(server: LocalServer, person: Person) -> str:
    document_id = uploaded(server, person)
    inside.claim(server, document_id)
    return document_id


def indexed(server: LocalServer, person: Person) -> str:
    document_id = uploaded(server, person)
    server.services.make_worker().ingest_next(inside.job_of(server, document_id)["id"])
    return document_id


def reindexing(server: LocalServer, person: Person) -> str:
    document_id = indexed(server, person)
    person.post(f"/documents/{document_id}/reindex")
    inside.claim(server, document_id)
    return document_id


def failed(server: LocalServer, person: Person) -> str:
    document_id = str(person.add_bytes("a.txt", b" ")["id"])
    server.services.make_worker().ingest_next(inside.job_of(server, document_id)["id"])
    return document_id


NOTHING = {"pages": 0, "chunks": 0, "vectors": 0}


@pytest.mark.parametrize(
    ("status", "make", "receipt"),
    [
        ("awaiting_upload", announced, {**NOTHING, "jobs": 0, "objects": 0}),
        ("uploaded", uploaded, {**NOTHING, "jobs": 1, "objects": 1}),
        ("processing", processing, {**NOTHING, "jobs": 1, "objects": 1}),
        ("indexed", indexed, {"pages": 1, "chunks": 1, "vectors": 1, "jobs": 1, "objects": 1}),
        ("reindexing", reindexing, {"pages": 1, "chunks": 1, "vectors": 1, "jobs": 2, "objects": 1}),
        ("failed", failed, {**NOTHING, "jobs": 1, "objects": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_deleting_in_any_status_leaves_nothing_and_returns_a_receipt(
    server: LocalServer, ada: Person, status: str, make: Callable[[LocalServer, Person], str], receipt: Json
) -> None:
    """LIB-8"""
    with server.worker.paused():
        document_id = make(server, ada)
        assert ada.get(f"/documents/{document_id}")["status"] == status
        assert delete(ada, document_id) == {"documents": 1, **receipt}
    assert problem_of(ada.http.get(f"/api/rag/documents/{document_id}")) == (404, "not_found")
    assert problem_of(ada.http.delete(f"/api/rag/documents/{document_id}")) == (404, "not_found")
    assert ada.get("/search", q="boiler wood")["hits"] == []
    assert inside.stored_files(server, ada) == []
    assert inside.count_jobs(server, ada) == 0


def test_a_document_deleted_during_its_ingestion_stays_deleted(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-8"""
    with server.worker.paused():
        document_id = ada.add_bytes("a.pdf", documents.make_pdf(tmp_path / "a.pdf", *inside.PAGES * 5).read_bytes())[
            "id"
        ]
        batches: Iterator[Callable[[], object]] = iter([lambda: None, lambda: delete(ada, document_id)])

        def start_batch() -> float:
            next(batches)()
            return inside.HOUR

        worker = replace(server.services.make_worker(), remaining_seconds=start_batch)
        outcome = worker.ingest_next(inside.job_of(server, document_id)["id"])
    assert outcome is not None
    assert outcome.status == "superseded"
    assert (inside.count_jobs(server, ada), inside.stored_files(server, ada)) == (0, [])


def test_bytes_uploaded_after_the_deletion_are_refused_and_not_kept(server: LocalServer, ada: Person) -> None:
    """LIB-8"""
    ticket = ada.announce("a.txt").json()
    delete(ada, ticket["document"]["id"])
    assert problem_of(ada.put(ticket, b"The boiler burns wood.")) == (404, "not_found")
    assert inside.stored_files(server, ada) == []
    with pytest.raises(errors.NotFoundError), server.services.database.as_user(ada.user) as connection:
        stored_documents.find(connection, ticket["document"]["id"])
