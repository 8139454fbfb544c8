"""What the page does when something goes wrong: files that are lost or refused, failed requests, hostile names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, Route, expect

from tests.acceptance.support import writing
from tests.browser.test_library_page import DESKTOP, Tab, ask, see, text_file, upload
from tests.support import documents
from tests.support.local_server import LocalServer, Person

FACT = "The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn in winter?"
DROP = """(name) => {
    const data = new DataTransfer();
    data.items.add(new File(["The chimney was swept in March."], name, { type: "text/plain" }));
    dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(ada: Person, tab: Tab) -> Iterator[Page]:
    yield from tab.open(ada)


def cut(route: Route) -> None:
    route.abort()


def refuse(route: Route) -> None:
    problem = {"status": 500, "code": "internal", "title": "Internal", "detail": "It broke.", "request_id": "r-42"}
    route.fulfill(status=500, json=problem, headers={"content-type": "application/problem+json"})


# Files


def test_a_file_dropped_while_a_source_is_open_shows_at_once(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-2"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", FACT))
    ask(page, QUESTION).get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-file")).to_be_visible()
    page.evaluate(DROP, "chimney.txt")
    expect(page.locator("#source[open]")).to_have_count(0)
    expect(see(page, "document-row", status="indexed").filter(has_text="chimney.txt")).to_be_visible()


def test_leaving_during_an_upload_asks_first(page: Page, tmp_path: Path) -> None:
    """WEB-2"""
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    held: list[Route] = []
    page.route(re.compile("/api/rag/documents$"), lambda route: held.append(route))
    page.get_by_test_id("upload-input").set_input_files(text_file(tmp_path, "boiler.txt", FACT))
    expect(page.get_by_test_id("upload-row")).to_be_visible()
    page.once("dialog", stay)
    page.get_by_test_id("question").click()
    page.reload()
    assert asked == ["beforeunload"]


def test_a_document_whose_file_never_arrived_says_so_and_takes_it_again(
    page: Page, ada: Person, tmp_path: Path
) -> None:
    """WEB-2, LIB-6"""
    ada.announce("boiler.txt")
    page.reload()
    row = see(page, "document-row", status="awaiting_upload")
    expect(row).to_contain_text("This file has not arrived.")
    with page.expect_file_chooser() as chooser:
        row.get_by_test_id("document-upload-again").click()
    chooser.value.set_files(text_file(tmp_path, "boiler.txt", FACT))
    expect(see(page, "document-row", status="indexed")).to_contain_text("boiler.txt")
    expect(page.get_by_test_id("document-row")).to_have_count(1)


def test_a_refused_file_stays_listed_until_it_is_dismissed(page: Page, tmp_path: Path) -> None:
    """WEB-2"""
    page.get_by_test_id("upload-input").set_input_files(text_file(tmp_path, "boiler.exe", FACT))
    row = see(page, "upload-row", state="failed")
    expect(row).to_contain_text("boiler.exe")
    expect(row.get_by_test_id("upload-action")).to_have_count(0)
    page.get_by_test_id("place-trash").click()
    page.get_by_test_id("place-all").click()
    expect(row).to_be_visible()
    page.get_by_test_id("upload-dismiss").click()
    expect(row).to_have_count(0)


def test_an_upload_that_the_network_stopped_can_be_tried_again(page: Page, tmp_path: Path) -> None:
    """WEB-2"""
    address = re.compile("/api/rag/documents$")
    page.route(address, cut)
    page.get_by_test_id("upload-input").set_input_files(text_file(tmp_path, "boiler.txt", FACT))
    expect(see(page, "upload-row", state="failed")).to_contain_text("could not be reached")
    page.unroute(address, cut)
    page.get_by_test_id("upload-action").click()
    expect(see(page, "document-row", status="indexed")).to_be_visible()


# Requests


