"""End to end in a real browser: upload a PDF, ask a question, open the citation at the quoted words."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pdfplumber
import pytest
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.conftest import QUIET
from tests.support import database as database_servers
from tests.support.local_server import run_local_server
from tests.support.requirements import need_chromium, need_eval_data

QUESTIONS = 6


@dataclass(frozen=True)
class Case:
    """A volume of a question set, with its first questions and their gold pages."""

    pdf: Path
    questions: list[tuple[str, set[int]]]


def read_case(name: str, document: str) -> Case:
    folder = need_eval_data(name)
    lines = map(json.loads, (folder / "queries.dev.jsonl").read_text(encoding="utf-8").splitlines())
    questions = [
        (line["question"], {e["page"] for e in line["evidence"]})
        for line in lines
        if {e["doc_id"] for e in line["evidence"]} == {document} and line.get("kind") != "table"
    ]
    return Case(folder / "pdf" / f"{document}.pdf", questions[:QUESTIONS])


@pytest.fixture(scope="module")
def page(
    clusters: database_servers.Clusters, postgres_major: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    chromium = need_chromium()
    errors: list[str] = []
    with (
        run_local_server(clusters.get(postgres_major).clone(), tmp_path_factory.mktemp("home")) as server,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=QUIET) as browser,
    ):
        opened = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US")
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        opened.goto(server.door)
        yield opened
    assert errors == []


def upload(page: Page, file: Path) -> None:
    indexed = page.locator("[data-testid=document-row][data-status=indexed]")
    before = indexed.count()
    page.get_by_test_id("upload-input").set_input_files(file)
    expect(indexed).to_have_count(before + 1, timeout=60_000)


def ask(page: Page, question: str) -> set[int]:
    """Asks in a new conversation and returns the pages that the answer cites."""
    page.get_by_test_id("new-conversation").click()
    page.get_by_test_id("question").fill(question)
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("answer").last).to_have_attribute("data-state", "done", timeout=30_000)
    rows = page.get_by_test_id("source-row").all_inner_texts()
    return {int(number) for row in rows for number in re.findall(r"page (\d+)", row)}


READ_PIXELS = """image => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/png");
}"""


def open_citation(page: Page) -> tuple[int, str, Image.Image]:
    """Opens the first source and returns its page number, its quote and the page image that the panel shows."""
    page.get_by_test_id("citation").first.click()
    shown = page.get_by_test_id("page-image")
    expect(shown).to_be_visible()
    expect(shown).to_have_js_property("complete", True)
    place = re.search(r"\d+", page.get_by_test_id("source-place").inner_text())
    assert place is not None
    picture = base64.b64decode(shown.evaluate(READ_PIXELS).partition(",")[2])
    quote = page.get_by_test_id("source-quote").inner_text()
    return int(place.group()), quote, Image.open(io.BytesIO(picture)).convert("RGB")


def squeeze(text: str) -> str:
    return "".join(text.replace("\u00ad", "").split())


def highlighted_share(pdf: Path, number: int, quote: str, image: Image.Image) -> float:
    """The share of the quote's words whose centre is yellow in the image; another PDF reader locates the words."""
    with pdfplumber.open(pdf) as document:
        page = document.pages[number - 1]
        words = page.extract_words(use_text_flow=True)
        scale = image.width / float(page.width)
    flow, wanted = "".join(squeeze(w["text"]) for w in words), squeeze(quote)
    start = flow.find(wanted)
    assert start >= 0, f"the quote does not stand on page {number}: {quote!r}"
    covered, position = [], 0
    for word in words:
        size = len(squeeze(word["text"]))
        if start <= position and position + size <= start + len(wanted):
            left, top, right, bottom = (round(word[side] * scale) for side in ("x0", "top", "x1", "bottom"))
            covered.append(is_yellow(image.crop((left, top, right, bottom))))
        position += size
    assert covered
    return sum(covered) / len(covered)


def is_yellow(region: Image.Image) -> bool:
    """Most of the region's bright pixels are yellow: much less blue than red."""
    data: Any = region.get_flattened_data()
    pixels = [p for p in data if p[0] > 150]
    return bool(pixels) and sum(p[2] < p[0] - 60 for p in pixels) > len(pixels) / 2


@pytest.mark.parametrize(
    ("name", "document"), [("pages_en", "en-dev-01"), ("pages_fr", "piaf-dev-arts-1")], ids=["English", "French"]
)
def test_a_citation_opens_the_gold_page_with_the_quoted_words_highlighted(page: Page, name: str, document: str) -> None:
    """WEB-4, CHAT-5: for the first questions of a set, asked on the page without a key and without a model server."""
    case = read_case(name, document)
    upload(page, case.pdf)
    pages, shares = [], []
    for question, gold in case.questions:
        pages.append(bool(ask(page, question) & gold))
        shares.append(highlighted_share(case.pdf, *open_citation(page)))
        page.get_by_test_id("source-close").click()
    print(f"{name}: gold page {sum(pages)}/{len(pages)}, highlighted words {[round(s, 2) for s in shares]}")
    assert sum(pages) >= 0.8 * len(pages)
    assert min(shares) >= 0.95
