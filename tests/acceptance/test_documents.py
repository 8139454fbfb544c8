"""A document as a client sees it: its status, text, page images, and lists."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from PIL import Image

from tests.acceptance.support import inside
from tests.support import documents
from tests.support.library import HurriedStore
from tests.support.local_server import LocalServer, Person, problem_of


def count_highlighted_pixels(image: bytes) -> int:
    """The number of pixels as yellow as a text marker."""
    colours: Any = Image.open(io.BytesIO(image)).convert("RGB").getcolors(1 << 24) or ()
    return sum(n for n, (red, _, blue) in colours if red > 200 and blue < 120)


# Status


def test_a_document_shows_the_progress_of_its_ingestion(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-6"""
    with server.worker.paused():
        document = ada.add_bytes("a.pdf", documents.make_pdf(tmp_path / "a.pdf", *inside.PAGES * 5).read_bytes())
        assert (document["status"], document["stage"], document["progress"]) == ("uploaded", "queued", None)
        store = HurriedStore(server.services.database)
        worker = replace(server.services.make_worker(), store=store, remaining_seconds=lambda: store.remaining_seconds)
        outcome = worker.ingest_next(inside.job_of(server, document["id"])["id"])
        document = ada.get(f"/documents/{document['id']}")
    assert outcome is not None
    assert outcome.again
    assert (document["status"], document["progress"]) == ("processing", {"done": 8, "total": 10})
    assert ada.follow(document["id"])["page_count"] == 10


def test_a_long_poll_returns_when_the_document_changes(server: LocalServer, ada: Person) -> None:
    """LIB-6"""
    with server.worker.paused():
        document = ada.add_bytes("a.txt", b"The boiler burns wood.")
        timer = threading.Timer(0.5, inside.claim, (server, document["id"]))
        timer.start()
        started = time.monotonic()
        changed = ada.get(f"/documents/{document['id']}", wait=20, since=document["updated_at"])
        waited = time.monotonic() - started
        timer.join()
    assert changed["status"] == "processing"
    assert 0.3 < waited < 5


def test_a_long_poll_returns_at_once_after_a_change_and_at_its_limit_without_one(ada: Person) -> None:
    document = ada.announce("a.txt").json()["document"]
    started = time.monotonic()
    assert ada.get(f"/documents/{document['id']}", wait=20, since="2020-01-01T00:00:00Z") == document
    assert time.monotonic() - started < 2
    assert ada.get(f"/documents/{document['id']}", wait=1, since=document["updated_at"]) == document
    assert 1 <= time.monotonic() - started < 4


def test_a_wait_longer_than_the_gateway_allows_is_refused(ada: Person) -> None:
    document = ada.announce("a.txt").json()["document"]
    assert problem_of(ada.http.get(f"/api/rag/documents/{document['id']}?wait=60")) == (400, "invalid_input")


# Reading