def test_a_failed_request_says_what_failed_with_its_id_and_a_retry(page: Page, ada: Person) -> None:
    """WEB-1"""
    note = writing.write(ada, FACT, title="Boiler")
    page.reload()
    page.route(f"**/notes/{note['id']}", refuse)
    page.get_by_test_id("note-open").click()
    shown = page.get_by_test_id("toast")
    expect(shown).to_contain_text("This could not be opened.")
    expect(shown.get_by_test_id("request-id")).to_have_text("Request r-42")
    page.unroute(f"**/notes/{note['id']}", refuse)
    shown.get_by_test_id("fault-retry").click()
    expect(page.get_by_test_id("note-dialog")).to_be_visible()
    expect(shown).to_have_count(0)
    page.get_by_test_id("note-close").click()


def test_a_library_that_cannot_be_reached_does_not_look_empty(page: Page, ada: Person) -> None:
    """WEB-1, WEB-2"""
    expect(page.get_by_test_id("library-empty")).to_be_visible()
    page.route("**/api/rag/documents?*", cut)
    page.reload()
    expect(page.get_by_test_id("library-fault")).to_contain_text("Your library could not be loaded.")
    expect(page.get_by_test_id("library-empty")).to_be_hidden()
    page.unroute("**/api/rag/documents?*", cut)
    page.get_by_test_id("library-fault").get_by_test_id("fault-retry").click()
    expect(page.get_by_test_id("library-empty")).to_be_visible()
    expect(page.get_by_test_id("library-fault")).to_have_count(0)


# Names and settings


def test_a_document_has_one_name_everywhere(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-2, WEB-4"""
    upload(page, documents.make_pdf(tmp_path / "boiler.pdf", FACT, title="Boiler handbook"))
    ask(page, QUESTION).get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-file")).to_have_text("boiler.pdf")
    page.get_by_test_id("source-close").click()
    page.get_by_test_id("document-row").hover()
    page.get_by_test_id("document-attach").click()
    expect(page.get_by_test_id("scope-pill")).to_have_text("boiler.pdf")
    page.get_by_test_id("document-info").click()
    expect(page.get_by_role("heading", name="boiler.pdf")).to_be_visible()
    expect(page.get_by_test_id("document-metadata")).to_contain_text("Boiler handbook")
    page.get_by_test_id("document-close").click()


def test_a_name_cannot_turn_the_text_around_it(page: Page, ada: Person) -> None:
    """WEB-1: a right-to-left override makes `exe.txt` look like another type of file, and reorders what follows."""
    ada.follow(ada.add_bytes("invoice\u202etxt.exe.txt", FACT.encode())["id"])
    page.reload()
    expect(page.locator(".document-title")).to_have_text("invoicetxt.exe.txt")
    shown = page.get_by_test_id("document-attach").get_attribute("aria-label") or ""
    assert "\u202e" not in shown


def test_the_settings_are_in_the_language_of_the_page(page: Page, server: LocalServer, tab: Tab) -> None:
    """WEB-1, SET-5"""
    with server.person("root", admin=True) as root:
        opening = tab.open(root)
        next(opening)
        page.get_by_test_id("language-switch").click()
        page.get_by_test_id("settings-open").click()
        dialog = page.get_by_test_id("settings-dialog")
        see(page, "settings-tab", key="limits").click()
        field = see(page, "setting-field", key="retention_days")
        expect(field).to_contain_text("Jours de conservation d’une conversation")
        expect(field).to_contain_text("Nombre de jours après son dernier message")
        english = re.compile(r"\b(the|of|that|which|one)\b")
        assert [text for text in dialog.locator("label, .hint").all_inner_texts() if english.search(text)] == []
        field.get_by_role("textbox").fill("0")
        page.get_by_test_id("settings-save").click()
        expect(field.get_by_test_id("setting-fault")).to_have_text("Cette valeur n’est pas acceptée.")
        page.get_by_test_id("settings-close").click()
        page.get_by_test_id("language-switch").click()
