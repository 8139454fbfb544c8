"""Notebooks, notes and documents on the page, in a real browser; every test has its own user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, ConsoleMessage, Locator, Page, Route, ViewportSize, expect

from functions.adapters.laptop import object_rows
from functions.adapters.laptop.object_store import LocalObjectStore
from tests.acceptance.support import writing
from tests.support import documents
from tests.support.fakes import storage_refusals
from tests.support.local_server import LocalServer, Person

PATIENCE = 30_000
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 720}
BOILER = "The boiler burns wood chips in winter."
CHIMNEY = "The chimney was swept by a walrus in March."
expect.set_options(timeout=PATIENCE)
ERROR_RESPONSE = "Failed to load resource"  # Chromium logs every response of 400 and above


class Tab:
    """A page that is opened anew for each test, keeps its cache, and records its console."""

    def __init__(self, browser: Browser, locale: str = "en-US", **context: Any) -> None:
        self.page = browser.new_context(locale=locale, reduced_motion="reduce", **context).new_page()
        self.page.set_default_timeout(PATIENCE)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._record)

    def _record(self, message: ConsoleMessage) -> None:
        if message.type == "error" and ERROR_RESPONSE not in message.text:
            self.errors.append(message.text)

    def open(self, person: Person) -> Iterator[Page]:
        """The page, signed in as this person; an error in its console fails the test."""
        self.page.unroute_all()
        self.page.route("**/api/local/token", lambda route: route.fulfill(json={"token": person.token}))
        self.page.goto(person.server.base_url)
        yield self.page
        assert self.errors == []


@pytest.fixture(scope="module")
def desktop(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(ada: Person, desktop: Tab) -> Iterator[Page]:
    yield from desktop.open(ada)


@pytest.fixture
def phone(ada: Person, browser: Browser) -> Iterator[Page]:
    yield from Tab(browser, viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark").open(ada)


def see(page: Page, testid: str, **attributes: str) -> Locator:
    """The element with this test id and these data attributes."""
    return page.locator(f"[data-testid={testid}]" + "".join(f'[data-{k}="{v}"]' for k, v in attributes.items()))


def create_notebook(page: Page, title: str) -> None:
    page.get_by_test_id("notebook-new").click()
    page.get_by_test_id("notebook-title-input").fill(title)
    page.keyboard.press("Enter")
    expect(see(page, "notebook-row").filter(has_text=title).locator("[aria-current=true]")).to_be_visible()


def upload(page: Page, *files: Path) -> None:
    indexed = see(page, "document-row", status="indexed")
    before = indexed.count()
    page.get_by_test_id("upload-input").set_input_files(files)
    expect(indexed).to_have_count(before + len(files))


def write_note(page: Page, title: str, content: str) -> None:
    """Writes a new note and leaves it open once it is indexed."""
    page.get_by_test_id("note-new").click()
    page.get_by_test_id("note-title").fill(title)
    page.get_by_test_id("note-content").fill(content)
    page.get_by_test_id("note-content").blur()
    expect(page.get_by_test_id("note-status")).to_have_text("Saved · indexed (1 passage)")


def open_note(page: Page) -> None:
    page.get_by_test_id("note-open").click()
    expect(page.get_by_test_id("note-dialog")).to_be_visible()


def ask(page: Page, question: str) -> Locator:
    """The finished answer."""
    page.get_by_test_id("question").fill(question)
    page.get_by_test_id("send").click()
    answer = page.get_by_test_id("answer").last
    expect(answer).to_have_attribute("data-state", re.compile("done|failed"))
    return answer


def titles(page: Page) -> list[str]:
    """The titles that the library shows, from the top."""
    return page.locator("#shelves .document-title").all_inner_texts()


def text_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# Notebooks


def test_an_open_notebook_receives_new_items_and_is_the_search_scope(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-2, LIB-1, CHAT-3"""
    create_notebook(page, "Heating")
    upload(page, text_file(tmp_path, "boiler.txt", BOILER))
    write_note(page, "Chimney", CHIMNEY)
    page.get_by_test_id("note-close").click()
    (notebook,) = ada.get("/notebooks")["items"]
    assert (notebook["note_count"], notebook["document_count"]) == (1, 1)
    expect(page.locator(".place-count")).to_have_text("2")
    answer = ask(page, "What does the boiler burn in winter?")
    expect(answer.get_by_test_id("answer-scope")).to_have_text("Searched this notebook")
    expect(answer.get_by_test_id("answer-text")).to_contain_text(BOILER)


