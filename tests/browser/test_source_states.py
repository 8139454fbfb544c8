"""What the page shows for sources that were deleted, replaced or changed, and for figures without a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.support import writing
from tests.browser.test_library_page import DESKTOP, Tab, see
from tests.support import documents
from tests.support.local_server import Person

FACT = "The boiler burns wood chips in winter."
OTHER = "The boiler burns peat bricks in summer."
QUESTION = "What does the boiler burn in winter?"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(ada: Person, tab: Tab) -> Iterator[Page]:
    yield from tab.open(ada)


def reopen(page: Page, ada: Person, asked: dict[str, Any]) -> None:
    """Reloads the page with the conversation of this answer."""
    page.goto(f"{ada.server.base_url}/#c={asked['conversation_id']}")
    page.reload()
    expect(page.get_by_test_id("answer")).to_have_attribute("data-state", "done")


def test_a_deleted_source_shows_the_quote_without_a_page(page: Page, ada: Person, tmp_path: Path) -> None:
    """LIB-8, WEB-4"""
    document_id = ada.add(documents.make_pdf(tmp_path / "boiler.pdf", FACT))["id"]
    asked = ada.ask(QUESTION)
    ada.http.delete(f"/api/rag/documents/{document_id}").raise_for_status()
    reopen(page, ada, asked)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    expect(see(page, "source-row").locator("[data-state=deleted]")).to_have_text("source deleted")
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-quote")).to_have_text(FACT)
    expect(page.get_by_test_id("source-gone")).to_contain_text("this document is no longer in the library")
    expect(page.locator("#source img, #source .page-view")).to_have_count(0)
    assert [url for url in requests if document_id in url] == []


def test_a_note_in_the_trash_shows_the_quote_and_cannot_be_opened(page: Page, ada: Person) -> None:
    """LIB-2, LIB-8"""
    note = writing.write(ada, FACT, title="Boiler")
    asked = ada.ask(QUESTION)
    ada.post(f"/notes/{note['id']}/trash")
    reopen(page, ada, asked)
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-gone")).to_contain_text("it is in the trash")
    expect(page.get_by_test_id("source-open-note")).to_have_count(0)


def test_an_older_version_opens_and_links_to_the_newer_one(page: Page, ada: Person, tmp_path: Path) -> None:
    """LIB-5, LIB-8, WEB-4"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", FACT))
    asked = ada.ask(QUESTION)
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", OTHER))
    reopen(page, ada, asked)
    expect(see(page, "source-row").locator("[data-state=superseded]")).to_have_text("older version")
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("page-image")).to_be_visible()
    page.get_by_test_id("source-open-newer").click()
    expect(page.get_by_test_id("document-dialog")).to_contain_text("Version 1")


def test_quoted_words_that_are_no_longer_on_the_page_are_reported_and_not_marked(page: Page, ada: Person) -> None:
    """LIB-8, WEB-4"""
    note = writing.write(ada, FACT, title="Boiler")
    asked = ada.ask(QUESTION)
    writing.follow(ada, writing.change(ada, note, content=OTHER))
    reopen(page, ada, asked)
    expect(see(page, "source-row").locator("[data-state=lost]")).to_have_text("no longer on the page")
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("page-changed")).to_be_visible()
    expect(page.get_by_test_id("page-text")).to_have_text(OTHER)
    expect(page.get_by_test_id("page-mark")).to_have_count(0)


def test_figures_without_a_passage_and_the_query_of_a_follow_up_are_shown(page: Page, ada: Person) -> None:
    """CHAT-5, CHAT-7"""
    section = {"text": "It rose by 42 %.", "source_ids": [], "citations": [], "unsupported_numbers": ["42 %"]}
    answer = {
        "conversation_id": ada.ask(QUESTION)["conversation_id"],
        "answer": section["text"],
        "sections": [section],
        "sources": [],
        "scope": {"kind": "library"},
        "status": "complete",
        "mode": "model",
        "usage": {"model": "fake"},
        "search_query": "By how much did revenue rise?",
        "translated_query": "De combien les recettes ont-elles augmenté ?",
        "degraded": ["e5-base-v2"],
    }
    page.route("**/api/rag/chat", lambda route: route.fulfill(json=answer))
    page.get_by_test_id("question").fill("By how much?")
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("unsupported-numbers")).to_have_text(
        "This figure does not appear in any passage cited for it: 42 %"
    )
    expect(page.get_by_test_id("answer-degraded")).to_contain_text("without e5-base-v2, which did not answer")
    expect(page.get_by_test_id("answer-searched")).to_have_text("Searched for “By how much did revenue rise?”")
    expect(page.get_by_test_id("answer-translated")).to_have_text(
        "Also searched for “De combien les recettes ont-elles augmenté ?”"
    )


@pytest.mark.parametrize(("is_remark", "warnings"), [(True, 0), (False, 1)])
def test_a_remark_of_the_product_needs_no_source(
    page: Page, ada: Person, tmp_path: Path, is_remark: bool, warnings: int
) -> None:
    """CHAT-13, WEB-4"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", FACT))
    asked = ada.ask(QUESTION)
    remark = {"text": "Based on all passages.", "source_ids": [], "citations": [], "is_remark": is_remark}
    sections = [*asked["sections"], remark]
    answer = asked | {"answer": f"{asked['answer']}\n\n{remark['text']}", "sections": sections, "mode": "model"}
    page.route("**/api/rag/chat", lambda route: route.fulfill(json=answer))
    page.get_by_test_id("question").fill(QUESTION)
    page.get_by_test_id("send").click()
    expect(page.get_by_text("Based on all passages.")).to_be_visible()
    expect(see(page, "source-row")).to_be_visible()
    expect(page.get_by_text("Part of this answer has no source")).to_have_count(warnings)


def test_a_translated_answer_stands_above_the_original_quotation(page: Page, ada: Person, tmp_path: Path) -> None:
    """LANG-4, CHAT-5"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", FACT))
    asked = ada.ask(QUESTION)
    source = asked["sources"][0]
    french = {"text": "La chaudière brûle des copeaux de bois.", "source_ids": [], "citations": [1]}
    answer = asked | {"answer": f"{french['text']} [1]", "sections": [french], "mode": "model", "usage": {}}
    page.route("**/api/rag/chat", lambda route: route.fulfill(json=answer))
    page.get_by_test_id("question").fill("Que brûle la chaudière ?")
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("answer-text")).to_have_text(f"{french['text']} 1")
    expect(page.get_by_test_id("source-row")).to_contain_text(source["quote"])
    expect(page.get_by_test_id("source-row").get_by_test_id("check-badge")).to_have_attribute("data-check", "exact")
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-quote")).to_have_text(FACT)


@pytest.mark.parametrize(
    ("support", "warnings"), [("high", 0), ("low", 1), (None, 0)], ids=["high", "low", "older-answer"]
)
def test_a_badge_warns_of_a_passage_that_may_not_support_the_answer(
    page: Page, ada: Person, tmp_path: Path, support: str | None, warnings: int
) -> None:
    """CHAT-5"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", FACT))
    asked = ada.ask(QUESTION)
    source = {key: value for key, value in asked["sources"][0].items() if key != "support"}
    answer = asked | {"sources": [source | ({"support": support} if support else {})]}
    page.route("**/api/rag/chat", lambda route: route.fulfill(json=answer))
    page.get_by_test_id("question").fill(QUESTION)
    page.get_by_test_id("send").click()
    row = page.get_by_test_id("source-row")
    expect(row.get_by_test_id("check-badge")).to_have_text("quoted word for word")
    expect(row.get_by_test_id("support-badge")).to_have_count(warnings)
