"""The pane of the page: beside the answer, with a way back on a phone, a search, an outline, and readable words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.test_library_page import DESKTOP, TOO_WIDE, Tab, ask, see
from tests.support import documents
from tests.support.local_server import Person

WOOD = "The boiler burns wood chips in winter."
PEAT = "The boiler burns peat bricks in summer."
QUESTION = "What does the boiler burn in winter?"
PHONE: ViewportSize = {"width": 390, "height": 844}
HANDBOOK = "# Heating\n\nThe boiler burns wood.\n\n# Chimneys\n\nThe chimney is swept in March.\n"
PANES = ["#view-sources", "#view-chat", "#source"]


@pytest.fixture
def library(ada: Person, tmp_path: Path) -> Person:
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", WOOD, PEAT))
    (tmp_path / "handbook.md").write_text(HANDBOOK, encoding="utf-8")
    ada.add(tmp_path / "handbook.md")
    return ada


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(library: Person, tab: Tab) -> Iterator[Page]:
    yield from tab.open(library)


@pytest.fixture
def phone(library: Person, browser: Browser) -> Iterator[Page]:
    yield from Tab(browser, "fr-FR", viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark").open(library)


def shown(page: Page) -> list[str]:
    return [pane for pane in PANES if page.locator(pane).is_visible()]


def read(page: Page, name: str) -> None:
    see(page, "document-row").filter(has_text=name).get_by_test_id("document-open").click()
    expect(page.get_by_test_id("source-file")).to_have_text(name)


def test_the_page_never_replaces_the_answer_or_the_sources(page: Page) -> None:
    """WEB-4"""
    assert shown(page) == PANES[:2]
    ask(page, QUESTION).get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("page-image")).to_be_visible()
    assert shown(page) == PANES
    places = [page.locator(pane).bounding_box() for pane in PANES]
    lefts = [place["x"] for place in places if place]
    assert lefts == sorted(lefts)
    assert len(set(lefts)) == 3


def test_the_tabs_of_the_sources_work_with_the_keyboard(page: Page) -> None:
    """WEB-1"""
    library, conversations = (see(page, "source-tab", tab=name) for name in ("library", "conversations"))
    library.focus()
    page.keyboard.press("ArrowRight")
    expect(conversations).to_be_focused()
    expect(conversations).to_have_attribute("aria-selected", "true")
    expect(page.locator("#tab-conversations")).to_be_visible()
    expect(page.locator("#tab-library")).to_be_hidden()


def test_words_are_found_and_stepped_through_with_the_keyboard(page: Page) -> None:
    """WEB-4, LIB-9"""
    read(page, "boiler.pdf")
    page.get_by_test_id("show-text").click()
    page.get_by_test_id("find-open").click()
    page.keyboard.type("BOILER burns")
    expect(page.get_by_test_id("find-count")).to_have_text("1 of 2")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("find-count")).to_have_text("2 of 2")
    expect(page.get_by_test_id("page-number")).to_have_text("page 2 of 2")
    expect(page.get_by_test_id("page-mark")).to_have_text("The boiler burns".removeprefix("The "))
    page.keyboard.press("Shift+Enter")
    expect(page.get_by_test_id("page-number")).to_have_text("page 1 of 2")
    page.get_by_test_id("find-field").fill("walrus")
    expect(page.get_by_test_id("find-count")).to_have_text("Not found")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("find-open")).to_be_focused()
    expect(page.get_by_test_id("source-panel")).to_be_visible()


def test_the_outline_leads_to_a_section(page: Page) -> None:
    """WEB-4, LIB-9"""
    read(page, "handbook.md")
    page.get_by_test_id("outline-open").click()
    expect(page.get_by_test_id("outline-line")).to_contain_text(["Heating", "Chimneys"])
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("page-text")).to_contain_text("The chimney is swept in March.")
    expect(page.get_by_test_id("outline")).to_be_hidden()


@pytest.mark.parametrize(("tool", "opened"), [("outline", "outline"), ("find", "find-field")])
def test_escape_closes_an_open_tool_of_the_pane_and_then_the_pane(page: Page, tool: str, opened: str) -> None:
    """WEB-1, WEB-4"""
    read(page, "handbook.md")
    page.get_by_test_id(f"{tool}-open").click()
    expect(page.get_by_test_id(opened)).to_be_visible()
    page.get_by_test_id("page-next").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id(opened)).to_be_hidden()
    expect(page.get_by_test_id(f"{tool}-open")).to_be_focused()
    expect(page.get_by_test_id("source-panel")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("source-panel")).to_be_hidden()


def test_a_phone_shows_one_pane_and_leads_back_to_the_answer(phone: Page) -> None:
    """WEB-1, WEB-4"""
    assert shown(phone) == ["#view-chat"]
    ask(phone, QUESTION).get_by_test_id("citation").first.tap()
    expect(phone.get_by_test_id("page-image")).to_be_visible()
    assert (shown(phone), phone.evaluate(TOO_WIDE)) == (["#source"], 0)
    see(phone, "view-tab", view="chat").tap()
    assert shown(phone) == ["#view-chat"]
    see(phone, "view-tab", view="page").tap()
    back = phone.get_by_test_id("source-close")
    expect(back).to_have_text("Retour")
    back.tap()
    assert shown(phone) == ["#view-chat"]
    expect(see(phone, "view-tab", view="page")).to_be_disabled()


def test_a_phone_zooms_to_the_words(phone: Page) -> None:
    """WEB-4"""
    ask(phone, QUESTION).get_by_test_id("citation").first.tap()
    image = phone.get_by_test_id("page-image")
    expect(image).to_be_visible()
    phone.wait_for_function("() => document.querySelector('img.sheet').offsetWidth > 500")
    box, pane = image.bounding_box(), phone.locator(".page-scroll").bounding_box()
    assert box is not None
    assert pane is not None
    words = box["x"] + box["width"] * 0.12  # the margin of the page
    assert pane["x"] <= words < pane["x"] + pane["width"] / 3