def test_the_notebook_in_the_search_scope_is_shown_and_can_be_removed(page: Page, ada: Person) -> None:
    """WEB-2, CHAT-3"""
    writing.write(ada, BOILER, title="Elsewhere")
    create_notebook(page, "Heating")
    pill = page.get_by_test_id("scope-pill")
    expect(pill).to_have_text("Heating")
    page.get_by_test_id("scope-pill-remove").click()
    expect(pill).to_have_count(0)
    answer = ask(page, "What does the boiler burn in winter?")
    expect(answer.get_by_test_id("answer-scope")).to_have_text("Searched the whole library")
    page.get_by_test_id("new-conversation").click()
    expect(pill).to_have_text("Heating")


def test_a_conversation_keeps_searching_the_notebook_it_started_in(page: Page, ada: Person, tmp_path: Path) -> None:
    """CHAT-3"""
    create_notebook(page, "Heating")
    upload(page, text_file(tmp_path, "boiler.txt", BOILER))
    ask(page, "What does the boiler burn in winter?")
    page.reload()
    expect(page.get_by_test_id("scope-pill")).to_contain_text("Heating")
    expect(page.get_by_test_id("scope-pill-remove")).to_have_count(0)
    answer = ask(page, "And what burns wood chips?")
    expect(answer.get_by_test_id("answer-scope")).to_have_text("Searched this notebook")


def test_a_notebook_is_renamed_in_the_list(page: Page, ada: Person) -> None:
    create_notebook(page, "Heating")
    page.get_by_test_id("notebook-row").hover()
    page.get_by_test_id("notebook-rename").click()
    page.get_by_test_id("notebook-title-input").fill("Warmth")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("scope-pill")).to_have_text("Warmth")
    expect(page.get_by_test_id("notebook-rename")).to_be_focused()
    assert [item["title"] for item in ada.get("/notebooks")["items"]] == ["Warmth"]


@pytest.mark.parametrize(("way", "left"), [("confirm-keep", ["Chimney"]), ("confirm-delete", [])])
def test_a_notebook_is_deleted_with_or_without_its_contents(page: Page, ada: Person, way: str, left: list[str]) -> None:
    """WEB-2, LIB-8"""
    notebook_id = writing.add_notebook(ada)
    writing.save(ada, CHIMNEY, title="Chimney", notebook_id=notebook_id)
    page.reload()
    page.get_by_test_id("notebook-open").click()
    expect(page.get_by_test_id("note-row")).to_have_count(1)
    page.get_by_test_id("notebook-delete").click()
    expect(page.get_by_test_id("confirm-dialog")).to_contain_text("1 note and 0 documents")
    page.get_by_test_id(way).click()
    expect(page.get_by_test_id("notebook-row")).to_have_count(0)
    expect(page.get_by_test_id("place-all")).to_have_attribute("aria-current", "true")
    expect(page.get_by_test_id("note-row")).to_have_count(len(left))
    assert [item["title"] for item in ada.get("/notes")["items"]] == left


# Notes


def test_a_note_is_cited_at_its_words_hidden_in_the_trash_and_cited_again_when_restored(
    page: Page, ada: Person
) -> None:
    """WEB-2, WEB-4, LIB-2"""
    write_note(page, "Chimney", f"# Sweeping\n\n{BOILER} {CHIMNEY}")
    page.get_by_test_id("note-close").click()
    assert cited_words(page) == CHIMNEY
    page.get_by_test_id("note-row").hover()
    page.get_by_test_id("note-trash").click()
    expect(page.get_by_test_id("note-row")).to_have_count(0)
    page.get_by_test_id("new-conversation").click()
    expect(ask(page, "Who swept the chimney?").get_by_test_id("source-row")).to_have_count(0)
    page.get_by_test_id("place-trash").click()
    page.get_by_test_id("note-row").hover()
    page.get_by_test_id("note-restore").click()
    expect(page.get_by_text("The trash is empty.")).to_be_visible()
    page.get_by_test_id("place-all").click()
    page.get_by_test_id("new-conversation").click()
    assert cited_words(page) == CHIMNEY


def cited_words(page: Page) -> str:
    """Asks who swept the chimney and returns the words marked in the text that the first citation opens."""
    ask(page, "Who swept the chimney?").get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("source-place")).to_have_text("note · Sweeping")
    words = page.get_by_test_id("page-mark").inner_text()
    page.get_by_test_id("source-close").click()
    return words


