"""The upload of a file: announced, sent to a signed address, accepted or refused with a reason."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.acceptance.support import inside
from tests.support.local_server import Json, LocalServer, Person, problem_of, wait_until


@pytest.mark.parametrize("file_type", inside.MAKERS)
def test_a_file_sent_in_two_steps_becomes_searchable(ada: Person, tmp_path: Path, file_type: str) -> None:
    """LIB-3, LIB-4, LIB-6"""
    path = inside.MAKERS[file_type](tmp_path)
    document = ada.add(path)
    expected = {"status": "indexed", "file_type": file_type, "file_name": path.name, "error": None, "progress": None}
    assert {key: document[key] for key in expected} == expected
    assert document["size_bytes"] == path.stat().st_size
    assert document["page_count"] == (2 if file_type == "pdf" else 1)
    assert document["chunk_count"] == document["health"]["chunks"] > 0
    assert ada.get("/search", q="winter kilowatts")["hits"][0]["document_id"] == document["id"]


def test_the_announcement_returns_the_document_and_a_signed_address_on_this_host(ada: Person) -> None:
    """LIB-3"""
    answer = ada.announce("notes.txt", b"hello")
    ticket = answer.json()
    assert answer.status_code == 201
    assert ticket["duplicate"] is False
    assert ticket["document"]["status"] == "awaiting_upload"
    assert (ticket["upload"]["method"], ticket["upload"]["headers"]) == ("PUT", {"content-type": "text/plain"})
    assert ticket["upload"]["url"].startswith(f"{ada.server.base_url}/storage/")
    assert ticket["upload"]["expires_in"] == 2 * inside.HOUR


def test_storing_the_bytes_starts_the_ingestion_and_finalize_changes_nothing(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-3, ING-10"""
    content = inside.MAKERS["md"](tmp_path).read_bytes()
    ticket = ada.announce("a.md", content).json()
    assert ada.put(ticket, content).is_success
    document_id = ticket["document"]["id"]
    assert ada.follow(document_id)["status"] == "indexed"
    assert {ada.post(f"/documents/{document_id}/finalize")["status"] for _ in range(3)} == {"indexed"}
    assert inside.count_jobs(server, ada) == 1


def test_finalize_before_the_upload_is_a_conflict_with_advice(ada: Person) -> None:
    ticket = ada.announce("a.txt").json()
    answer = ada.http.post(f"/api/rag/documents/{ticket['document']['id']}/finalize")
    assert problem_of(answer) == (409, "conflict")
    assert "upload URL" in answer.json()["detail"]


