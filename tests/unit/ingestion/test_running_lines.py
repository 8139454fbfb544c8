"""Headers, footers and page numbers, distinguished from the text between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from functions.core.extraction.documents import open_document
from functions.core.ingestion.chunking import running_lines
from tests.support import documents
from tests.support.requirements import need_corpus, need_eval_data

BODIES = [
    f"Chapter about {subject}.\nIt has {subject} lines,\nin which {subject} differ.\nThe {subject} end."
    for subject in ("rent", "boats", "trees", "wine", "snow", "glass", "maps", "bees")
]


def pages(header: Callable[[int], str] = lambda _: "", footer: Callable[[int], str] = lambda _: "") -> list[str]:
    return [f"{header(number)}\n{body}\n{footer(number)}" for number, body in enumerate(BODIES, 1)]


def find_frames(texts: list[str]) -> list[list[str]]:
    """The lines of each page that are recognized as running lines."""
    found = running_lines.find_running_lines(texts)
    return [[text[a:b] for a, b in running_lines.locate_running_lines(text, found)] for text in texts]


def body_of(texts: list[str]) -> list[str]:
    return [
        "\n".join(line for line in text.split("\n") if line not in frame)
        for text, frame in zip(texts, find_frames(texts), strict=True)
    ]


@pytest.mark.parametrize(
    ("header", "footer"),
    [
        (lambda _: "ACME Annual Report", lambda n: str(n)),
        (lambda _: "ACME Annual Report", lambda n: f"Page {n} of 8"),
        (lambda n: f"– {n} –", lambda _: "© 2024 ACME, all rights reserved"),
        (lambda n: f"Recueil des arts, volume 1  {n}", lambda n: f"Page {n} sur 8"),
        (lambda n: ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii"][n - 1], lambda _: "CONFIDENTIAL"),
        (lambda n: f"47{n:03} Federal Register / Vol. 85, No. 152 / Proposed Rules", lambda n: f"{n} | Page"),
        (lambda n: "Left side title" if n % 2 else "Right side title", lambda n: f"p. {n + 10}"),
        (lambda _: "First line of the head\nSecond line of the head", lambda n: f"[{n}]"),
        (lambda _: "Printed 05.03.2024 at 16:21", lambda n: ["viii", "ix", "x", "1", "2", "3", "4", "5"][n - 1]),
    ],
)
def test_lines_repeated_at_the_edge_of_most_pages_are_running_lines(
    header: Callable[[int], str], footer: Callable[[int], str]
) -> None:
    texts = pages(header, footer)
    assert find_frames(texts) == [[*header(n).split("\n"), *footer(n).split("\n")] for n in range(1, 9)]


@pytest.mark.parametrize(
    "line",
    [
        lambda n: f"Chapter {n}",
        lambda n: f"Lesson {n}",
        lambda n: f"{n}. {'abcdefgh'[n - 1].upper()} heading",
        lambda n: f"Invoice no. {n * 7919 % 1000}",
        lambda n: f"Total of this page {n * 7919 % 1000}",
        lambda n: ["Rent", "Boats", "Trees", "Wine", "Snow", "Glass", "Maps", "Bees"][n - 1],
        lambda n: "Seen twice only" if n < 3 else f"{'abcdefgh'[n - 1]} else",
        lambda n: str(n * 7919 % 1000),
    ],
)
def test_lines_that_differ_from_page_to_page_are_text(line: Callable[[int], str]) -> None:
    assert find_frames(pages(line)) == [[]] * 8
    assert find_frames(pages(footer=line)) == [[]] * 8


def test_a_line_inside_a_page_is_never_a_running_line() -> None:
    texts = [
        text.replace("lines,", "lines,\nACME Report\nand more,\nand more,") for text in pages(lambda _: "ACME Report")
    ]
    assert [len(frame) for frame in find_frames(texts)] == [1] * 8
    assert all(text.count("ACME Report") == 2 for text in texts)


def test_a_number_that_ends_the_text_is_not_a_page_number_if_pages_are_numbered_above() -> None:
    texts = pages(lambda n: str(n))
    texts[4] += "2023"
    assert find_frames(texts)[4] == ["5"]


def test_lines_below_a_line_of_text_are_text() -> None:
    texts = pages(lambda n: f"ACME Report\n{n}")
    texts[4] = "A heading\nACME Report\n17\n" + BODIES[4]
    assert find_frames(texts)[4] == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_pages_have_no_running_lines(count: int) -> None:
    assert running_lines.find_running_lines([*pages(lambda _: "ACME Report")[:count], "", " \n"]) == ()


def test_a_page_of_running_lines_alone_keeps_them() -> None:
    texts = [*pages(lambda _: "ACME Report", lambda n: f"Page {n}"), "ACME Report\nPage 9"]
    assert find_frames(texts)[-1] == []
    assert find_frames(["Background", "Background", "Background", "Background"]) == [[]] * 4


def test_a_number_sign_in_a_line_is_literal() -> None:
    texts = pages(lambda _: "Ticket system #1 (internal)")
    assert find_frames(texts) == [["Ticket system #1 (internal)"]] * 8
    assert (
        running_lines.locate_running_lines(
            "Ticket system 71 (internal)\nText.", running_lines.find_running_lines(texts)
        )
        == ()
    )


def test_printed_pages_lose_only_their_running_lines(tmp_path: Path) -> None:
    lines = [["Reader, volume 2", *body.split("\n"), f"– {number} –"] for number, body in enumerate(BODIES, 1)]
    path = documents.make_pdf(tmp_path / "a.pdf", *lines)
    with open_document(path, "pdf", max_pages=100) as document:
        texts = [page.text for page in document.pages()]
    assert body_of(texts) == BODIES


# Real files


def read_pages(path: Path) -> list[str]:
    with open_document(path, "pdf", max_pages=3000) as document:
        return [document.read_text_layer(number) for number in range(1, document.page_count + 1)]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("pages_en/pdf/en-dev-01.pdf", "top: reader, volume 1"), ("pages_fr/pdf/piaf-dev-sport-1.pdf", "top: – # –")],
)
def test_the_running_lines_of_printed_readers_are_found(name: str, pattern: str) -> None:
    folder, _, rest = name.partition("/")
    texts = read_pages(need_eval_data(folder) / rest)
    assert pattern in running_lines.find_running_lines(texts)
    assert all(len(frame) == 2 for frame in find_frames(texts))


def test_running_lines_of_left_and_right_pages_are_found() -> None:
    texts = read_pages(need_corpus("files") / "pdfplumber/federal-register-2020-17221.pdf")
    found = find_frames(texts)
    assert all("Federal Register / Vol. 85" in frame[0] for frame in found[1:])
    # On these pages, the number of a figure is below the footer.
    assert [number for number, frame in enumerate(found, 1) if len(frame) == 3] == [2, 3, 4, 5, 6, 15]


def test_pages_with_only_their_number_keep_it() -> None:
    texts = read_pages(need_corpus("files") / "derived/many-pages-2000.pdf")
    assert find_frames(texts[::180]) == [[]] * 12


@pytest.mark.parametrize(
    ("header", "name"),
    [
        pytest.param(lambda n: f"Annual Report 2007 | {n}", "Annual Report 2007", id="numbers-that-count-pages-go"),
        pytest.param(lambda _: "Working Paper Series No 1299", "Working Paper Series No 1299", id="others-stay"),
        pytest.param(lambda n: "Healthy Lives" if n % 2 else f"{n}", "Healthy Lives", id="on-every-other-page"),
        pytest.param(lambda n: "Healthy Lives" if n < 2 else f"{n}", None, id="on-one-page"),
        pytest.param(lambda n: f"Page {n} of 8", None, id="page-numbers"),
        pytest.param(lambda _: "Confidential", None, id="one-word"),
        pytest.param(lambda _: "Table of Contents", None, id="no-name"),
    ],
)
def test_the_header_that_pages_repeat_names_the_document(header: Callable[[int], str], name: str | None) -> None:
    """ING-3"""
    assert running_lines.find_document_name(pages(header)) == name