def test_a_citation_of_a_note_that_was_deleted_or_rewritten_says_so(page: Page, ada: Person) -> None:
    """WEB-4, LIB-8"""
    note = writing.write(ada, CHIMNEY, title="Chimney")
    citation = ask(page, "Who swept the chimney?").get_by_test_id("citation").first
    writing.follow(ada, writing.change(ada, note, content=f"{BOILER}\n\n{CHIMNEY}"))
    citation.click()
    expect(page.get_by_test_id("page-mark")).to_have_text(CHIMNEY)
    writing.follow(ada, writing.change(ada, note, content=BOILER))
    page.get_by_test_id("source-close").click()
    citation.click()
    expect(page.get_by_test_id("page-changed")).to_be_visible()
    writing.delete(ada, f"/notes/{note['id']}")
    page.get_by_test_id("source-close").click()
    citation.click()
    expect(page.get_by_test_id("source-gone")).to_contain_text("this note is no longer in the library")


def test_a_note_is_deleted_after_confirmation(page: Page, ada: Person) -> None:
    note = writing.save(ada, CHIMNEY, title="Chimney")
    ada.post(f"/notes/{note['id']}/trash")
    page.get_by_test_id("place-trash").click()
    page.get_by_test_id("note-open").click()
    expect(page.get_by_test_id("note-content")).not_to_be_editable()
    page.get_by_test_id("note-delete-this").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_text("The trash is empty.")).to_be_visible()
    assert ada.get("/notes", trashed=True)["items"] == []


def test_a_note_is_saved_after_a_pause_in_typing_and_when_it_is_closed(page: Page, ada: Person) -> None:
    """WEB-2: an empty note is not saved."""
    page.get_by_test_id("note-new").click()
    page.get_by_test_id("note-close").click()
    page.get_by_test_id("note-new").click()
    page.get_by_test_id("note-content").press_sequentially("The boiler")
    status = page.get_by_test_id("note-status")
    expect(status).to_have_attribute("data-state", "changed")
    expect(status).to_have_attribute("data-state", "saved")
    page.get_by_test_id("note-content").press_sequentially(" burns wood.")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("note-dialog")).to_have_count(0)
    expect(page.get_by_test_id("note-new")).to_be_focused()
    (note,) = ada.get("/notes")["items"]
    assert note["snippet"] == "The boiler burns wood."


@pytest.mark.parametrize(("way", "kept"), [("note-reload", CHIMNEY), ("note-overwrite", "Mine.")])
def test_a_note_changed_elsewhere_is_never_overwritten_without_asking(
    page: Page, ada: Person, way: str, kept: str
) -> None:
    """WEB-2"""
    note = writing.save(ada, BOILER, title="Heating")
    page.reload()
    open_note(page)
    writing.change(ada, note, content=CHIMNEY)
    page.get_by_test_id("note-content").fill("Mine.")
    page.get_by_test_id("note-content").blur()
    expect(page.get_by_test_id("note-conflict")).to_contain_text("changed elsewhere")
    assert ada.get(f"/notes/{note['id']}")["content"] == CHIMNEY
    page.get_by_test_id(way).click()
    expect(page.get_by_test_id("note-content")).to_have_value(kept)
    expect(page.get_by_test_id("note-status")).to_have_attribute("data-state", "saved")
    assert ada.get(f"/notes/{note['id']}")["content"] == kept


def test_a_note_trashed_elsewhere_is_restored_before_it_is_saved(page: Page, ada: Person) -> None:
    note = writing.save(ada, BOILER, title="Heating")
    page.reload()
    open_note(page)
    ada.post(f"/notes/{note['id']}/trash")
    page.get_by_test_id("note-content").fill("Mine.")
    page.get_by_test_id("note-content").blur()
    expect(page.get_by_test_id("note-conflict")).to_contain_text("“Heating” is in the trash.")
    page.get_by_test_id("note-restore-here").click()
    expect(page.get_by_test_id("note-status")).to_have_attribute("data-state", "saved")
    assert ada.get(f"/notes/{note['id']}")["content"] == "Mine."


