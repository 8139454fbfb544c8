"""A walk through every view of the page: what a test looks at when a rule holds for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, ViewportSize, expect

from tests.acceptance.support import writing
from tests.support import documents
from tests.support.local_server import Json, Person

expect.set_options(timeout=60_000)
WIDTHS: Final[dict[str, ViewportSize]] = {
    "desktop": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}
LEASE: Final = (
    "The lease runs until 30 June 2031. The rent is 1,240 euros a month.",
    "Either party ends the lease with three months' notice. The deposit is two months' rent.",
)
DIALOG: Final = "dialog[open]:not(#source)"
QUESTION: Final = "When does the lease end, and how much notice ends it?"
UNANSWERED: Final = "Who won the regatta of the walruses?"


def furnish(person: Person, folder: Path) -> Json:
    """A library with something of every kind, and a conversation with an answer and a refusal; returns its document."""
    notebook = person.post("/notebooks", title="House")["id"]
    document = person.add(documents.make_pdf(folder / "lease.pdf", *LEASE), notebook_id=notebook)
    person.follow(person.add_bytes("broken.pdf", b"%PDF-1.7 nothing")["id"])
    person.announce("never sent.pdf")
    writing.save(
        person, "# Keys\n\nThe *spare* key hangs in the cellar.\n\n| key | place |\n|---|---|\n| door | hall |"
    )
    conversation = person.ask(QUESTION)["conversation_id"]
    person.ask(UNANSWERED, conversation_id=conversation)
    return document


def go(page: Page, view: str) -> None:
    """On a phone, to the tab of a view."""
    tab = page.locator(f".tab[data-view={view}]")
    if tab.is_visible():
        tab.click()


def list_sources(page: Page, tab: str) -> None:
    """To the pane of sources, with the library or the conversations in it."""
    go(page, "sources")
    page.locator(f"[data-testid=source-tab][data-tab={tab}]").click()


def see_dialog(page: Page) -> None:
    """Waits for the dialog that was asked for: its module may still be on its way."""
    expect(page.locator(DIALOG)).to_have_count(1)


def close_dialog(page: Page) -> None:
    page.keyboard.press("Escape")
    expect(page.locator(DIALOG)).to_have_count(0)


def walk(page: Page) -> Iterator[str]:
    """Opens each view of a furnished library in turn, and yields its name while it is shown."""
    for name, visit in VIEWS.items():
        yield from (f"{name}{part}" for part in visit(page))


def _visit_empty(page: Page) -> Iterator[str]:
    go(page, "sources")
    page.get_by_test_id("new-conversation").click()
    go(page, "chat")
    expect(page.get_by_test_id("welcome")).to_have_attribute("data-state", "ready")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    yield ""


def _visit_conversations(page: Page) -> Iterator[str]:
    list_sources(page, "conversations")
    row = page.get_by_test_id("conversation-row")
    expect(row).to_have_count(1)
    yield ""
    row.hover()
    row.get_by_test_id("conversation-delete").click()
    see_dialog(page)
    yield ": delete"
    page.get_by_test_id("confirm-no").click()


def _visit_version(page: Page) -> Iterator[str]:
    page.get_by_test_id("rate-down").last.click()
    expect(page.get_by_test_id("rating-form")).to_be_visible()
    yield ": rating"
    page.get_by_test_id("rate-down").last.click()
    page.get_by_test_id("question-edit").last.click()
    yield ": edit"
    page.keyboard.press("Escape")


def _visit_answer(page: Page) -> Iterator[str]:
    list_sources(page, "conversations")
    page.get_by_test_id("conversation-open").first.click()
    go(page, "chat")
    expect(page.get_by_test_id("answer")).to_have_count(2)
    yield ""
    page.get_by_test_id("answer-keep").first.click()
    see_dialog(page)
    yield ": keep"
    close_dialog(page)
    page.get_by_test_id("attach-open").click()
    see_dialog(page)
    yield ": attach"
    close_dialog(page)


def _visit_source(page: Page) -> Iterator[str]:
    page.get_by_test_id("source-row").first.click()
    expect(page.get_by_test_id("page-image")).to_be_visible()
    yield ""
    page.get_by_test_id("show-text").click()
    expect(page.get_by_test_id("page-text")).to_be_visible()
    yield ": text"
    page.get_by_test_id("source-close").click()


def _visit_library(page: Page) -> Iterator[str]:
    list_sources(page, "library")
    expect(page.get_by_test_id("document-row")).to_have_count(3)
    yield ""


def _visit_document(page: Page) -> Iterator[str]:
    list_sources(page, "library")
    row = page.get_by_test_id("document-row").filter(has_text="lease")
    row.hover()
    row.get_by_test_id("document-info").click()
    expect(page.get_by_test_id("document-health")).to_be_visible()
    yield ""
    close_dialog(page)


def _visit_note(page: Page) -> Iterator[str]:
    list_sources(page, "library")
    page.get_by_test_id("note-open").first.click()
    expect(page.get_by_test_id("note-content")).to_be_visible()
    yield ""
    page.get_by_test_id("note-read").click()
    yield ": read"
    page.get_by_test_id("note-close").click()
    expect(page.get_by_test_id("note-dialog")).to_have_count(0)


def _visit_settings(page: Page) -> Iterator[str]:
    page.get_by_test_id("settings-open").click()
    expect(page.get_by_test_id("settings-dialog")).to_be_visible()
    for tab in page.get_by_test_id("settings-tab").all():
        tab.click()
        for experts in page.locator("details:not([open]).experts > summary").locator("visible=true").all():
            experts.click()
        yield f": {tab.get_attribute('data-key')}"
    close_dialog(page)


def _visit_shortcuts(page: Page) -> Iterator[str]:
    page.keyboard.press("Escape")
    page.locator("body").press("?")
    expect(page.get_by_test_id("shortcuts-dialog")).to_be_visible()
    yield ""
    close_dialog(page)


VIEWS: Final[dict[str, Callable[[Page], Iterator[str]]]] = {
    "empty conversation": _visit_empty,
    "conversations": _visit_conversations,
    "answer": _visit_answer,
    "question": _visit_version,
    "source": _visit_source,
    "library": _visit_library,
    "document": _visit_document,
    "note": _visit_note,
    "settings": _visit_settings,
    "shortcuts": _visit_shortcuts,
}
