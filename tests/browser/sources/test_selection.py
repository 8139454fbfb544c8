"""Several documents at once, the trash with its way back, filters, and the plain search, by pointer and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.acceptance.support import writing
from tests.browser.test_library_page import DESKTOP, TOO_WIDE, Tab, see, text_file
from tests.support import documents
from tests.support.local_server import Person

NAMES = ["a.txt", "b.txt", "c.txt", "d.txt"]
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module", params=["en-US", "fr-FR"])
def tab(browser: Browser, request: pytest.FixtureRequest) -> Tab:
    return Tab(browser, viewport=DESKTOP, locale=request.param)


@pytest.fixture
def page(ada: Person, tab: Tab, tmp_path: Path) -> Iterator[Page]:
    """The library holds the documents d, c, b and a, from the top."""
    for name in NAMES:
        ada.add(text_file(tmp_path, name, f"The boiler of house {name[0]} burns wood chips."))
    yield from tab.open(ada)


def row(page: Page, name: str) -> Locator:
    return see(page, "document-row").filter(has_text=name)


def box(page: Page, name: str) -> Locator:
    return row(page, name).get_by_test_id("document-select")


def selected(page: Page) -> list[str]:
    return page.locator(".document.selected .document-title").all_inner_texts()


def test_shift_selects_a_range_and_the_trash_gives_it_back(page: Page, ada: Person) -> None:
    """WEB-2, LIB-1"""
    box(page, "d.txt").click()
    box(page, "b.txt").click(modifiers=["Shift"])
    assert selected(page) == ["d.txt", "c.txt", "b.txt"]
    page.get_by_test_id("selection-trash").click()
    expect(see(page, "document-row")).to_have_count(1)
    assert [item["file_name"] for item in ada.get("/documents")["items"]] == ["a.txt"]
    page.get_by_test_id("trash-receipt-action").click()
    expect(see(page, "document-row")).to_have_count(4)
    assert len(ada.get("/documents")["items"]) == 4


def test_the_keyboard_alone_selects_and_trashes(page: Page) -> None:
    """WEB-1, WEB-2"""
    box(page, "d.txt").focus()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    assert selected(page) == ["d.txt", "c.txt", "b.txt"]
    page.keyboard.press("Space")
    assert selected(page) == ["d.txt", "c.txt"]
    page.keyboard.press("Delete")
    expect(see(page, "document-row")).to_have_count(2)
    expect(page.get_by_test_id("selection")).to_be_hidden()


def test_what_is_selected_is_moved_or_becomes_the_search_scope(page: Page, ada: Person) -> None:
    """WEB-2, CHAT-3"""
    notebook = writing.add_notebook(ada)
    box(page, "d.txt").click()
    page.keyboard.press("Control+a")
    page.get_by_test_id("selection-move").select_option(notebook)
    expect(page.get_by_test_id("selection")).to_be_hidden()
    expect(see(page, "notebook-row").locator(".place-count")).to_have_text("4")
    box(page, "d.txt").click()
    box(page, "a.txt").click()
    page.get_by_test_id("selection-attach").click()
    expect(page.get_by_test_id("scope-pill")).to_have_text(["d.txt", "a.txt"])


def test_a_failure_names_what_failed_and_can_be_tried_again(page: Page) -> None:
    page.route("**/trash", lambda route: route.fulfill(status=500, json={"status": 500, "detail": "It broke."}))
    row(page, "d.txt").hover()
    row(page, "d.txt").get_by_test_id("document-trash").click()
    expect(page.get_by_test_id("toast")).to_contain_text("d.txt")
    page.unroute("**/trash")
    page.get_by_test_id("fault-retry").click()
    expect(see(page, "document-row")).to_have_count(3)


def test_the_trash_restores_a_document_or_deletes_it_for_good(page: Page, ada: Person) -> None:
    """LIB-1, LIB-8"""
    for name in ("d.txt", "c.txt"):
        row(page, name).hover()
        row(page, name).get_by_test_id("document-trash").click()
        expect(row(page, name)).to_have_count(0)
    page.get_by_test_id("place-trash").click()
    expect(see(page, "document-row")).to_have_count(2)
    row(page, "c.txt").hover()
    row(page, "c.txt").get_by_test_id("document-restore").click()
    row(page, "d.txt").hover()
    row(page, "d.txt").get_by_test_id("document-delete").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("library-empty")).to_be_visible()
    page.get_by_test_id("place-all").click()
    expect(page.locator("#documents .document-title")).to_have_text(["c.txt", "b.txt", "a.txt"])


def test_filters_leave_out_what_does_not_match(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-2, LIB-6"""
    ada.add(text_file(tmp_path, "plan.md", "La chaudière brûle du bois pendant tout l'hiver."))
    ada.add(text_file(tmp_path, "empty.txt", " "))
    page.reload()
    page.get_by_test_id("filter-open").click()
    expect(page.get_by_test_id("filter-status")).to_be_focused()
    for field, value, found in [
        ("status", "failed", ["empty.txt"]),
        ("type", "md", []),
        ("status", "", ["plan.md"]),
        ("lang", "fr", ["plan.md"]),
        ("lang", "en", []),
    ]:
        page.get_by_test_id(f"filter-{field}").select_option(value)
        expect(page.locator("#documents .document-title")).to_have_text(found)
    page.get_by_test_id("filter-clear").click()
    expect(see(page, "document-row")).to_have_count(6)
    page.get_by_test_id("filter-added").select_option("7")
    page.get_by_test_id("filter-author").fill("Nobody")
    expect(see(page, "document-row")).to_have_count(0)


