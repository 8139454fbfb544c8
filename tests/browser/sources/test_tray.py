"""The tray of uploads: one line for all of them, the reasons of what failed, and a way to be rid of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from tests.browser.test_library_page import DESKTOP, TOO_WIDE, Tab, see, text_file
from tests.support import documents
from tests.support.local_server import LocalServer, Person

WIDTHS: list[ViewportSize] = [DESKTOP, {"width": 390, "height": 844}]


@pytest.fixture(scope="module", params=WIDTHS, ids=["desktop", "phone"])
def tab(browser: Browser, request: pytest.FixtureRequest) -> Tab:
    return Tab(browser, viewport=request.param)


@pytest.fixture
def page(ada: Person, tab: Tab) -> Iterator[Page]:
    yield from tab.open(ada)


def add(page: Page, *files: Path) -> None:
    sources = see(page, "view-tab", view="sources")
    if sources.is_visible():
        sources.click()
    page.get_by_test_id("upload-input").set_input_files(files)


def test_the_tray_says_how_far_all_files_are(page: Page, server: LocalServer, tmp_path: Path) -> None:
    """WEB-2"""
    tray = page.get_by_test_id("tray-text")
    files = [
        documents.make_pdf(tmp_path / f"{name}.pdf", f"House {name}.", "It burns wood.") for name in ("one", "two")
    ]
    with server.worker.paused():
        add(page, *files)
        expect(tray).to_have_text("0 of 2 ready; waiting to be read")
        expect(page.get_by_test_id("tray-dismiss")).to_be_hidden()
        expect(page.get_by_test_id("document-progress").first).to_have_css("animation-name", "none")
        assert page.evaluate(TOO_WIDE) == 0
    expect(tray).to_have_text("2 of 2 ready")
    expect(tray).to_be_hidden()


def test_the_tray_names_the_page_that_is_read(page: Page, server: LocalServer, tmp_path: Path) -> None:
    """WEB-2, LIB-6"""
    reading = {"status": "processing", "progress": {"done": 7, "total": 17}}

    def poll(route: Route) -> None:
        route.fulfill(json=route.fetch(url=route.request.url.split("?")[0]).json() | reading)

    page.route("**/api/rag/documents/*?*", poll)
    with server.worker.paused():
        add(page, documents.make_pdf(tmp_path / "lease.pdf", "The lease."))
        expect(page.get_by_test_id("tray-text")).to_have_text("0 of 1 ready; reading lease.pdf, page 8 of 17")
    page.unroute_all(behavior="ignoreErrors")  # the page polls on


def test_a_file_that_could_not_be_read_stays_in_the_tray_with_its_reason(page: Page, tmp_path: Path) -> None:
    """WEB-2"""
    add(page, text_file(tmp_path, "empty.txt", " "), text_file(tmp_path, "boiler.txt", "The boiler burns wood."))
    expect(page.get_by_test_id("tray-text")).to_have_text("1 of 2 ready; 1 not added")
    expect(see(page, "upload-row", state="failed")).to_contain_text("The file is empty.")
    page.get_by_test_id("tray-dismiss").click()
    expect(page.get_by_test_id("tray")).to_be_hidden()
    expect(see(page, "document-row", status="failed")).to_be_visible()


def test_the_file_in_work_is_listed_first(page: Page, tmp_path: Path) -> None:
    """WEB-2"""
    page.route("**/api/rag/documents", lambda route: None if route.request.method == "POST" else route.continue_())
    add(page, *(text_file(tmp_path, f"{number}.txt", "The boiler burns wood.") for number in range(4)))
    expect(see(page, "upload-row")).to_have_count(4)
    states = see(page, "upload-row").evaluate_all("rows => rows.map((row) => row.dataset.state)")
    assert states == ["checking", "checking", "queued", "queued"]
    for _ in states:
        page.get_by_test_id("upload-dismiss").first.click()
    expect(page.get_by_test_id("tray")).to_be_hidden()
