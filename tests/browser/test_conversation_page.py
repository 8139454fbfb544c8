"""The search scope of a conversation, its export, answers saved as notes, and links to a passage, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.acceptance.support import writing
from tests.browser.test_library_page import DESKTOP, PHONE, UNNAMED, Tab, ask, see
from tests.support import documents
from tests.support.local_server import Json, Person

WOOD = "The boiler burns wood chips in winter."
PEAT = "The boiler burns peat bricks in summer."
QUESTION = "What does the boiler burn?"
WIDEST = """() => Math.max(...[...document.querySelectorAll("button, textarea, select, .pill, .source-row, .modal")]
    .map((node) => node.getBoundingClientRect().right))"""


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(ada: Person, tab: Tab) -> Iterator[Page]:
    yield from tab.open(ada)


def add(ada: Person, name: str, text: str) -> str:
    return str(ada.follow(ada.add_bytes(name, text.encode())["id"])["id"])


def open_conversation(page: Page, ada: Person, asked: Json) -> None:
    page.goto(f"{ada.server.base_url}/#c={asked['conversation_id']}")
    expect(page.get_by_test_id("answer").last).to_have_attribute("data-state", "done")


def attached(ada: Person, conversation_id: str) -> set[str]:
    return {item["id"] for item in ada.get(f"/conversations/{conversation_id}/documents")["items"]}


def conversation_of(page: Page) -> str:
    return page.url.partition("#c=")[2]


# Search scope


def test_documents_chosen_before_the_first_question_are_attached_to_the_conversation(page: Page, ada: Person) -> None:
    """CHAT-3, CHAT-11"""
    wood = add(ada, "wood.txt", WOOD)
    add(ada, "peat.txt", PEAT)
    expect(page.get_by_test_id("scope-text")).to_have_text("Searching: whole library")
    page.get_by_test_id("attach-open").click()
    see(page, "attach-option", **{"document-id": wood}).click()
    page.get_by_test_id("attach-done").click()
    expect(page.get_by_test_id("scope-text")).to_have_text("Searching: chosen documents")
    ask(page, QUESTION)
    page.reload()
    expect(page.get_by_test_id("scope-pill")).to_have_text("wood.txt")
    answer = ask(page, "And what in winter?")
    expect(answer.get_by_test_id("answer-scope")).to_have_text("Searched 1 chosen document")
    assert attached(ada, conversation_of(page)) == {wood}


def test_documents_can_be_attached_and_detached_during_a_conversation(page: Page, ada: Person) -> None:
    """CHAT-11"""
    wood, peat = add(ada, "wood.txt", WOOD), add(ada, "peat.txt", PEAT)
    asked = ada.ask(QUESTION)
    open_conversation(page, ada, asked)
    page.get_by_test_id("attach-open").click()
    for document_id in (wood, peat):
        see(page, "attach-option", **{"document-id": document_id}).click()
    page.get_by_test_id("attach-done").click()
    see(page, "scope-pill", **{"document-id": wood}).get_by_role("button").click()
    expect(page.get_by_test_id("scope-pill")).to_have_text("peat.txt")
    answer = ask(page, QUESTION)
    expect(answer.get_by_test_id("source-row")).to_have_count(1)
    expect(answer.get_by_test_id("answer-text")).to_contain_text("peat")
    assert attached(ada, asked["conversation_id"]) == {peat}


def test_whole_library_once_applies_to_one_question_only(page: Page, ada: Person) -> None:
    """CHAT-3"""
    add(ada, "wood.txt", WOOD)
    note = writing.write(ada, PEAT, title="Summer")
    open_conversation(page, ada, ada.ask(QUESTION, note_id=note["id"]))
    expect(page.get_by_test_id("scope-text")).to_have_text("Searching: note")
    page.get_by_test_id("scope-once").press("Enter")
    expect(page.get_by_test_id("scope-once")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("question")).to_have_accessible_description(re.compile("whole library, once"))
    expect(ask(page, QUESTION).get_by_test_id("answer-scope")).to_have_text("Searched the whole library")
    expect(page.get_by_test_id("scope-once")).to_have_attribute("aria-pressed", "false")
    expect(ask(page, QUESTION).get_by_test_id("answer-scope")).to_have_text("Searched this note")


def test_a_document_that_the_server_refuses_to_attach_is_removed_with_an_error_message(page: Page, ada: Person) -> None:
    """WEB-1"""
    add(ada, "wood.txt", WOOD)
    asked = ada.ask(QUESTION)
    page.reload()
    open_conversation(page, ada, asked)
    expect(page.get_by_test_id("scope-text")).to_have_text("Searching: whole library")
    page.route("**/conversations/*/documents", lambda route: route.abort())
    page.get_by_test_id("document-row").hover()
    page.get_by_test_id("document-attach").click()
    expect(page.get_by_test_id("toast")).to_contain_text("The server could not be reached.")
    expect(page.get_by_test_id("scope-text")).to_have_text("Searching: whole library")
    expect(page.get_by_test_id("document-attach")).to_have_attribute("aria-pressed", "false")


# Export and notes


def test_a_conversation_is_downloaded_as_markdown_in_the_language_of_the_page(page: Page, ada: Person) -> None:
    """CHAT-11"""
    add(ada, "wood.txt", WOOD)
    expect(page.get_by_test_id("conversation-export")).to_be_hidden()
    ada.http.patch(f"/api/rag/conversations/{ada.ask(QUESTION)['conversation_id']}", json={"title": "Été: wood"})
    page.reload()
    see(page, "source-tab", tab="conversations").click()
    page.get_by_test_id("conversation-open").click()
    page.get_by_test_id("language-switch").click()
    export = page.get_by_role("button", name="Exporter cette conversation en Markdown")
    with page.expect_download() as download:
        export.click()
    page.get_by_test_id("language-switch").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename == "Été wood.md"
    assert f"### Réponse\n\n{WOOD} [1]\n" in text


def test_an_answer_is_saved_as_a_note_whose_links_open_the_cited_words(page: Page, ada: Person) -> None:
    """CHAT-12, WEB-4"""
    document_id = add(ada, "wood_[1].txt", WOOD)
    notebook_id = writing.add_notebook(ada)
    answer = ask(page, QUESTION)
    answer.get_by_test_id("answer-keep").click()
    page.get_by_test_id("keep-notebook").select_option(notebook_id)
    page.get_by_test_id("keep-yes").click()
    expect(page.get_by_test_id("answer-note")).to_be_focused()
    expect(page.get_by_test_id("note-row")).to_have_count(1)
    page.get_by_test_id("answer-note").click()
    expect(page.get_by_test_id("note-content")).to_be_hidden()
    link = page.get_by_test_id("note-reading").get_by_role("link", name="wood_[1].txt")
    expect(link).to_have_attribute("href", f"#d={document_id}&page=1&start=0&end={len(WOOD)}")
    ada.http.delete(f"/api/rag/conversations/{conversation_of(page)}").raise_for_status()
    link.click()
    expect(page.get_by_test_id("note-dialog")).to_have_count(0)
    expect(page.get_by_test_id("page-mark")).to_have_text(WOOD)
    assert [note["notebook_id"] for note in ada.get("/notes")["items"]] == [notebook_id]


def test_an_answer_that_cannot_be_saved_shows_why(page: Page, ada: Person) -> None:
    """CHAT-12"""

    def cut(route: Route) -> None:
        route.abort()

    add(ada, "wood.txt", WOOD)
    page.route("**/messages/*/note", cut)
    ask(page, QUESTION).get_by_test_id("answer-keep").click()
    page.get_by_test_id("keep-yes").click()
    expect(page.get_by_test_id("keep-error")).to_contain_text("The server could not be reached.")
    page.unroute("**/messages/*/note", cut)
    page.get_by_test_id("keep-yes").click()
    expect(page.get_by_test_id("answer-note")).to_have_text(QUESTION)


# Links


def test_a_link_opens_the_page_of_a_document_with_its_words_highlighted(
    page: Page, ada: Person, tmp_path: Path
) -> None:
    """WEB-4"""
    pdf = documents.make_pdf(tmp_path / "boiler.pdf", "The first page is about something else.", WOOD)
    document_id = ada.add(pdf)["id"]
    images: list[str] = []
    page.on("request", lambda request: images.append(request.url) if ".png" in request.url else None)
    page.goto(f"{ada.server.base_url}/#d={document_id}&page=2&start=4&end=10")
    page.reload()
    expect(page.get_by_test_id("source-quote")).to_have_text("boiler")
    expect(page.get_by_test_id("page-number")).to_have_text("page 2 of 2")
    expect(page.get_by_test_id("page-image")).to_have_attribute("alt", re.compile("the cited passage highlighted"))
    assert set(images) == {f"{ada.server.base_url}/api/rag/documents/{document_id}/pages/2.png?start=4&end=10&scale=2"}
    page.get_by_test_id("source-close").click()
    expect(page).to_have_url(f"{ada.server.base_url}/")


def test_a_link_to_deleted_content_says_so(page: Page, ada: Person) -> None:
    """LIB-8"""
    note = writing.save(ada, WOOD)
    ada.post(f"/notes/{note['id']}/trash")
    for kind in ("d", "n"):
        page.goto(f"{ada.server.base_url}/#{kind}={note['id']}&page=1&start=0&end=3")
        expect(page.get_by_test_id("source-gone")).to_contain_text("no longer in the library")
        expect(page.locator("#source .page-view")).to_have_count(0)
        page.get_by_test_id("source-close").click()


def test_a_note_links_to_passages_conversations_and_safe_addresses(page: Page, ada: Person) -> None:
    """WEB-1"""
    evil = "[a](javascript:alert) [b](https://example.org) [c](/#d=x'onclick) [d](/#c=1)"
    writing.save(ada, evil, title="Links")
    page.reload()
    page.get_by_test_id("note-open").click()
    page.get_by_test_id("note-read").click()
    links = page.get_by_test_id("note-reading").get_by_role("link")
    shown = links.evaluate_all("(all) => all.map((a) => [a.getAttribute('href'), a.rel])")
    assert shown == [["https://example.org", "noopener noreferrer nofollow"], ["#c=1", ""]]


# Small screens


def test_the_search_scope_and_the_save_dialog_fit_a_phone(page: Page, ada: Person) -> None:
    """WEB-1"""
    page.set_viewport_size(PHONE)
    add(ada, f"{'long' * 30}.txt", WOOD)
    add(ada, "peat.txt", PEAT)
    asked = ada.ask(QUESTION)
    documents_of = f"/conversations/{asked['conversation_id']}/documents"
    ada.post(documents_of, document_ids=[item["id"] for item in ada.get("/documents")["items"]])
    open_conversation(page, ada, asked)
    expect(page.get_by_test_id("scope-pill")).to_have_count(2)
    assert (page.evaluate(UNNAMED), page.evaluate(WIDEST) <= PHONE["width"]) == ([], True)
    page.get_by_test_id("answer-keep").click()
    assert (page.evaluate(UNNAMED), page.evaluate(WIDEST) <= PHONE["width"]) == ([], True)
    page.get_by_test_id("keep-yes").click()
    expect(page.get_by_test_id("answer-note")).to_be_visible()
    assert (page.evaluate(UNNAMED), page.evaluate(WIDEST) <= PHONE["width"]) == ([], True)
    page.set_viewport_size(DESKTOP)
