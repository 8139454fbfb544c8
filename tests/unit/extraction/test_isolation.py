"""Whatever a file says, reading and drawing it stay within limits of memory and time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from functions.core import errors, models, ports
from functions.core.extraction import isolation
from functions.core.extraction.child_process import Limits
from functions.core.extraction.documents import open_document
from functions.core.extraction.isolation import IsolatedDocument, PageDrawer
from functions.core.extraction.page_faults import MAX_TOO_COMPLEX, FaultTolerantReader
from functions.core.extraction.pdf import reader
from tests.support import documents, hostile_documents, requirements
from tests.support.hostile_documents import LINES_BOMB, SLOW_DRAWING, make_operators_pdf, text_page
from tests.support.local_server import wait_until

SMALL = Limits(memory=400 << 20, processor_seconds=2, seconds=30)
FIRST, LAST = "The lease begins in March.", "It ends in two years."


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose second page is a bomb."""
    path = tmp_path_factory.mktemp("bomb") / "a.pdf"
    return make_operators_pdf(path, text_page(FIRST), LINES_BOMB, text_page(LAST))


@pytest.fixture
def drawer() -> Iterator[PageDrawer]:
    drawer = PageDrawer(SMALL)
    yield drawer
    drawer.close()


def find_children() -> list[psutil.Process]:
    """The running processes that read files. One that reached its limit stays a zombie until its parent looks."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if "child_program" in " ".join(child.cmdline()):
                found.append(child)
    return found


def read(path: Path, file_type: models.FileType = "pdf", limits: Limits = SMALL) -> list[models.Page]:
    with FaultTolerantReader(IsolatedDocument(path, file_type, max_pages=100, limits=limits)) as document:
        return list(document.pages())


def test_a_page_that_needs_too_much_memory_is_skipped_and_named(bomb: Path) -> None:
    """LIM-1"""
    assert bomb.stat().st_size < 200_000
    assert read(bomb) == [models.Page(1, FIRST), models.Page(2, "", ("too_complex",)), models.Page(3, LAST)]


def test_a_page_that_needs_too_much_time_is_skipped_and_named(bomb: Path) -> None:
    """LIM-1"""
    hurried = Limits(memory=8 << 30, processor_seconds=1)
    assert [page.warnings for page in read(bomb, limits=hurried)] == [(), ("too_complex",), ()]


def test_a_page_is_read_only_once_when_it_is_too_complex(bomb: Path) -> None:
    """LIM-1"""
    with IsolatedDocument(bomb, "pdf", max_pages=9, limits=SMALL) as document:
        with pytest.raises(errors.TooComplexError, match="Page 2"):
            list(document.pages(2))
        began = time.monotonic()
        with pytest.raises(errors.TooComplexError, match="Page 2"):
            document.read_text_layer(2)
        assert time.monotonic() - began < 0.05
        assert document.read_text_layer(3) == LAST


def test_a_document_with_many_pages_that_are_too_complex_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIM-1"""
    path = make_operators_pdf(tmp_path / "a.pdf", *[text_page(FIRST)] * (MAX_TOO_COMPLEX + 2))
    monkeypatch.setattr(reader, "MAX_CHARACTERS", 5)
    document = FaultTolerantReader(open_document(path, "pdf", max_pages=9))
    with document, pytest.raises(errors.TooComplexError) as caught:
        list(document.pages())
    assert caught.value.details == {"page": MAX_TOO_COMPLEX + 1}
    assert not caught.value.retryable


def test_a_page_with_more_text_than_ibid_handles_at_once_is_skipped(tmp_path: Path) -> None:
    """LIM-1"""
    line = b"BT /F1 2 Tf 9 %d Td (" + b"ab " * 500 + b") Tj ET "
    long = b"".join(line % (2 * row) for row in range(350))
    path = make_operators_pdf(tmp_path / "a.pdf", long, text_page(LAST))
    assert read(path) == [models.Page(1, "", ("too_complex",)), models.Page(2, LAST)]


def test_a_word_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    """LIM-1"""
    path = hostile_documents.make_elements_docx(tmp_path / "a.docx")
    assert path.stat().st_size < 400_000
    with pytest.raises(errors.TooComplexError):
        read(path, "docx")


@pytest.mark.parametrize("page", [2, 4])
def test_a_picture_that_needs_too_much_is_refused_and_the_next_one_is_drawn(
    tmp_path: Path, drawer: PageDrawer, page: int
) -> None:
    """LIM-1: page 2 is read with too much memory, page 4 drawn with too much time."""
    pages = (text_page(FIRST), LINES_BOMB, text_page(LAST), SLOW_DRAWING)
    path = make_operators_pdf(tmp_path / "a.pdf", *pages)
    with pytest.raises(errors.TooComplexError):
        drawer.draw(path, page)
    assert drawer.draw(path, 3).startswith(b"\x89PNG")


def test_pictures_are_drawn_by_one_process(tmp_path: Path, drawer: PageDrawer) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", FIRST, LAST)
    before = len(find_children())
    pictures = [drawer.draw(path, number, scale=0.5) for number in (1, 2, 1)]
    assert pictures[0] == pictures[2] != pictures[1]
    assert len(find_children()) == before + 1