def test_an_author_filters_whatever_the_case_and_accents(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-2, RET-10"""
    for name, author in (("wood", "Zoé Müller"), ("peat", "Ada Larsen")):
        ada.add(documents.make_pdf(tmp_path / f"{name}.pdf", f"The boiler burns {name}.", author=author))
    page.reload()
    page.get_by_test_id("filter-open").click()
    page.get_by_test_id("filter-author").fill("MULLER zoe")
    expect(page.locator("#documents .document-title")).to_have_text(["wood.pdf"])
    expect(page.get_by_test_id("filter-open")).to_have_class(re.compile("in-use"))


def test_a_plain_search_shows_passages_and_opens_them_on_their_page(page: Page) -> None:
    """WEB-2, RET-11"""
    page.get_by_test_id("title-filter").fill("house b")
    page.keyboard.press("Enter")
    first = page.get_by_test_id("passage").first
    expect(first).to_contain_text("b.txt")
    assert first.locator("mark").all_inner_texts() == ["house"]
    first.click()
    expect(page.get_by_test_id("page-mark")).to_have_text("The boiler of house b burns wood chips.")
    page.get_by_test_id("passages-close").click()
    expect(page.get_by_test_id("title-filter")).to_be_focused()
    expect(page.get_by_test_id("source-panel")).to_be_visible()


@pytest.fixture
def phone(ada: Person, browser: Browser, tmp_path: Path) -> Iterator[Page]:
    for name in NAMES[:2]:
        ada.add(text_file(tmp_path, name, f"The boiler of {name} burns wood chips."))
    yield from Tab(browser, viewport=PHONE, has_touch=True, is_mobile=True).open(ada)


def test_a_phone_selects_with_a_button(phone: Page) -> None:
    """WEB-1, WEB-2"""
    see(phone, "view-tab", view="sources").tap()
    phone.get_by_test_id("select").tap()
    for checkbox in phone.get_by_test_id("document-select").all():
        checkbox.tap()
    expect(phone.get_by_test_id("selection-count")).to_have_text("2 selected")
    phone.get_by_test_id("selection-trash").tap()
    expect(see(phone, "document-row")).to_have_count(0)
    assert phone.evaluate(TOO_WIDE) == 0