def test_closing_a_note_that_cannot_be_saved_asks_first(page: Page, ada: Person) -> None:
    """WEB-2"""

    def cut(route: Route) -> None:
        route.abort()

    page.get_by_test_id("note-new").click()
    page.route("**/api/rag/notes", cut)
    page.get_by_test_id("note-content").fill(BOILER)
    page.get_by_test_id("note-close").click()
    expect(page.get_by_test_id("confirm-dialog")).to_contain_text("Close without saving?")
    page.get_by_test_id("confirm-no").click()
    expect(page.get_by_test_id("note-status")).to_contain_text("The server could not be reached.")
    page.unroute("**/api/rag/notes", cut)
    page.get_by_test_id("note-close").click()
    expect(page.get_by_test_id("note-dialog")).to_have_count(0)
    assert [item["snippet"] for item in ada.get("/notes")["items"]] == [BOILER]


def test_attachments_are_uploaded_chosen_from_the_library_and_detached(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-2, LIB-1"""
    upload(page, text_file(tmp_path, "boiler.txt", BOILER))
    write_note(page, "Heating", "What follows is attached.")
    page.get_by_test_id("attachment-input").set_input_files(text_file(tmp_path, "chimney.txt", CHIMNEY))
    attached = page.get_by_test_id("attachments").get_by_test_id("document-row")
    expect(attached.and_(page.locator("[data-status=indexed]"))).to_have_count(1)
    page.get_by_test_id("attachment-choose").click()
    see(page, "attach-option").filter(has_text="boiler").click()
    expect(attached).to_have_count(2)
    page.get_by_test_id("attach-done").click()
    chimney = attached.filter(has_text="chimney")
    chimney.hover()
    chimney.get_by_test_id("document-detach").click()
    expect(attached).to_have_count(1)
    (note,) = ada.get("/notes")["items"]
    by_name = {item["file_name"]: item["note_id"] for item in ada.get("/documents")["items"]}
    assert by_name == {"boiler.txt": note["id"], "chimney.txt": None}


def test_asking_about_a_note_searches_the_note_and_its_attachments_only(page: Page, ada: Person) -> None:
    """CHAT-3"""
    writing.write(ada, CHIMNEY)
    write_note(page, "Heating", BOILER)
    page.get_by_test_id("note-ask-this").click()
    expect(page.get_by_test_id("question")).to_be_focused()
    answer = ask(page, "Who swept the chimney, and what does the boiler burn?")
    expect(answer.get_by_test_id("answer-scope")).to_have_text("Searched this note")
    expect(answer.get_by_test_id("answer-text")).not_to_contain_text(CHIMNEY)


def test_markup_in_notes_and_documents_stays_text(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-1"""
    evil = "<img src=x onerror=\"document.title='cracked'\"> Boilers burn <b>wood</b>"
    create_notebook(page, evil)
    write_note(page, evil, evil)
    page.get_by_test_id("note-read").click()
    expect(page.get_by_test_id("note-reading")).to_have_text(evil)
    page.get_by_test_id("note-close").click()
    ask(page, "What do boilers burn?").get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("source-file")).to_have_text(evil)
    expect(page.get_by_test_id("page-text")).to_have_text(evil)
    page.get_by_test_id("source-close").click()
    assert page.title() != "cracked"
    assert page.locator("img, b").count() == 0


def test_long_lists_are_loaded_in_pages(page: Page, ada: Person) -> None:
    """WEB-2"""
    for number in range(57):
        writing.save(ada, title=f"Note {number}")
    page.reload()
    notes = page.get_by_test_id("note-row")
    expect(notes).to_have_count(3)
    page.get_by_test_id("notes-more").click()
    expect(notes).to_have_count(53)
    page.get_by_test_id("notes-more").click()
    expect(notes).to_have_count(57)
    for place, title in ((notes.first, "Note 56"), (notes.last, "Note 0")):
        place.scroll_into_view_if_needed()
        expect(place).to_contain_text(title)


# Documents


def test_a_document_shows_its_metadata_and_its_health_report(page: Page, tmp_path: Path) -> None:
    """WEB-2, LIB-10, ING-3"""
    pages = (["Installed by the Larsen brothers in 1987.", BOILER], "The pump was replaced after the great flood.")
    upload(page, documents.make_pdf(tmp_path / "boiler.pdf", *pages, title="Boiler handbook", author="Ada Larsen"))
    page.get_by_test_id("document-info").click()
    report = page.get_by_test_id("document-health")
    expect(report.locator("[data-health=pages_without_text]")).to_have_text("All 2 pages have text.")
    expect(report.locator("[data-health=languages]")).to_have_text("Written in English.")
    expect(report.locator("[data-health=quality]")).to_have_text("This document was read well.")
    found = re.compile(r"^Search check: (\d) of \1 sample sentences found$")
    expect(report.locator("[data-health=self_retrieval]")).to_have_text(found)
    expect(page.get_by_test_id("document-metadata")).to_contain_text("Ada Larsen")


