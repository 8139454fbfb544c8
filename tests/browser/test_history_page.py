"""Going back and forward, reloading, leaving an answer while it is written, and links that lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.test_library_page import DESKTOP, Tab, ask, see
from tests.support import documents
from tests.support.local_server import LocalServer, Person

FACT = "The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn in winter?"
NEXT = "And what else does the boiler burn?"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(ada: Person, tab: Tab) -> Iterator[Page]:
    yield from tab.open(ada)


@pytest.fixture
def boiler(ada: Person, tmp_path: Path) -> str:
    return str(ada.add(documents.make_pdf(tmp_path / "boiler.pdf", FACT))["id"])


def test_back_and_forward_move_between_conversations_and_sources(page: Page, ada: Person, boiler: str) -> None:
    """WEB-1, WEB-4"""
    ask(page, QUESTION)
    first = page.url
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-file")).to_be_visible()
    page.get_by_test_id("new-conversation").click()
    expect(page.get_by_test_id("welcome")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(first)
    expect(page.get_by_test_id("source-quote")).to_have_text(FACT)
    page.go_back()
    expect(page.locator("#source[open]")).to_have_count(0)
    expect(page.get_by_test_id("question-text")).to_have_text(QUESTION)
    page.go_forward()
    expect(page.get_by_test_id("source-quote")).to_have_text(FACT)
    page.go_forward()
    expect(page.get_by_test_id("welcome")).to_be_visible()


def test_a_closed_source_leaves_no_step_without_effect(page: Page, ada: Person, boiler: str) -> None:
    """WEB-1"""
    page.get_by_test_id("new-conversation").click()
    ask(page, QUESTION)
    conversation = page.url
    page.get_by_test_id("new-conversation").click()
    see(page, "source-tab", tab="conversations").click()
    see(page, "conversation-open").click()
    page.get_by_test_id("citation").click()
    page.get_by_test_id("source-close").click()
    page.go_back()
    expect(page.get_by_test_id("welcome")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(conversation)


def test_back_closes_the_details_of_a_document_and_forward_opens_them(page: Page, ada: Person, boiler: str) -> None:
    """WEB-1, WEB-2"""
    page.reload()
    page.get_by_test_id("document-info").click()
    expect(page.get_by_test_id("document-dialog")).to_be_visible()
    page.go_back()
    expect(page.get_by_test_id("document-dialog")).to_have_count(0)
    page.go_forward()
    expect(page.get_by_test_id("document-dialog")).to_be_visible()
    page.get_by_test_id("document-close").click()
    expect(page.get_by_test_id("document-dialog")).to_have_count(0)


def test_back_closes_the_settings_and_forward_opens_them(page: Page, server: LocalServer, tab: Tab) -> None:
    """WEB-1"""
    with server.person("root", admin=True) as root:
        opening = tab.open(root)
        next(opening)
        page.get_by_test_id("settings-open").click()
        expect(page.get_by_test_id("settings-dialog")).to_be_visible()
        page.go_back()
        expect(page.get_by_test_id("settings-dialog")).to_have_count(0)
        page.go_forward()
        expect(page.get_by_test_id("settings-dialog")).to_be_visible()
        page.get_by_test_id("settings-close").click()


def test_a_reload_shows_the_same_source_and_the_unsent_question(page: Page, ada: Person, boiler: str) -> None:
    """WEB-1"""
    ask(page, QUESTION)
    page.get_by_test_id("citation").click()
    expect(page.get_by_test_id("source-file")).to_be_visible()
    page.get_by_test_id("question").fill(NEXT)
    page.reload()
    expect(page.get_by_test_id("question")).to_have_value(NEXT)
    expect(page.get_by_test_id("source-quote")).to_have_text(FACT)
    expect(page.get_by_test_id("question-text")).to_have_text(QUESTION)
    page.get_by_test_id("question").fill("")
    page.reload()
    expect(page.get_by_test_id("question")).to_have_value("")


def test_a_link_that_leads_nowhere_says_so(page: Page, ada: Person) -> None:
    """WEB-1"""
    page.goto(f"{ada.server.base_url}/#x=1")
    expect(page.get_by_test_id("link-unknown")).to_contain_text("leads nowhere")
    page.goto(f"{ada.server.base_url}/#c={ada.id}")
    expect(page.get_by_test_id("conversation-gone")).to_contain_text("There is no such conversation")


def test_an_answer_that_is_left_is_finished_in_the_background(page: Page, ada: Person, boiler: str) -> None:
    """WEB-3, CHAT-2"""
    first = ada.ask(QUESTION)
    page.reload()
    held: list[Route] = []
    page.route("**/api/rag/chat", lambda route: held.append(route))
    page.get_by_test_id("question").fill(NEXT)
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("stop")).to_be_visible()
    see(page, "source-tab", tab="conversations").click()
    see(page, "conversation-row", **{"conversation-id": first["conversation_id"]}).click()
    expect(page.get_by_test_id("question-text")).to_have_text(QUESTION)
    expect(page.get_by_test_id("send")).to_be_visible()
    held[0].continue_()
    expect(page.get_by_test_id("answer-ready")).to_contain_text(NEXT)
    see(page, "conversation-row").filter(has_text=NEXT).click()
    expect(page.get_by_test_id("answer")).to_have_attribute("data-state", "done")


def test_a_conversation_that_is_opened_again_shows_its_running_answer(page: Page, ada: Person, boiler: str) -> None:
    """WEB-3, CHAT-2"""
    asked = ada.ask(QUESTION)
    ada.ask("Who swept the boiler?")
    page.goto(f"{ada.server.base_url}/#c={asked['conversation_id']}")
    expect(page.get_by_test_id("answer")).to_have_attribute("data-state", "done")
    held: list[Route] = []
    page.route("**/api/rag/chat", lambda route: held.append(route))
    page.get_by_test_id("question").fill(NEXT)
    page.get_by_test_id("send").click()
    page.get_by_test_id("new-conversation").click()
    see(page, "source-tab", tab="conversations").click()
    see(page, "conversation-row", **{"conversation-id": asked["conversation_id"]}).click()
    expect(page.get_by_test_id("answer").last).to_have_attribute("data-state", "waiting")
    held[0].continue_()
    expect(page.get_by_test_id("answer").last).to_have_attribute("data-state", re.compile("done"))
    expect(page.get_by_test_id("question-text")).to_have_text([QUESTION, NEXT])


def without_answer(route: Route) -> None:
    messages = route.fetch().json()
    route.fulfill(json=messages | {"items": [item for item in messages["items"] if item["role"] == "user"]})


def test_a_question_without_an_answer_is_asked_again_with_one_press(page: Page, ada: Person, boiler: str) -> None:
    """WEB-3, CHAT-2"""
    asked = ada.ask(QUESTION)
    page.route("**/messages?*", without_answer)
    page.goto(f"{ada.server.base_url}/#c={asked['conversation_id']}")
    expect(page.get_by_test_id("answer")).to_contain_text("No answer yet.")
    page.get_by_test_id("answer-retry").click()
    expect(page.get_by_test_id("answer-text")).to_contain_text(FACT)
    expect(page.get_by_test_id("question-text")).to_have_text([QUESTION])