@pytest.fixture(scope="module")
def report(server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A user with an indexed PDF of two pages, for tests that only read it."""
    with server.person("reader") as person:
        yield person, person.add(inside.MAKERS["pdf"](tmp_path_factory.mktemp("report")))["id"]


def test_the_text_is_returned_by_page(report: tuple[Person, str]) -> None:
    """LIB-9"""
    person, document_id = report
    facts: dict[str, Any] = {"warnings": [], "ocr_confidence": None}
    pages = [{"page": number, "text": text, **facts} for number, text in enumerate(inside.PAGES, 1)]
    whole = {"document_id": document_id, "page_count": 2, "pages": pages}
    assert person.get(f"/documents/{document_id}/text") == whole
    assert person.get(f"/documents/{document_id}/text", page=2) == whole | {"pages": pages[1:]}


def test_a_page_image_highlights_the_passage(report: tuple[Person, str]) -> None:
    """LIB-9, WEB-4"""
    person, document_id = report
    address = f"/api/rag/documents/{document_id}/pages/1.png"
    plain, marked, small = (
        person.http.get(address, params=params) for params in ({}, {"start": 4, "end": 11}, {"scale": 0.5})
    )
    assert {answer.headers["content-type"] for answer in (plain, marked, small)} == {"image/png"}
    assert count_highlighted_pixels(plain.content) == 0
    assert count_highlighted_pixels(marked.content) > 300
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
def test_pages_and_passages_that_do_not_exist_are_not_found(report: tuple[Person, str], path: str, status: int) -> None:
    person, document_id = report
    assert problem_of(person.http.get(f"/api/rag/documents/{document_id}/{path}"))[0] == status


def test_only_pdf_pages_have_images(ada: Person, tmp_path: Path) -> None:
    document_id = ada.add(inside.MAKERS["docx"](tmp_path))["id"]
    answer = ada.http.get(f"/api/rag/documents/{document_id}/pages/1.png")
    assert problem_of(answer) == (404, "not_found")
    assert "text" in answer.json()["detail"]


@pytest.mark.parametrize("file_type", inside.MAKERS)
def test_a_download_has_the_uploaded_bytes_and_file_name(ada: Person, tmp_path: Path, file_type: str) -> None:
    """LIB-9"""
    path = inside.MAKERS[file_type](tmp_path)
    document_id = ada.add(path)["id"]
    download = ada.get(f"/documents/{document_id}/download")
    answer = ada.server.http.get(download["url"])
    assert answer.content == path.read_bytes()
    assert answer.headers["content-disposition"] == f'attachment; filename="report.{file_type}"'
    assert download["expires_in"] == 300


def test_a_document_without_bytes_has_no_text_image_or_download(ada: Person) -> None:
    document_id = ada.announce("a.pdf").json()["document"]["id"]
    assert ada.get(f"/documents/{document_id}/text") == {"document_id": document_id, "page_count": None, "pages": []}
    assert problem_of(ada.http.get(f"/api/rag/documents/{document_id}/pages/1.png")) == (404, "not_found")
    assert problem_of(ada.http.get(f"/api/rag/documents/{document_id}/download")) == (409, "conflict")


@pytest.mark.parametrize("value", ["1", "null", "' or 1=1 --", "x" * 300, "%00", "../../etc/passwd"])
@pytest.mark.parametrize("what", ["documents/{}", "documents/{}/text", "conversations/{}/messages"])
def test_a_malformed_id_is_answered_like_an_unknown_id(report: tuple[Person, str], what: str, value: str) -> None:
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
    assert ada.http.delete(f"/api/rag/documents/{spell(document_id)}").json()["document_id"] == document_id


# Lists


def test_the_list_is_newest_first_and_can_be_filtered(ada: Person, tmp_path: Path) -> None:
    """LIB-6"""
    indexed = ada.add(inside.make_text(tmp_path / "Boiler.md"))["id"]
    failed = ada.add(inside.write(tmp_path / "blank.txt", b" "))["id"]
    waiting = ada.announce("waiting.txt").json()["document"]["id"]

    def listed(**params: Any) -> list[str]:
        return [item["id"] for item in ada.get("/documents", **params)["items"]]

    assert listed() == [waiting, failed, indexed]
    assert (listed(status="indexed"), listed(status="failed")) == ([indexed], [failed])
    assert (listed(title="BOIL"), listed(title="%"), listed(title="a\x00b")) == ([indexed], [], [])
    assert listed(notebook_id=str(uuid4())) == []
    assert problem_of(ada.http.get("/api/rag/documents?status=lost")) == (400, "invalid_input")


def test_paging_loses_and_repeats_nothing(ada: Person) -> None:
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


# Finding one's way


@pytest.fixture
def handbook(ada: Person, tmp_path: Path) -> str:
    path = tmp_path / "handbook.md"
    path.write_text(
        "# Boiler\n\nLa chaudière brûle du bois.\n\n# Chimney\n\nIt is swept by an inter-\nnational team.\n", "utf-8"
    )
    return str(ada.add(path)["id"])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("CHAUDIERE BRULE", ["chaudière brûle"]),
        ("international team", ["inter-\nnational team"]),
        ("is swept", ["is swept"]),
        ("peat", []),
        ("...", []),
    ],
    ids=["accents", "line-end", "plain", "none", "no-letters"],
)
def test_words_are_found_in_a_document(ada: Person, handbook: str, words: str, found: list[str]) -> None:
    """LIB-9"""
    text = ada.get(f"/documents/{handbook}/text")["pages"][0]["text"]
    matches = ada.get(f"/documents/{handbook}/find", q=words)["matches"]
    assert [text[match["start"] : match["end"]] for match in matches] == found


def test_the_outline_lists_the_sections_of_a_document(ada: Person, handbook: str) -> None:
    """LIB-9"""
    sections = ada.get(f"/documents/{handbook}/outline")["sections"]
    assert [(section["title"], section["page"]) for section in sections] == [("Boiler", 1), ("Chimney", 1)]