def test_a_duplicate_is_reported_before_it_is_uploaded(page: Page, tmp_path: Path) -> None:
    """WEB-2, LIB-5"""
    file = text_file(tmp_path, "boiler.txt", BOILER)
    upload(page, file)
    create_notebook(page, "Heating")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
    page.get_by_test_id("upload-input").set_input_files(file)
    expect(page.get_by_test_id("duplicate-notice")).to_have_text("Already in your library as “boiler.txt”")
    assert sent == []
    page.get_by_test_id("upload-action").click()
    expect(page.get_by_test_id("document-row")).to_have_count(1)
    expect(page.get_by_test_id("upload-row")).to_have_count(0)


def test_a_duplicate_that_the_worker_finds_loses_its_row(page: Page, tmp_path: Path) -> None:
    """LIB-5: where the browser cannot compute the hash, the worker does."""
    upload(page, text_file(tmp_path, "boiler.txt", BOILER))
    page.evaluate("Object.defineProperty(globalThis.crypto, 'subtle', { value: undefined })")
    page.get_by_test_id("upload-input").set_input_files(text_file(tmp_path, "again.txt", BOILER))
    expect(page.get_by_test_id("duplicate-notice")).to_have_text("Already in your library as “boiler.txt”")
    expect(page.get_by_test_id("document-row")).to_have_count(1)


def test_a_new_version_replaces_the_row_of_the_old_one_which_stays_readable(page: Page, tmp_path: Path) -> None:
    """WEB-2, LIB-5"""
    upload(page, text_file(tmp_path, "boiler.txt", BOILER))
    page.get_by_test_id("upload-input").set_input_files(text_file(tmp_path, "boiler.txt", CHIMNEY))
    expect(page.get_by_test_id("document-version").and_(page.locator(":visible"))).to_have_text("version 2")
    expect(page.get_by_test_id("document-row")).to_have_count(1)
    page.get_by_test_id("document-info").click()
    page.get_by_test_id("document-version-open").click()
    expect(page.get_by_test_id("document-dialog")).to_contain_text("1, replaced by a newer version")


