"""The whole way in a real browser: a PDF goes up, a question is asked, the citation opens at the words."""

from __future__ import annotations

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

from tests.local_server import LocalServer
from tests.requirements import need_chromium, need_eval_data

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
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
def page(local_server: LocalServer) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=need_chromium(), args=QUIET)
        opened = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US")
        faults: list[str] = []
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        opened.goto(local_server.url)
        yield opened
        browser.close()
        assert faults == []


def upload(page: Page, file: Path) -> None:
    page.get_by_test_id("upload-input").set_input_files(file)
    row = page.locator("[data-testid=document-row][data-status=indexed]").filter(
        has_text=re.compile("volume|Reader|Recueil|" + file.stem)
    )
    expect(row.first).to_be_visible(timeout=60_000)


def ask(page: Page, question: str) -> None:
    page.get_by_test_id("new-conversation").click()
    page.get_by_test_id("question").fill(question)
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("answer").last).to_have_attribute("data-state", "done", timeout=30_000)


def open_citation(page: Page) -> dict[str, Any]:
    """Opens the first source; its place, quote and the page picture that the panel shows."""
    with page.expect_response(re.compile(r"/pages/\d+\.png")) as response:
        page.get_by_test_id("citation").first.click()
    image = page.get_by_test_id("page-image")
    expect(image).to_be_visible()
    place = page.get_by_test_id("source-place").inner_text()
    found = re.search(r"\d+", place)
    assert found is not None
    return {
        "page": int(found.group()),
        "quote": page.get_by_test_id("source-quote").inner_text(),
        "image": Image.open(io.BytesIO(response.value.body())).convert("RGB"),
        "shown": image.evaluate("image => image.naturalWidth > 0 && image.complete"),
    }


def squeeze(text: str) -> str:
    return "".join(text.replace("\u00ad", "").split())


def highlighted_share(pdf: Path, number: int, quote: str, image: Image.Image) -> float:
    """The share of the quote's words, placed by another PDF reader, whose middle is yellow in the picture."""
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
            box = (word["x0"] * scale, word["top"] * scale, word["x1"] * scale, word["bottom"] * scale)
            covered.append(is_yellow(image.crop(tuple(round(v) for v in box))))  # type: ignore[arg-type]
        position += size
    assert covered
    return sum(covered) / len(covered)


def is_yellow(region: Image.Image) -> bool:
    """Most of the region's bright pixels are yellow: much less blue than red."""
    pixels = [p for p in region.get_flattened_data() if p[0] > 150]
    return bool(pixels) and sum(p[2] < p[0] - 60 for p in pixels) > len(pixels) / 2


@pytest.mark.parametrize(
    ("name", "document"), [("pages_en", "en-dev-01"), ("pages_fr", "piaf-dev-arts-1")], ids=["English", "French"]
)
def test_a_citation_opens_the_gold_page_with_the_very_words_highlighted(page: Page, name: str, document: str) -> None:
    """WEB-4, CHAT-5: of the first questions of a set, asked on the page with no key and no model server."""
    case = read_case(name, document)
    upload(page, case.pdf)
    pages, shares = [], []
    for question, gold in case.questions:
        ask(page, question)
        opened = open_citation(page)
        assert opened["shown"]
        pages.append(opened["page"] in gold)
        shares.append(highlighted_share(case.pdf, opened["page"], opened["quote"], opened["image"]))
        page.get_by_test_id("source-close").click()
    print(f"{name}: gold page {sum(pages)}/{len(pages)}, highlighted words {[round(s, 2) for s in shares]}")
    assert sum(pages) >= 0.8 * len(pages)
    assert min(shares) >= 0.95
