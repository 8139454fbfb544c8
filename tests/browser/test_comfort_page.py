"""What makes reading pleasant: cards beside marks, tinted claims, documents to read, themes and shortcuts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.support import writing
from tests.browser.test_library_page import DESKTOP, Tab, ask, see, upload
from tests.support import documents
from tests.support.local_server import Person

WOOD = "The boiler burns wood chips in winter."
PEAT = "The boiler burns peat bricks in summer."
QUESTION = "Does the boiler burn wood chips in winter as in summer?"
CLAIM = "[...(CSS.highlights.get('claim') ?? [])].map((range) => range.toString().trim())"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(ada: Person, tab: Tab) -> Iterator[Page]:
    yield from tab.open(ada)


@pytest.fixture
def answered(page: Page, ada: Person, tmp_path: Path) -> Page:
    """An answer with two citations, of two pages."""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", WOOD, PEAT))
    ask(page, QUESTION)
    expect(page.get_by_test_id("citation")).to_have_count(2)
    return page


def test_a_mark_that_is_pointed_at_shows_its_source(answered: Page) -> None:
    """WEB-4"""
    answered.get_by_test_id("citation").first.hover()
    card = answered.get_by_test_id("source-card")
    for shown in ("boiler.pdf", "page 1", WOOD, "quoted word for word", "1 of 2"):
        expect(card).to_contain_text(shown)
    answered.get_by_test_id("source-card-next").click()
    expect(card).to_contain_text(PEAT)
    expect(answered.get_by_test_id("source-card-count")).to_have_text("2 of 2")
    answered.get_by_test_id("source-card-open").click()
    expect(answered.get_by_test_id("source-place")).to_have_text("page 2")
    expect(card).to_be_hidden()


def test_a_mark_that_has_the_focus_shows_its_source_and_steps_with_the_arrows(answered: Page) -> None:
    """WEB-1, WEB-4"""
    answered.get_by_test_id("answer").click()
    answered.keyboard.press("j")
    card = answered.get_by_test_id("source-card")
    expect(card).to_contain_text(WOOD)
    answered.keyboard.press("ArrowRight")
    expect(card).to_contain_text(PEAT)
    answered.keyboard.press("Escape")
    expect(card).to_be_hidden()


def test_the_claim_is_tinted_while_its_source_is_open(answered: Page) -> None:
    """WEB-4"""
    answered.get_by_test_id("citation").nth(1).click()
    expect(answered.get_by_test_id("source-file")).to_be_visible()
    assert answered.evaluate(CLAIM) == [PEAT]
    answered.reload()
    expect(answered.locator(".citation[data-open]")).to_have_text("2")
    assert answered.evaluate(CLAIM) == [PEAT]
    answered.get_by_test_id("source-close").click()
    expect(answered.locator("#source[open]")).to_have_count(0)
    assert answered.evaluate(CLAIM) == []


def test_a_document_is_read_beside_the_conversation_with_its_details_one_step_away(page: Page, tmp_path: Path) -> None:
    """WEB-2, WEB-4"""
    upload(page, documents.make_pdf(tmp_path / "boiler.pdf", WOOD, PEAT))
    page.get_by_test_id("document-open").click()
    expect(page.get_by_test_id("page-image")).to_be_visible()
    page.get_by_test_id("page-next").click()
    expect(page.get_by_test_id("page-number")).to_have_text("page 2 of 2")
    expect(page.get_by_test_id("question")).to_be_visible()
    page.get_by_test_id("source-details").click()
    expect(page.get_by_test_id("document-health")).to_be_visible()
    page.get_by_test_id("document-close").click()
    page.get_by_test_id("source-close").click()


def test_the_chosen_theme_is_kept(page: Page) -> None:
    """WEB-1"""
    body, light, dark = page.locator("body"), "rgb(247, 245, 240)", "rgb(22, 22, 20)"
    expect(body).to_have_css("background-color", light)
    page.get_by_test_id("theme").click()
    page.get_by_test_id("theme").click()
    expect(body).to_have_css("background-color", dark)
    page.reload()
    expect(body).to_have_css("background-color", dark)
    page.get_by_test_id("theme").click()
    expect(body).to_have_css("background-color", light)


def test_shortcuts_are_listed_and_work_outside_of_text_fields(answered: Page) -> None:
    """WEB-1"""
    answered.get_by_test_id("shortcuts").click()
    expect(answered.get_by_test_id("shortcuts-dialog")).to_contain_text("Start a new conversation")
    answered.keyboard.press("Escape")
    answered.get_by_test_id("question").fill("")
    answered.keyboard.type("n?")
    expect(answered.get_by_test_id("question")).to_have_value("n?")
    answered.get_by_test_id("question").fill("")
    answered.get_by_test_id("answer").click()
    answered.keyboard.press("?")
    expect(answered.get_by_test_id("shortcuts-dialog")).to_be_visible()
    answered.keyboard.press("Escape")
    answered.keyboard.press("n")
    expect(answered.get_by_test_id("welcome")).to_be_visible()
    answered.get_by_test_id("new-conversation").focus()
    answered.keyboard.press("/")
    expect(answered.get_by_test_id("question")).to_be_focused()
    expect(see(answered, "document-row", status="indexed")).to_have_count(1)


@pytest.mark.parametrize(("language", "words"), [("en", "three months’ notice"), ("fr", "un préavis de trois mois")])
def test_an_empty_library_offers_a_sample_document_and_a_question_that_it_answers(
    page: Page, language: str, words: str
) -> None:
    """WEB-1, WEB-2"""
    if language == "fr":
        page.get_by_test_id("language-switch").click()
    page.get_by_test_id("welcome-sample").click()
    expect(page.get_by_test_id("welcome")).to_have_attribute("data-state", "ready")
    page.get_by_test_id("question").press("Enter")
    expect(page.get_by_test_id("answer-text")).to_contain_text(words)
    page.get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("page-number")).to_have_text(re.compile("page 2"))
    expect(page.get_by_test_id("page-image")).to_be_visible()
    page.get_by_test_id("source-close").click()
    if language == "fr":
        page.get_by_test_id("language-switch").click()


def test_a_refusal_offers_the_nearest_passages_and_to_search_everything_and_to_add_documents(
    page: Page, ada: Person, tmp_path: Path
) -> None:
    """WEB-3, RET-8"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", WOOD))
    note = writing.write(ada, "The chimney was swept by a walrus.", title="Chimney")
    page.reload()
    see(page, "note-row", **{"note-id": note["id"]}).hover()
    page.get_by_test_id("note-ask").click()
    answer = ask(page, "What does the boiler burn in winter?")
    expect(answer.get_by_test_id("answer-mode")).to_have_text("No answer found in your documents")
    with page.expect_file_chooser():
        answer.get_by_test_id("add-documents").click()
    answer.get_by_test_id("show-nearest").click()
    expect(page.get_by_test_id("passage").first).to_contain_text(WOOD)
    page.get_by_test_id("passages-close").click()
    expect(page.get_by_test_id("title-filter")).to_have_value("")
    answer.get_by_test_id("ask-everywhere").click()
    expect(page.get_by_test_id("answer").last.get_by_test_id("answer-text")).to_contain_text(WOOD)