def test_a_document_is_moved_to_a_notebook(page: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-2"""
    notebook_id = writing.add_notebook(ada)
    upload(page, text_file(tmp_path, "boiler.txt", BOILER))
    page.reload()
    page.get_by_test_id("document-info").click()
    page.get_by_test_id("document-notebook").select_option("Heating")
    expect(page.locator(".place-count")).to_have_text("1")
    page.get_by_test_id("document-close").click()
    expect(page.get_by_test_id("document-row")).to_contain_text("Heating")
    assert [item["notebook_id"] for item in ada.get("/documents")["items"]] == [notebook_id]


def test_progress_counts_pages_and_a_failure_shows_why(
    page: Page, server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """WEB-2, LIB-6"""
    encrypted = documents.make_pdf(tmp_path / "secret.pdf", BOILER, password="x")
    with server.worker.paused():
        page.get_by_test_id("upload-input").set_input_files(encrypted)
        expect(see(page, "document-row", status="uploaded")).to_contain_text("Waiting to be read")
        document = ada.get("/documents")["items"][0]
        with server.services.database.as_worker() as connection:
            connection.execute(
                "update rag.documents set status = 'processing', stage = 'reading', pages_done = 12, page_count = 300"
                " where id = %s",
                (document["id"],),
            )
        expect(page.get_by_test_id("document-progress-text")).to_have_text("Reading · 12 / 300 pages")
    row = see(page, "document-row", status="failed")
    expect(row).to_contain_text("protected by a password")
    expect(row.get_by_test_id("document-retry")).to_be_hidden()


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (storage_refusals.TOO_LARGE, "The file is larger than the file storage accepts."),
        (storage_refusals.EXPIRED, "The upload link has expired or is not valid. Upload the file again."),
        (storage_refusals.DUPLICATE, "A file has already arrived through this upload link."),
        (storage_refusals.wrong_type("text/plain").args, "The file storage does not accept this kind of file."),
        (("500", "DatabaseError", "…", "DatabaseError"), "The file storage rejected the file."),
    ],
    ids=lambda value: value[3] if isinstance(value, tuple) else "",
)
def test_what_the_storage_refuses_is_said_in_words(
    page: Page, tmp_path: Path, refusal: tuple[str, str, str, str], words: str
) -> None:
    """LIB-3: Supabase says EntityTooLarge or InvalidJWT."""
    status, body = storage_refusals.refuse(*refusal)
    page.route("**/storage/v1/object/upload/**", lambda route: route.fulfill(status=status, json=body))
    page.get_by_test_id("upload-input").set_input_files(text_file(tmp_path, "boiler.txt", BOILER))
    expect(see(page, "upload-row", state="failed")).to_contain_text(words)


def test_an_indexed_document_says_why_its_newer_file_was_refused(
    page: Page, server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-4"""
    upload(page, text_file(tmp_path, "boiler.txt", BOILER))
    store = server.services.objects
    assert isinstance(store, LocalObjectStore)
    record = partial(object_rows.record, server.services.database, operation="storage.object.upload_update")
    document_id = ada.get("/documents")["items"][0]["id"]
    store.put(f"{ada.id}/{document_id}/original.txt", [BOILER.encode() * 2], record=record)
    page.reload()
    expect(see(page, "document-row", status="indexed")).to_contain_text("bytes arrived where")


# Keyboard and small screens


def test_every_action_works_with_the_keyboard_and_keeps_the_focus(page: Page, ada: Person) -> None:
    """WEB-1"""
    page.get_by_test_id("notebook-new").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("Heating")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("notebook-open")).to_be_focused()
    page.get_by_test_id("note-new").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("Chimney")
    page.keyboard.press("Enter")
    page.keyboard.type(CHIMNEY)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("note-new")).to_be_focused()
    page.get_by_test_id("note-trash").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("note-new")).to_be_focused()
    assert [item["title"] for item in ada.get("/notes", trashed=True)["items"]] == ["Chimney"]


def test_a_notebook_created_before_the_list_has_arrived_keeps_its_row_and_the_focus(page: Page) -> None:
    """WEB-1"""
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/api/rag/notebooks?*", lambda route: held.append((route, route.fetch())))
    with page.expect_request("**/api/rag/notebooks?*"):
        page.reload()
    create_notebook(page, "Heating")
    route, response = held[-1]  # the page before the reload may have asked, too
    with page.expect_response("**/api/rag/notebooks?*"):
        route.fulfill(response=response)
    assert response.json()["items"] == []
    expect(page.get_by_test_id("notebook-open")).to_be_focused()


UNNAMED = """() => [...document.querySelectorAll("button, input, textarea, select")]
    .filter((node) => node.checkVisibility() && !node.ariaHidden)
    .filter((node) => !(node.ariaLabel || node.innerText?.trim() || node.labels?.length))
    .map((node) => node.outerHTML)"""
TOO_WIDE = "() => document.documentElement.scrollWidth - innerWidth"


def test_the_page_fits_a_phone_and_every_control_has_a_name(phone: Page, ada: Person, tmp_path: Path) -> None:
    """WEB-1"""
    see(phone, "view-tab", view="sources").tap()
    create_notebook(phone, "A notebook with a title that is longer than a phone is wide, by far")
    upload(phone, text_file(tmp_path, f"{'long' * 30}.txt", BOILER))
    write_note(phone, "Unbreakable" * 12, CHIMNEY * 5)
    assert (phone.evaluate(UNNAMED), phone.evaluate(TOO_WIDE)) == ([], 0)
    phone.get_by_test_id("note-close").tap()
    assert (phone.evaluate(UNNAMED), phone.evaluate(TOO_WIDE)) == ([], 0)
    phone.get_by_test_id("document-info").tap()
    expect(phone.get_by_test_id("document-health")).to_be_visible()
    assert (phone.evaluate(UNNAMED), phone.evaluate(TOO_WIDE)) == ([], 0)
    phone.get_by_test_id("document-close").tap()
    phone.get_by_test_id("note-ask").tap()
    see(phone, "view-tab", view="chat").tap()
    ask(phone, "Who swept the chimney?").get_by_test_id("citation").first.tap()
    expect(phone.get_by_test_id("page-mark")).to_be_visible()
    assert phone.evaluate(TOO_WIDE) == 0
