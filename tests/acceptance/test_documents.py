"""A document's life as a client sees it: announced, sent, followed, read, shown, worked through again, deleted."""

from __future__ import annotations

import hashlib
import io
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from PIL import Image

from functions.adapters.postgres import documents as stored_documents
from functions.adapters.postgres.jobs import JobStore
from functions.core import errors, ingestion
from tests import documents
from tests.local_server import Json, LocalServer, Person, problem_of, wait_until

PAGES = ("The turbine turns at 3000 revolutions per minute.", "In winter the turbine is heated by steam.")
BLOCKS = ("# Heating", "The heat pump uses four kilowatts of power.")
HOUR = 3600

Make = Callable[[Path], Path]


def make_text(path: Path) -> Path:
    path.write_text("# Boiler\n\nThe boiler burns wood chips in winter.\n", encoding="utf-8")
    return path


MAKERS: dict[str, Make] = {
    "pdf": lambda folder: documents.make_pdf(folder / "report.pdf", *PAGES),
    "docx": lambda folder: documents.make_docx(folder / "report.docx", *BLOCKS),
    "txt": lambda folder: make_text(folder / "report.txt"),
    "md": lambda folder: make_text(folder / "report.md"),
}
UNREADABLE: dict[str, tuple[str, Make]] = {
    "encrypted": ("encrypted", lambda folder: documents.make_pdf(folder / "x.pdf", "secret", password="1234")),
    "corrupt": ("corrupt", lambda folder: _cut(documents.make_docx(folder / "x.docx", *BLOCKS))),
    "no-text": ("no_text", lambda folder: documents.make_picture_pdf(folder / "x.pdf")),
    "blank": ("empty", lambda folder: _write(folder / "x.txt", b" \n\t\n")),
    "other-content": ("unsupported_type", lambda folder: _write(folder / "x.pdf", documents.PNG_HEADER + b"0" * 99)),
}


def _cut(path: Path) -> Path:
    return _write(path, path.read_bytes()[:-400])


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def job_of(server: LocalServer, document_id: str) -> Json:
    with server.services.database.as_worker() as connection:
        row = connection.execute(
            "select * from rag.ingest_jobs where document_id = %s order by id desc limit 1", (document_id,)
        ).fetchone()
    assert row is not None
    return row


def count_jobs(server: LocalServer, person: Person) -> int:
    with server.services.database.as_worker() as connection:
        row = connection.execute(
            "select count(*) as n from rag.ingest_jobs where owner_id = %s", (person.id,)
        ).fetchone()
    assert row is not None
    return int(row["n"])


def claim(server: LocalServer, document_id: str) -> ingestion.Job:
    job = JobStore(server.services.database).claim_ingest_job(job_of(server, document_id)["id"], HOUR)
    assert job is not None
    return job


def stored_files(server: LocalServer, person: Person) -> list[str]:
    folder = server.services.config.home / "storage" / "documents" / person.id
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def highlighted(image: bytes) -> int:
    """How many pixels are as yellow as a text marker."""
    picture = Image.open(io.BytesIO(image)).convert("RGB")
    return sum(n for n, (red, _, blue) in picture.getcolors(1 << 24) or () if red > 200 and blue < 120)


# Upload


@pytest.mark.parametrize("file_type", MAKERS)
def test_a_file_sent_in_two_steps_becomes_searchable(ada: Person, tmp_path: Path, file_type: str) -> None:
    """LIB-3, LIB-4, LIB-6"""
    path = MAKERS[file_type](tmp_path)
    document = ada.add(path)
    expected = {"status": "indexed", "file_type": file_type, "file_name": path.name, "error": None, "progress": None}
    assert {key: document[key] for key in expected} == expected
    assert document["size_bytes"] == path.stat().st_size
    assert document["page_count"] == (2 if file_type == "pdf" else 1)
    assert document["chunk_count"] == document["health"]["chunks"] > 0
    assert ada.get("/search", q="winter kilowatts")["hits"][0]["document_id"] == document["id"]


def test_the_first_step_answers_with_the_row_and_a_signed_address_on_this_host(ada: Person) -> None:
    """LIB-3"""
    answer = ada.announce("notes.txt", b"hello")
    ticket = answer.json()
    assert answer.status_code == 201
    assert ticket["duplicate"] is False
    assert ticket["document"]["status"] == "awaiting_upload"
    assert (ticket["upload"]["method"], ticket["upload"]["headers"]) == ("PUT", {"content-type": "text/plain"})
    assert ticket["upload"]["url"].startswith(f"{ada.server.base_url}/storage/")
    assert ticket["upload"]["expires_in"] == 2 * HOUR