def test_known_bytes_are_answered_with_the_existing_document(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-5"""
    path = inside.MAKERS["pdf"](tmp_path)
    document, digest = ada.add(path), hashlib.sha256(path.read_bytes()).hexdigest()
    again = ada.announce("other name.pdf", path.read_bytes(), sha256=digest)
    answer = again.json()
    known = answer["document"]["id"]
    assert (again.status_code, known, answer["upload"], answer["duplicate"]) == (200, document["id"], None, True)
    assert inside.count_jobs(server, ada) == 1
    assert len(ada.get("/documents")["items"]) == 1


def test_the_same_bytes_are_no_duplicate_for_another_user(ada: Person, bob: Person, tmp_path: Path) -> None:
    path = inside.MAKERS["txt"](tmp_path)
    ada.add(path)
    answer = bob.announce("a.txt", path.read_bytes(), sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    assert (answer.status_code, answer.json()["duplicate"]) == (201, False)


@pytest.mark.parametrize(
    ("fields", "problem", "said"),
    [
        ({"file_name": "a.exe"}, (415, "unsupported_type"), "PDF, DOCX, TXT or Markdown"),
        ({"file_name": "pdf"}, (415, "unsupported_type"), "PDF, DOCX, TXT or Markdown"),
        ({"file_name": "a.pdf", "mime_type": "image/png"}, (415, "unsupported_type"), "does not match the file name"),
        ({"file_name": "a.pdf", "size": 0}, (422, "empty"), "empty"),
        ({"file_name": "a.pdf", "size": 101 * 1024**2}, (413, "too_large"), "larger than"),
        ({"file_name": "a.pdf", "size": -1}, (400, "invalid_input"), "size"),
        ({"file_name": "a.pdf", "size": 10**30}, (400, "invalid_input"), "size"),
        ({"file_name": "a" * 252 + ".pdf"}, (400, "invalid_input"), "255"),
        ({"file_name": ""}, (400, "invalid_input"), "file_name"),
        ({"file_name": "a.pdf", "sha256": "x" * 64}, (400, "invalid_input"), "sha256"),
        ({"file_name": "a.pdf", "notebook_id": str(uuid4())}, (404, "not_found"), "notebook"),
        ({"file_name": "a.pdf", "colour": "red"}, (400, "invalid_input"), "colour"),
    ],
    ids=[
        "type",
        "no-extension",
        "mime",
        "empty",
        "large",
        "negative",
        "huge",
        "long-name",
        "no-name",
        "digest",
        "notebook",
        "unknown-field",
    ],
)
def test_an_unacceptable_file_is_refused_at_its_announcement(
    ada: Person, fields: Json, problem: tuple[int, str], said: str
) -> None:
    """LIB-4"""
    sent: Json = {"size": 10} | fields
    answer = ada.announce(**sent)
    assert problem_of(answer) == problem
    assert said in answer.json()["detail"]
    assert ada.get("/documents")["items"] == []


@pytest.mark.parametrize(("code", "make"), inside.UNREADABLE.values(), ids=inside.UNREADABLE)
def test_an_unreadable_file_fails_with_a_reason_and_advice(
    ada: Person, tmp_path: Path, code: str, make: inside.Make
) -> None:
    """ING-11, LIB-10"""
    document = ada.add(make(tmp_path))
    assert (document["status"], document["error_code"], document["chunk_count"]) == ("failed", code, 0)
    assert document["error"].endswith(".")
    assert inside.job_of(ada.server, document["id"])["status"] == "failed"


def test_a_failed_document_is_replaced_by_uploading_its_file_again(ada: Person, tmp_path: Path) -> None:
    path = inside.UNREADABLE["no-text"][1](tmp_path)
    assert ada.add(path)["status"] == "failed"
    assert ada.announce(path.name, path.read_bytes()).status_code == 201


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\Users\\ada\\thesis.txt", "thesis.txt"),
        ("a\x00b\x1b[31m\u202ecod\n.txt", "a\ufffdb[31mcod .txt"),
        ("Rapport\u202ffinal.txt", "Rapport final.txt"),
        ("👩‍🚀 été.txt", "👩‍🚀 été.txt"),
        ("é" * 251 + ".txt", "é" * 251 + ".txt"),
        ("<img src=x onerror=alert(1)>.txt", "<img src=x onerror=alert(1)>.txt"),
    ],
    ids=["path", "windows", "control", "space", "emoji", "longest", "markup"],
)
def test_a_file_name_is_shown_and_never_used_as_a_path(server: LocalServer, ada: Person, sent: str, shown: str) -> None:
    """LIB-4"""
    document = ada.add_bytes(sent, b"The boiler burns wood.", mime_type="text/plain")
    assert document["file_name"] == shown
    assert inside.stored_files(server, ada) == [f"{document['id']}/original.txt"]
    address = ada.get(f"/documents/{document['id']}/download")["url"]
    answer = server.http.get(address)
    assert answer.content == b"The boiler burns wood."
    assert answer.headers["content-disposition"].startswith("attachment; ")
    assert answer.headers["x-content-type-options"] == "nosniff"


# The signed address


def change_token(url: str) -> str:
    return url[:-4] + ("AAAA" if not url.endswith("AAAA") else "BBBB")


def change_path(url: str) -> str:
    return url.replace("/original.txt", "/other.txt")


@pytest.mark.parametrize(
    ("forge", "status"),
    [
        (change_token, 403),
        (change_path, 403),
        (lambda url: url.split("?")[0] + "?token=", 403),
        (lambda url: url.split("?")[0] + "?token=é.é", 403),
        (lambda url: url.replace("/documents/", "/avatars/"), 404),
        (lambda url: url.split("?")[0], 400),
    ],
    ids=["signature", "path", "empty", "letters", "bucket", "no-token"],
)
def test_a_forged_address_is_refused(
    server: LocalServer, ada: Person, forge: Callable[[str], str], status: int
) -> None:
    """LIB-3"""
    ticket = ada.announce("a.txt").json()
    answer = server.http.put(forge(ticket["upload"]["url"]), content=b"text")
    assert problem_of(answer)[0] == status
    assert inside.stored_files(server, ada) == []
    assert ada.get(f"/documents/{ticket['document']['id']}")["status"] == "awaiting_upload"


def test_an_expired_address_is_refused(ada: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = ada.announce("a.txt").json()
    now = time.time
    monkeypatch.setattr("functions.adapters.laptop.object_store.time.time", lambda: now() + 2 * inside.HOUR + 1)
    answer = ada.put(ticket, b"text")
    assert problem_of(answer) == (403, "not_allowed")
    assert "expired" in answer.json()["detail"]


def test_upload_and_download_addresses_are_not_interchangeable(ada: Person) -> None:
    ticket = ada.announce("a.txt").json()
    assert ada.put(ticket, b"text").is_success
    path, token = urlsplit(ticket["upload"]["url"]).path, urlsplit(ticket["upload"]["url"]).query
    down = urlsplit(ada.get(f"/documents/{ticket['document']['id']}/download")["url"])
    assert ada.http.get(f"{down.path}?{token}").status_code == 403
    assert ada.http.put(f"{path}?{down.query}", content=b"other").status_code == 403


def test_bytes_that_differ_from_the_announcement_are_not_indexed(ada: Person) -> None:
    """LIB-3"""
    digest = hashlib.sha256(b"The whole text.").hexdigest()
    ticket = ada.announce("a.txt", b"The whole text.", sha256=digest).json()
    assert ada.put(ticket, b"The whole").is_success
    document = ada.follow(ticket["document"]["id"])
    assert (document["status"], document["error_code"], document["chunk_count"]) == ("failed", "corrupt", 0)
    assert "sha256" in document["error"]
    assert ada.http.post(f"/api/rag/documents/{document['id']}/retry").is_success
    assert ada.follow(document["id"])["error_code"] == "corrupt"


def test_an_upload_link_takes_one_file_and_keeps_it(ada: Person) -> None:
    """LIB-3"""
    ticket = ada.announce("a.txt").json()
    document_id = ticket["document"]["id"]
    assert ada.put(ticket, b"The boiler burns wood.").is_success
    for _ in range(2):
        assert problem_of(ada.put(ticket, b"The boiler burns peat.")) == (409, "conflict")
        assert ada.follow(document_id)["status"] == "indexed"
    assert (
        ada.server.http.get(ada.get(f"/documents/{document_id}/download")["url"]).content == b"The boiler burns wood."
    )
    assert ada.get(f"/documents/{document_id}/text")["pages"][0]["text"] == "The boiler burns wood."


def test_an_upload_that_is_cut_off_leaves_nothing_behind(server: LocalServer, ada: Person) -> None:
    ticket = ada.announce("a.txt").json()
    address = urlsplit(ticket["upload"]["url"])
    with socket.create_connection((address.hostname, address.port)) as connection:
        request = (
            f"PUT {address.path}?{address.query} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 1000\r\n\r\n"
        )
        connection.sendall(request.encode() + b"only the beginning")
    home = server.services.config.home / "storage"
    wait_until(lambda: not any((home / ".incoming").iterdir()))
    assert inside.stored_files(server, ada) == []
    assert ada.get(f"/documents/{ticket['document']['id']}")["status"] == "awaiting_upload"
    assert ada.put(ticket, b"The whole text at last.").is_success
    assert ada.follow(ticket["document"]["id"])["status"] == "indexed"


def test_more_bytes_than_allowed_are_refused_even_if_announced_as_fewer(admin: Person) -> None:
    """LIB-4"""
    admin.http.patch("/api/rag/settings", json={"max_file_megabytes": 1})
    try:
        answer = admin.put(admin.announce("a.txt").json(), b"x" * (1024 * 1024 + 1))
    finally:
        admin.http.patch("/api/rag/settings", json={"max_file_megabytes": 100})
    assert problem_of(answer) == (413, "too_large")
    assert inside.stored_files(admin.server, admin) == []
