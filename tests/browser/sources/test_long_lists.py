"""Lists of any length stay light: what is far from the visible part is not in the page, and comes back where it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.sources import long_library
from tests.browser.test_library_page import DESKTOP, Tab, see
from tests.support.local_server import LocalServer, Person

MOST_NODES = 2500
COUNT = "() => document.querySelectorAll('*').length"
SCROLL = "(at) => { document.querySelector('.conversations .scroll').scrollTop = at; }"
TO_THE_END = "() => { const list = document.getElementById('shelves'); list.scrollTop = list.scrollHeight; }"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(server: LocalServer, ada: Person, tab: Tab) -> Iterator[Page]:
    long_library.add_documents(server, ada)
    yield from tab.open(ada)


@pytest.fixture
def tall_page(server: LocalServer, ada: Person, browser: Browser) -> Iterator[Page]:
    long_library.add_documents(server, ada)
    long_library.add_conversations(server, ada)
    yield from Tab(browser, viewport={"width": 1280, "height": 9000}).open(ada)


def load_all(page: Page) -> None:
    rows = see(page, "document-row")
    for count in range(50, long_library.DOCUMENTS, 50):
        expect(rows).to_have_count(count)
        page.evaluate(TO_THE_END)
    expect(rows).to_have_count(long_library.DOCUMENTS)


def test_500_documents_and_300_messages_are_few_nodes(page: Page, server: LocalServer, ada: Person) -> None:
    """WEB-1"""
    conversation = long_library.add_conversation(server, ada)
    page.goto(f"{ada.server.base_url}/#c={conversation}")
    expect(page.get_by_text("What does the boiler of building 149 burn?")).to_be_visible()
    load_all(page)
    page.evaluate(TO_THE_END)
    expect(page.get_by_text("Report 500 on heating.pdf")).to_be_visible()
    page.wait_for_function(f"() => document.querySelectorAll('*').length <= {MOST_NODES}")
    page.evaluate("() => { document.getElementById('messages').scrollTo({ top: 0, behavior: 'instant' }); }")
    expect(page.get_by_text("What does the boiler of building 0 burn?")).to_be_visible()
    page.wait_for_function(f"() => document.querySelectorAll('*').length <= {MOST_NODES}")


def test_a_window_taller_than_what_is_loaded_at_once_is_filled(tall_page: Page) -> None:
    """WEB-1: with documents, and with conversations."""
    expect(tall_page.get_by_text("Report 120 on heating.pdf")).to_be_visible()
    tall_page.locator("[data-testid=source-tab][data-tab=conversations]").click()
    expect(tall_page.get_by_text("Heating 90", exact=True)).to_be_visible()


def test_a_document_that_was_scrolled_away_comes_back_in_its_place(page: Page) -> None:
    """WEB-2"""
    load_all(page)
    expect(page.get_by_text("Report 1 on heating.pdf")).to_have_count(0)
    page.evaluate("() => { document.getElementById('shelves').scrollTop = 0; }")
    expect(page.get_by_text("Report 1 on heating.pdf")).to_be_visible()
    assert page.locator("#documents .document-title").all_inner_texts()[:2] == [
        "Report 1 on heating.pdf",
        "Report 2 on heating.pdf",
    ]


def test_the_keyboard_walks_through_rows_that_were_not_drawn(page: Page) -> None:
    """WEB-1"""
    page.get_by_test_id("document-select").first.focus()
    for _ in range(30):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Select “Report 31 on heating.pdf”")).to_be_focused()
    expect(page.get_by_text("Report 31 on heating.pdf")).to_be_in_viewport()


def load_conversations(page: Page) -> None:
    """Scrolls until all of them are loaded."""
    page.locator("[data-testid=source-tab][data-tab=conversations]").click()
    for parts in range(1, -(-long_library.CONVERSATIONS // 30) + 1):
        page.wait_for_function(f"() => document.getElementById('conversation-list').childElementCount === {parts}")
        page.evaluate(SCROLL, 10_000_000)
    expect(page.get_by_test_id("conversations-more")).to_be_hidden()


def test_2000_conversations_are_few_nodes_in_their_places(page: Page, server: LocalServer, ada: Person) -> None:
    """WEB-1"""
    long_library.add_conversations(server, ada)
    page.reload()
    load_conversations(page)
    last = page.get_by_text("Heating 2000", exact=True)
    expect(last).to_be_in_viewport()
    page.wait_for_function(f"() => document.querySelectorAll('*').length <= {MOST_NODES}")
    page.evaluate(SCROLL, 0)
    expect(page.get_by_text("Heating 1", exact=True)).to_be_in_viewport()
    expect(last).to_have_count(0)
    page.wait_for_function(f"() => document.querySelectorAll('*').length <= {MOST_NODES}")
