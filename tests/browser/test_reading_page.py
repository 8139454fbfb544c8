"""Quotations as people read them: lines joined, Markdown drawn, one honest check for the same words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.acceptance.support import writing
from tests.browser.test_library_page import DESKTOP, Tab, ask
from tests.support import documents
from tests.support.local_server import Json, Person

LINES = [
    "The boiler burns wood chips in winter, and the inter-",
    "national supplier brings them once a month, with a",
    "lorry.",
]
JOINED = "The boiler burns wood chips in winter, and the international supplier brings them once a month, with a lorry."
QUESTION = "What does the boiler burn in winter?"
TABLE = "| Fuel | Price |\n|---|---|\n| wood, dry | 1,240 |\n| peat | 90 |\n| =SUM(A1) | |\n| gas | 300 [1] |"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP, permissions=["clipboard-read", "clipboard-write"])


@pytest.fixture
def page(ada: Person, tab: Tab) -> Iterator[Page]:
    yield from tab.open(ada)


def answer_with(page: Page, asked: Json, *sources: Json, **fields: Any) -> None:
    """Asks, and the server answers with these sources."""
    body = asked | {"sources": list(sources)} | fields
    page.route("**/api/rag/chat", lambda route: route.fulfill(json=body))
    ask(page, QUESTION)


def test_the_lines_of_a_printed_page_are_joined_wherever_they_are_read(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-4, CHAT-5: in the answer, the list of sources, the source panel, the text of the page, and a copy."""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", LINES))
    answer = ask(page, QUESTION)
    expect(answer.get_by_test_id("answer-text")).to_have_text(f"{JOINED} 1", use_inner_text=True)
    expect(page.get_by_test_id("source-row")).to_contain_text(JOINED)
    page.get_by_test_id("answer-copy").click()
    expect(page.get_by_test_id("toast")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{JOINED} [1]\n[1] boiler.pdf, page 1: “{JOINED}”"
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-quote")).to_have_text(JOINED, use_inner_text=True)
    page.get_by_test_id("show-text").click()
    expect(page.get_by_test_id("page-mark")).to_have_text(JOINED, use_inner_text=True)
    page.get_by_test_id("source-close").click()


def test_a_quote_cited_twice_shows_its_best_check(page: Page, ada: Person, tmp_path: Path) -> None:
    """CHAT-5"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", LINES))
    asked = ada.ask(QUESTION)
    exact = asked["sources"][0]
    again = exact | {"number": 2, "check": "unverified", "support": "low", "end_offset": exact["end_offset"] - 9}
    sections = [{"text": "It burns wood.", "citations": [1]}, {"text": "In winter.", "citations": [2]}]
    answer_with(
        page, asked, exact, again, sections=sections, answer="It burns wood. [1]\n\nIn winter. [2]", mode="model"
    )
    expect(page.get_by_test_id("check-badge")).to_have_text(["quoted word for word"] * 2)
    expect(page.get_by_test_id("support-badge")).to_have_count(1)


def test_words_that_are_not_in_the_source_say_so(page: Page, ada: Person, tmp_path: Path) -> None:
    """CHAT-5"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", LINES))
    asked = ada.ask(QUESTION)
    answer_with(page, asked, asked["sources"][0] | {"check": "unverified", "support": "low"})
    expect(page.get_by_test_id("check-badge")).to_have_text("not found in the source")


@pytest.fixture
def table(page: Page, ada: Person, tmp_path: Path) -> Locator:
    """A table that a model has written."""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", LINES))
    asked = ada.ask(QUESTION)
    sections = [{"text": TABLE, "citations": [1]}]
    answer_with(page, asked, asked["sources"][0], sections=sections, answer=TABLE, mode="model")
    return page.get_by_test_id("answer-text").locator("table")


def test_a_table_is_sorted_by_numbers_by_words_and_back(page: Page, table: Locator) -> None:
    """WEB-3"""
    fuels, (fuel, price) = table.locator("tbody td:first-child"), page.get_by_test_id("table-sort").all()
    for head, orders, shown in [
        (price, [None, "ascending"], ["peat", "gas", "wood, dry", "=SUM(A1)"]),
        (price, [None, "descending"], ["wood, dry", "gas", "peat", "=SUM(A1)"]),
        (price, [None, None], ["wood, dry", "peat", "=SUM(A1)", "gas"]),
        (fuel, ["ascending", None], ["=SUM(A1)", "gas", "peat", "wood, dry"]),
    ]:
        head.press("Enter")
        assert fuels.all_inner_texts() == shown
        assert table.locator("th").evaluate_all("all => all.map((one) => one.ariaSort)") == orders


@pytest.mark.parametrize(
    ("button", "copied"),
    [
        ("table-copy", "Fuel\tPrice\npeat\t90\ngas\t300\nwood, dry\t1,240\n'=SUM(A1)\t"),
        ("table-copy-csv", 'Fuel,Price\npeat,90\ngas,300\n"wood, dry","1,240"\n\'=SUM(A1),'),
    ],
)
def test_a_table_is_copied_as_it_is_sorted_without_marks_and_formulas(
    page: Page, table: Locator, button: str, copied: str
) -> None:
    """WEB-3"""
    table.get_by_role("button", name="Price").click()
    page.get_by_test_id(button).click()
    expect(page.get_by_test_id("toast")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == copied


def test_the_markdown_of_a_note_is_drawn_in_an_extract_and_its_source(page: Page, ada: Person) -> None:
    """CHAT-5, CHAT-12"""
    writing.write(ada, "The **boiler** burns *wood chips* in winter, and never \\*peat\\*.", title="Boiler")
    answer = ask(page, QUESTION)
    shown = "The boiler burns wood chips in winter, and never *peat*."
    expect(answer.get_by_test_id("answer-text")).to_have_text(f"{shown} 1", use_inner_text=True)
    expect(answer.locator("strong")).to_have_text("boiler")
    expect(page.get_by_test_id("source-row")).to_contain_text(shown)
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-quote")).to_have_text(shown, use_inner_text=True)
    page.get_by_test_id("source-close").click()


def test_an_answer_kept_as_a_note_keeps_the_emphasis_of_the_note_it_quotes(page: Page, ada: Person) -> None:
    """CHAT-12"""
    writing.write(ada, "The **boiler** burns wood chips in winter.", title="Boiler")
    asked = ada.ask(QUESTION)
    ada.post(f"/conversations/{asked['conversation_id']}/messages/{asked['message_id']}/note")
    page.reload()
    page.get_by_test_id("note-row").filter(has_text=QUESTION).get_by_test_id("note-open").click()
    page.get_by_test_id("note-read").click()
    expect(page.get_by_test_id("note-reading").locator("strong").first).to_have_text("boiler")
    page.get_by_test_id("note-close").click()