def test_storage_alone_starts_the_ingestion_and_finalize_repeats_nothing(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-3, ING-10"""
    content = MAKERS["md"](tmp_path).read_bytes()
    ticket = ada.announce("a.md", content).json()
    assert ada.put(ticket, content).is_success
    document_id = ticket["document"]["id"]
    assert ada.follow(document_id)["status"] == "indexed"
    assert {ada.post(f"/documents/{document_id}/finalize")["status"] for _ in range(3)} == {"indexed"}
    assert count_jobs(server, ada) == 1


def test_finalize_before_the_bytes_is_a_conflict_that_says_what_to_do(ada: Person) -> None:
    ticket = ada.announce("a.txt").json()
    answer = ada.http.post(f"/api/rag/documents/{ticket['document']['id']}/finalize")
    assert problem_of(answer) == (409, "conflict")
    assert "upload URL" in answer.json()["detail"]


def test_known_bytes_are_answered_with_the_document_there_is(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-5"""
    path = MAKERS["pdf"](tmp_path)
    document, digest = ada.add(path), hashlib.sha256(path.read_bytes()).hexdigest()
    again = ada.announce("other name.pdf", path.read_bytes(), sha256=digest)
    assert (again.status_code, again.json()) == (200, {"document": document, "upload": None, "duplicate": True})
    assert count_jobs(server, ada) == 1
    assert len(ada.get("/documents")["items"]) == 1


def test_the_same_bytes_are_no_duplicate_for_somebody_else(ada: Person, bob: Person, tmp_path: Path) -> None:
    path = MAKERS["txt"](tmp_path)
    ada.add(path)
    answer = bob.announce("a.txt", path.read_bytes(), sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    assert (answer.status_code, answer.json()["duplicate"]) == (201, False)


@pytest.mark.parametrize(
    ("fields", "problem", "said"),
    [
        ({"file_name": "a.exe"}, (415, "unsupported_type"), "PDF, DOCX, TXT or Markdown"),
        ({"file_name": "pdf"}, (415, "unsupported_type"), "PDF, DOCX, TXT or Markdown"),
        ({"file_name": "a.pdf", "mime_type": "image/png"}, (415, "unsupported_type"), "does not fit the file name"),
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
    ids="type no-extension mime empty large negative huge long-name no-name digest notebook unknown-field".split(),
)
def test_what_cannot_be_taken_is_refused_before_a_byte_is_sent(
    ada: Person, fields: Json, problem: tuple[int, str], said: str
) -> None:
    """LIB-4"""
    answer = ada.announce(**{"size": 10} | fields)
    assert problem_of(answer) == problem
    assert said in answer.json()["detail"]
    assert ada.get("/documents")["items"] == []


@pytest.mark.parametrize(("code", "make"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_fails_with_a_reason_and_advice(ada: Person, tmp_path: Path, code: str, make: Make) -> None:
    """ING-11, LIB-10"""
    document = ada.add(make(tmp_path))
    assert (document["status"], document["error_code"], document["chunk_count"]) == ("failed", code, 0)
    assert document["error"].endswith(".")
    assert job_of(ada.server, document["id"])["status"] == "failed"


def test_a_failed_document_is_replaced_by_sending_its_file_again(ada: Person, tmp_path: Path) -> None:
    path = UNREADABLE["no-text"][1](tmp_path)
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
    ids="path windows control space emoji longest markup".split(),
)
def test_a_file_name_is_shown_and_never_used_as_a_path(server: LocalServer, ada: Person, sent: str, shown: str) -> None:
    """LIB-4"""
    document = ada.add_bytes(sent, b"The boiler burns wood.", mime_type="text/plain")
    assert document["file_name"] == shown
    assert stored_files(server, ada) == [f"{document['id']}/original.txt"]
    address = ada.get(f"/documents/{document['id']}/download")["url"]
    answer = server.http.get(address)
    assert answer.content == b"The boiler burns wood."
    assert answer.headers["content-disposition"].startswith("attachment; ")
    assert answer.headers["x-content-type-options"] == "nosniff"


# The signed address


def change_token(url: str) -> str:
    return url[:-4] + ("AAAA" if not url.endswith("AAAA") else "BBBB")


def other_path(url: str) -> str:
    return url.replace("/original.txt", "/other.txt")


@pytest.mark.parametrize(
    ("forge", "status"),
    [
        (change_token, 403),
        (other_path, 403),
        (lambda url: url.split("?")[0] + "?token=", 403),
        (lambda url: url.split("?")[0] + "?token=é.é", 403),
        (lambda url: url.replace("/documents/", "/avatars/"), 404),
        (lambda url: url.split("?")[0], 400),
    ],
    ids="signature path empty letters bucket no-token".split(),
)
def test_a_forged_address_takes_nothing(
    server: LocalServer, ada: Person, forge: Callable[[str], str], status: int
) -> None:
    """LIB-3"""
    ticket = ada.announce("a.txt").json()
    answer = server.http.put(forge(ticket["upload"]["url"]), content=b"text")
    assert problem_of(answer)[0] == status
    assert stored_files(server, ada) == []
    assert ada.get(f"/documents/{ticket['document']['id']}")["status"] == "awaiting_upload"


def test_an_expired_address_takes_nothing(ada: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = ada.announce("a.txt").json()
    now = time.time
    monkeypatch.setattr("functions.adapters.storage_local.time.time", lambda: now() + 2 * HOUR + 1)
    answer = ada.put(ticket, b"text")
    assert problem_of(answer) == (403, "not_allowed")
    assert "expired" in answer.json()["detail"]


def test_the_address_for_sending_does_not_let_read_and_the_other_way_round(ada: Person) -> None:
    ticket = ada.announce("a.txt").json()
    assert ada.put(ticket, b"text").is_success
    path, token = urlsplit(ticket["upload"]["url"]).path, urlsplit(ticket["upload"]["url"]).query
    down = urlsplit(ada.get(f"/documents/{ticket['document']['id']}/download")["url"])
    assert ada.http.get(f"{down.path}?{token}").status_code == 403
    assert ada.http.put(f"{path}?{down.query}", content=b"other").status_code == 403


def test_a_second_sending_to_the_same_address_replaces_the_first(ada: Person) -> None:
    ticket = ada.announce("a.txt").json()
    document_id = ticket["document"]["id"]
    for text in (b"The boiler burns wood.", b"The boiler burns peat and nothing else."):
        assert ada.put(ticket, text).is_success
        document = ada.follow(document_id)
    assert (document["status"], document["size_bytes"]) == ("indexed", 39)
    assert ada.get(f"/documents/{document_id}/text")["pages"] == [
        {"page": 1, "text": "The boiler burns peat and nothing else."}
    ]


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
    assert stored_files(server, ada) == []
    assert ada.get(f"/documents/{ticket['document']['id']}")["status"] == "awaiting_upload"
    assert ada.put(ticket, b"The whole text at last.").is_success
    assert ada.follow(ticket["document"]["id"])["status"] == "indexed"


def test_more_bytes_than_allowed_are_refused_whatever_was_announced(admin: Person) -> None:
    """LIB-4"""
    admin.http.patch("/api/rag/settings", json={"max_file_megabytes": 1})
    try:
        answer = admin.put(admin.announce("a.txt").json(), b"x" * (1024 * 1024 + 1))
    finally:
        admin.http.patch("/api/rag/settings", json={"max_file_megabytes": 100})
    assert problem_of(answer) == (413, "too_large")
    assert stored_files(admin.server, admin) == []


# Following


def test_a_document_says_how_far_it_is(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-6"""
    with server.worker.paused():
        document = ada.add_bytes("a.pdf", documents.make_pdf(tmp_path / "a.pdf", *PAGES * 5).read_bytes())
        assert (document["status"], document["stage"], document["progress"]) == ("uploaded", "queued", None)
        left = iter([ingestion.RESERVE_SECONDS + 1, 0.0])
        worker = replace(server.services.make_worker(), remaining_seconds=lambda: next(left))
        outcome = worker.ingest_next(job_of(server, document["id"])["id"])
        document = ada.get(f"/documents/{document['id']}")
    assert outcome is not None
    assert outcome.again
    assert (document["status"], document["progress"]) == ("processing", {"done": 8, "total": 10})
    assert ada.follow(document["id"])["page_count"] == 10


def test_a_long_poll_answers_when_something_changes(server: LocalServer, ada: Person) -> None:
    """LIB-6"""
    with server.worker.paused():
        document = ada.add_bytes("a.txt", b"The boiler burns wood.")
        timer = threading.Timer(0.5, claim, (server, document["id"]))
        timer.start()
        started = time.monotonic()
        changed = ada.get(f"/documents/{document['id']}", wait=20, since=document["updated_at"])
        waited = time.monotonic() - started
        timer.join()
    assert changed["status"] == "processing"
    assert 0.3 < waited < 5


def test_a_long_poll_returns_at_once_when_it_comes_late_and_gives_up_in_time(ada: Person) -> None:
    document = ada.announce("a.txt").json()["document"]
    started = time.monotonic()
    assert ada.get(f"/documents/{document['id']}", wait=20, since="2020-01-01T00:00:00Z") == document
    assert time.monotonic() - started < 2
    assert ada.get(f"/documents/{document['id']}", wait=1, since=document["updated_at"]) == document
    assert 1 <= time.monotonic() - started < 4


def test_waiting_longer_than_a_gateway_allows_is_refused(ada: Person) -> None:
    document = ada.announce("a.txt").json()["document"]
    assert problem_of(ada.http.get(f"/api/rag/documents/{document['id']}?wait=60")) == (400, "invalid_input")


# Reading


@pytest.fixture(scope="module")
def report(server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Somebody with an indexed PDF of two pages, for tests that only look."""
    with server.person("reader") as person:
        yield person, person.add(MAKERS["pdf"](tmp_path_factory.mktemp("report")))["id"]


def test_the_text_is_given_by_page(report: tuple[Person, str]) -> None:
    """LIB-9"""
    person, document_id = report
    pages = [{"page": number, "text": text} for number, text in enumerate(PAGES, 1)]
    whole = {"document_id": document_id, "page_count": 2, "pages": pages}
    assert person.get(f"/documents/{document_id}/text") == whole
    assert person.get(f"/documents/{document_id}/text", page=2) == whole | {"pages": pages[1:]}


def test_a_page_is_shown_with_the_passage_marked(report: tuple[Person, str]) -> None:
    """LIB-9, WEB-4"""
    person, document_id = report
    address = f"/api/rag/documents/{document_id}/pages/1.png"
    plain, marked, small = (
        person.http.get(address, params=params) for params in ({}, {"start": 4, "end": 11}, {"scale": 0.5})
    )
    assert {answer.headers["content-type"] for answer in (plain, marked, small)} == {"image/png"}
    assert highlighted(plain.content) == 0
    assert highlighted(marked.content) > 300
    assert Image.open(io.BytesIO(small.content)).size == (306, 396)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("pages/0.png", 404),
        ("pages/3.png", 404),
        ("pages/-1.png", 404),
        (f"pages/{10**30}.png", 404),
        ("pages/1.png?start=0&end=9999", 404),
        ("pages/1.png?start=9&end=3", 404),
        ("pages/1.png?scale=99", 400),
        ("pages/1.png?scale=nan", 400),
        ("pages/one.png", 400),
        ("text?page=3", 404),
        (f"text?page={10**30}", 404),
        ("text?page=0", 400),
    ],
)
def test_pages_and_passages_that_do_not_exist_are_said_so(report: tuple[Person, str], path: str, status: int) -> None:
    person, document_id = report
    assert problem_of(person.http.get(f"/api/rag/documents/{document_id}/{path}"))[0] == status


def test_only_pdf_pages_are_pictures(ada: Person, tmp_path: Path) -> None:
    document_id = ada.add(MAKERS["docx"](tmp_path))["id"]
    answer = ada.http.get(f"/api/rag/documents/{document_id}/pages/1.png")
    assert problem_of(answer) == (404, "not_found")
    assert "text" in answer.json()["detail"]


@pytest.mark.parametrize("file_type", MAKERS)
def test_a_download_gives_the_very_bytes_under_the_name(ada: Person, tmp_path: Path, file_type: str) -> None:
    """LIB-9"""
    path = MAKERS[file_type](tmp_path)
    document_id = ada.add(path)["id"]
    download = ada.get(f"/documents/{document_id}/download")
    answer = ada.server.http.get(download["url"])
    assert answer.content == path.read_bytes()
    assert answer.headers["content-disposition"] == f'attachment; filename="report.{file_type}"'
    assert download["expires_in"] == 300


def test_a_document_without_bytes_has_no_text_picture_or_download(ada: Person) -> None:
    document_id = ada.announce("a.pdf").json()["document"]["id"]
    assert ada.get(f"/documents/{document_id}/text") == {"document_id": document_id, "page_count": None, "pages": []}
    assert problem_of(ada.http.get(f"/api/rag/documents/{document_id}/pages/1.png")) == (404, "not_found")
    assert problem_of(ada.http.get(f"/api/rag/documents/{document_id}/download")) == (409, "conflict")


@pytest.mark.parametrize("value", ["1", "null", "' or 1=1 --", "x" * 300, "%00", "../../etc/passwd"])
@pytest.mark.parametrize("what", ["documents/{}", "documents/{}/text", "conversations/{}/messages"])
def test_what_is_no_id_is_answered_like_an_id_that_does_not_exist(
    report: tuple[Person, str], what: str, value: str
) -> None:
    """SEC-3"""
    answer = report[0].http.get("/api/rag/" + what.format(value))
    assert problem_of(answer) == (404, "not_found")


@pytest.mark.parametrize("spell", [str.upper, "{{{}}}".format, lambda id: id.replace("-", ""), "urn:uuid:{}".format])
def test_every_spelling_of_an_id_names_the_same_document(ada: Person, spell: Callable[[str], str]) -> None:
    document_id = ada.add_bytes("a.txt", b"The boiler burns wood.")["id"]
    ada.follow(document_id)
    assert ada.get(f"/documents/{spell(document_id)}/text")["document_id"] == document_id
    assert ada.post(f"/documents/{spell(document_id)}/reindex")["id"] == document_id
    ada.follow(document_id)
    assert delete(ada, spell(document_id))["objects"] == 1


# Lists


def test_a_list_is_newest_first_and_filters(ada: Person, tmp_path: Path) -> None:
    """LIB-6"""
    indexed = ada.add(make_text(tmp_path / "Boiler.md"))["id"]
    failed = ada.add(_write(tmp_path / "blank.txt", b" "))["id"]
    waiting = ada.announce("waiting.txt").json()["document"]["id"]

    def listed(**params: Any) -> list[str]:
        return [item["id"] for item in ada.get("/documents", **params)["items"]]

    assert listed() == [waiting, failed, indexed]
    assert (listed(status="indexed"), listed(status="failed")) == ([indexed], [failed])
    assert (listed(title="BOIL"), listed(title="%"), listed(title="a\x00b")) == ([indexed], [], [])
    assert listed(notebook_id=str(uuid4())) == []
    assert problem_of(ada.http.get("/api/rag/documents?status=lost")) == (400, "invalid_input")


def test_a_list_comes_in_pages_that_lose_and_repeat_nothing(ada: Person) -> None:
    made = [ada.announce(f"{n}.txt").json()["document"]["id"] for n in range(5)]
    seen: list[str] = []
    cursor = None
    while len(seen) < 9:
        page = ada.get("/documents", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [item["id"] for item in page["items"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert seen == made[::-1]


FORGED = [
    "x",
    "é",
    "WyJhIl0",  # ["a"]
    "WyJhIiwiYiJd",  # ["a","b"]
    "WyJcdWQ4MDAiLCJiIl0",  # ["\ud800","b"]
    "WyJcdTAwMDAiXQ",  # ["\u0000"]
    "WyI5OTk5OTk5OTk5OTk5OTk5OTk5OSJd",  # ["99999999999999999999"]
    "bnVsbA",  # null
    "W" * 500,
]


@pytest.mark.parametrize("cursor", FORGED)
def test_a_forged_cursor_is_refused(ada: Person, cursor: str) -> None:
    conversation = ada.ask("Anything?")["conversation_id"]
    for path in ("documents", "conversations", f"conversations/{conversation}/messages"):
        answer = ada.http.get(f"/api/rag/{path}", params={"cursor": cursor})
        assert problem_of(answer) == (400, "invalid_input")


# Working through it again


def test_a_document_answers_while_it_is_worked_through_again(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-7"""
    document_id = ada.add(MAKERS["md"](tmp_path))["id"]
    with server.worker.paused():
        assert ada.post(f"/documents/{document_id}/reindex")["status"] == "reindexing"
        claim(server, document_id)
        assert [hit["document_id"] for hit in ada.get("/search", q="boiler wood")["hits"]] == [document_id]
    with server.services.database.as_worker() as connection:
        connection.execute("update rag.ingest_jobs set lease_expires_at = now() where document_id = %s", (document_id,))
    assert ada.follow(document_id)["status"] == "indexed"
    assert len(ada.get("/search", q="boiler wood")["hits"]) == 1


def test_asking_twice_for_the_same_work_queues_it_once(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    document_id = ada.add(MAKERS["md"](tmp_path))["id"]
    with server.worker.paused():
        for _ in range(3):
            ada.post(f"/documents/{document_id}/reindex")
        assert count_jobs(server, ada) == 2


def test_a_failed_document_can_be_tried_again(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """WEB-2"""
    document = ada.add(MAKERS["txt"](tmp_path))
    path = server.services.config.home / "storage" / "documents" / ada.id / document["id"] / "original.txt"
    failed = ada.add(_write(tmp_path / "blank.txt", b" "))
    (path.parent.parent / failed["id"] / "original.txt").write_bytes(b"Not blank any more, thank you.")
    assert ada.post(f"/documents/{failed['id']}/retry")["error"] is None
    again = ada.follow(failed["id"])
    assert (again["status"], again["error_code"], again["error"]) == ("indexed", None, None)


@pytest.mark.parametrize("what", ["retry", "reindex"])
def test_nothing_can_be_worked_through_before_its_bytes_are_there(ada: Person, what: str) -> None:
    document_id = ada.announce("a.txt").json()["document"]["id"]
    assert problem_of(ada.http.post(f"/api/rag/documents/{document_id}/{what}")) == (409, "conflict")


# Deleting


def delete(person: Person, document_id: str) -> Json:
    answer = person.http.delete(f"/api/rag/documents/{document_id}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["document_id"] == str(UUID(document_id))
    removed: Json = answer.json()["removed"]
    return removed


def announced(server: LocalServer, person: Person) -> str:
    return str(person.announce("a.txt").json()["document"]["id"])


def uploaded(server: LocalServer, person: Person) -> str:
    return str(person.add_bytes("a.txt", b"The boiler burns wood.")["id"])


def processing(server: LocalServer, person: Person) -> str:
    document_id = uploaded(server, person)
    claim(server, document_id)
    return document_id


def indexed(server: LocalServer, person: Person) -> str:
    document_id = uploaded(server, person)
    server.services.make_worker().ingest_next(job_of(server, document_id)["id"])
    return document_id


def reindexing(server: LocalServer, person: Person) -> str:
    document_id = indexed(server, person)
    person.post(f"/documents/{document_id}/reindex")
    claim(server, document_id)
    return document_id


def failed(server: LocalServer, person: Person) -> str:
    document_id = str(person.add_bytes("a.txt", b" ")["id"])
    server.services.make_worker().ingest_next(job_of(server, document_id)["id"])
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
def test_deleting_in_any_status_leaves_nothing_and_says_what_went(
    server: LocalServer, ada: Person, status: str, make: Callable[[LocalServer, Person], str], receipt: Json
) -> None:
    """LIB-8"""
    with server.worker.paused():
        document_id = make(server, ada)
        assert ada.get(f"/documents/{document_id}")["status"] == status
        assert delete(ada, document_id) == receipt
    assert problem_of(ada.http.get(f"/api/rag/documents/{document_id}")) == (404, "not_found")
    assert problem_of(ada.http.delete(f"/api/rag/documents/{document_id}")) == (404, "not_found")
    assert ada.get("/search", q="boiler wood")["hits"] == []
    assert stored_files(server, ada) == []
    assert count_jobs(server, ada) == 0


def test_a_document_deleted_in_the_middle_of_its_ingestion_stays_deleted(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-8"""
    with server.worker.paused():
        document_id = ada.add_bytes("a.pdf", documents.make_pdf(tmp_path / "a.pdf", *PAGES * 5).read_bytes())["id"]
        batches = iter([lambda: None, lambda: delete(ada, document_id)])

        def start_batch() -> float:
            next(batches)()
            return HOUR

        worker = replace(server.services.make_worker(), remaining_seconds=start_batch)
        outcome = worker.ingest_next(job_of(server, document_id)["id"])
    assert outcome is not None
    assert outcome.status == "superseded"
    assert (count_jobs(server, ada), stored_files(server, ada)) == (0, [])


def test_bytes_that_come_after_the_deletion_are_refused_and_not_kept(server: LocalServer, ada: Person) -> None:
    """LIB-8"""
    ticket = ada.announce("a.txt").json()
    delete(ada, ticket["document"]["id"])
    assert problem_of(ada.put(ticket, b"The boiler burns wood.")) == (404, "not_found")
    assert stored_files(server, ada) == []
    with pytest.raises(errors.NotFoundError), server.services.database.as_user(ada.user) as connection:
        stored_documents.find(connection, ticket["document"]["id"])