@pytest.mark.parametrize("name", ["cut.pdf", "empty.docx"])
def test_errors_of_a_document_are_the_same_as_without_isolation(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"%PDF-1.4 nothing" if name == "cut.pdf" else b"")
    expected = errors.CorruptDocumentError if name == "cut.pdf" else errors.EmptyDocumentError
    with pytest.raises(expected):
        read(path, "pdf" if name == "cut.pdf" else "docx")


def test_pages_and_metadata_are_the_same_as_without_isolation(tmp_path: Path) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", FIRST, LAST, title="The lease of 2024")
    with IsolatedDocument(path, "pdf", max_pages=9) as isolated, open_document(path, "pdf", max_pages=9) as plain:
        assert list(isolated.pages()) == list(plain.pages())
        assert (isolated.metadata, isolated.read_text_layer(2)) == (plain.metadata, plain.read_text_layer(2))


class Reader:
    """A recognizer that knows what the page says."""

    def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
        assert png.startswith(b"\x89PNG")
        words = (models.RecognizedWord(0, 5, 0.1, 0.1, 0.2, 0.2),)
        return ports.RecognizedPage("Lease", models.Recognition(96.0, words))


class FailingReader:
    def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
        raise errors.RecognitionError


@pytest.mark.parametrize(
    ("recognizer", "expected"), [(Reader(), ("Lease", ())), (FailingReader(), ("", ("ocr_failed", "no_text")))]
)
def test_images_are_read_outside_of_the_child_process(
    tmp_path: Path, recognizer: ports.TextRecognizer, expected: tuple[str, tuple[str, ...]]
) -> None:
    """ING-2"""
    path = documents.make_picture_pdf(tmp_path / "a.pdf")
    with IsolatedDocument(path, "pdf", max_pages=9, recognizer=recognizer) as document:
        assert [(page.text, page.warnings) for page in document.pages()] == [expected]


class Killer:
    """A recognizer that kills the process that waits for it, as a system without memory does."""

    def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
        for child in find_children():
            child.kill()
        return ports.RecognizedPage("", models.Recognition(0.0, ()))


def test_a_process_that_the_system_ends_is_a_failure_that_may_pass(tmp_path: Path) -> None:
    """ING-11"""
    path = documents.make_picture_pdf(tmp_path / "a.pdf")
    with IsolatedDocument(path, "pdf", max_pages=9, recognizer=Killer()) as document:
        with pytest.raises(errors.UnavailableError):
            list(document.pages())
        assert document.read_text_layer(1) == ""


def test_a_picture_is_drawn_although_the_process_has_ended_meanwhile(tmp_path: Path, drawer: PageDrawer) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", FIRST)
    picture = drawer.draw(path, 1)
    process = drawer._child._process
    assert process is not None
    process.kill()
    process.wait()
    assert drawer.draw(path, 1) == picture


def test_documents_are_read_by_the_same_process_one_after_the_other(tmp_path: Path) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", FIRST)
    assert read(path) == [models.Page(1, FIRST)]
    before = list(isolation._idle), isolation._idle[0]._process
    assert read(path) == [models.Page(1, FIRST)]
    assert (isolation._idle, isolation._idle[0]._process) == before


def test_documents_that_are_open_at_the_same_time_have_processes_of_their_own(tmp_path: Path) -> None:
    paths = [documents.make_pdf(tmp_path / f"{words}.pdf", words) for words in (FIRST, LAST)]
    with (
        IsolatedDocument(paths[0], "pdf", max_pages=9) as first,
        IsolatedDocument(paths[1], "pdf", max_pages=9) as last,
    ):
        assert (first.read_text_layer(1), last.read_text_layer(1)) == (FIRST, LAST)
        assert len(find_children()) >= 2
    assert len(isolation._idle) == 1


def test_a_process_that_has_used_much_memory_reads_no_other_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIM-1"""
    monkeypatch.setattr(isolation, "_KEPT_MEMORY", 0)
    read(documents.make_pdf(tmp_path / "a.pdf", FIRST))
    assert isolation._idle == []


def test_an_interrupted_request_is_not_answered_to_the_next_one(tmp_path: Path) -> None:
    class Interrupted(BaseException):
        pass

    recognizer = Mock(spec=Reader)
    recognizer.recognize.side_effect = Interrupted
    path = documents.make_picture_pdf(tmp_path / "a.pdf")
    with IsolatedDocument(path, "pdf", max_pages=9, recognizer=recognizer) as document:
        with pytest.raises(Interrupted):
            list(document.pages())
        assert document.read_text_layer(1) == ""


def test_the_child_process_ends_with_its_parent(tmp_path: Path) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", FIRST)
    program = (
        "import sys; from pathlib import Path; from functions.core.extraction.isolation import IsolatedDocument\n"
        "IsolatedDocument(Path(sys.argv[1]), 'pdf', max_pages=9)\n"
        "document = IsolatedDocument(Path(sys.argv[1]), 'pdf', max_pages=9); print(flush=True); input()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, cwd=requirements.REPOSITORY, stdin=-1, stdout=-1) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        (child,) = psutil.Process(parent.pid).children()
        os.kill(parent.pid, signal.SIGKILL)
        assert wait_until(lambda: not child.is_running())
