"""Answers that are asked for again, edited questions, ratings, suggestions, and the search for conversations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_library_page import DESKTOP, Tab, ask
from tests.support.local_server import Person, wait_until

WOOD = "The boiler burns wood chips in winter."
PEAT = "The stove burns peat bricks in summer."
QUESTION = "What does the boiler burn in winter?"
OTHER = "What does the stove burn in summer?"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser, viewport=DESKTOP)


@pytest.fixture
def page(ada: Person, tab: Tab) -> Iterator[Page]:
    ada.follow(ada.add_bytes("heating.txt", f"{WOOD} {PEAT}".encode())["id"])
    yield from tab.open(ada)


def wait_for_answer(page: Page) -> None:
    expect(page.get_by_test_id("answer").last).to_have_attribute("data-state", re.compile("done|failed"))


def test_an_answer_that_is_asked_for_again_stays_as_an_earlier_version(page: Page, ada: Person) -> None:
    """CHAT-15, WEB-3"""
    ask(page, QUESTION)
    page.get_by_test_id("answer-again").press("Enter")
    expect(page.get_by_test_id("version-count")).to_have_text("2 of 2")
    wait_for_answer(page)
    page.reload()
    expect(page.get_by_test_id("version-count")).to_have_text("2 of 2")
    page.get_by_test_id("version-previous").press("Enter")
    expect(page.get_by_test_id("version-count")).to_have_text("1 of 2")
    expect(page.get_by_test_id("version-next")).to_be_focused()
    expect(page.get_by_test_id("answer")).to_have_count(1)


def test_an_edited_question_takes_the_place_of_the_last_one(page: Page) -> None:
    """CHAT-15, WEB-3"""
    ask(page, QUESTION)
    page.get_by_test_id("question-edit").press("Enter")
    page.get_by_test_id("question-edit-text").fill(OTHER)
    page.keyboard.press("Enter")
    wait_for_answer(page)
    expect(page.get_by_test_id("question-text")).to_have_text(OTHER)
    expect(page.get_by_test_id("answer-text")).to_contain_text(PEAT)
    page.get_by_test_id("question-edit").press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("question-edit")).to_be_focused()
    ask(page, QUESTION)
    expect(page.get_by_test_id("question-edit").first).to_be_hidden()


def test_a_rating_is_kept_with_its_reason_and_can_be_withdrawn(page: Page, ada: Person) -> None:
    """EVAL-5, WEB-3"""
    ask(page, QUESTION)
    page.get_by_test_id("rate-down").press("Enter")
    page.get_by_test_id("rating-reason").fill("It was coal.")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("toast")).to_contain_text("Thank you")
    (rated,) = ada.get("/conversations/ratings")["items"]
    assert (rated["question"], rated["rating"], rated["reason"]) == (QUESTION, "down", "It was coal.")
    page.reload()
    expect(page.get_by_test_id("rate-down")).to_have_attribute("aria-pressed", "true")
    page.get_by_test_id("rate-down").click()
    expect(page.get_by_test_id("rate-down")).to_have_attribute("aria-pressed", "false")
    wait_until(lambda: ada.get("/conversations/ratings")["items"] == [])  # the page does not wait for the server


def test_questions_are_suggested_at_the_start_and_after_an_answer(page: Page, ada: Person) -> None:
    """WEB-3"""
    terms = "\n\n".join(
        f"# {name}\n\n{f'The {name.lower()} of the lease is fixed in writing. ' * 9}"
        for name in ("Rent level", "Deposit", "Repairs")
    )
    ada.follow(ada.add_bytes("lease.md", terms.encode())["id"])
    page.reload()
    first = page.get_by_test_id("suggestion").first
    expect(first).to_contain_text("What does “lease.md” say about")
    first.click()
    wait_for_answer(page)
    expect(page.get_by_test_id("answer")).not_to_have_attribute("data-mode", "guard")
    expect(page.get_by_test_id("suggestions")).to_contain_text("You could ask next")


def test_a_document_that_becomes_ready_renews_the_questions(page: Page, tmp_path: Path) -> None:
    """WEB-3"""
    expect(page.get_by_test_id("welcome")).to_have_attribute("data-state", "ready")
    file = tmp_path / "lease.md"
    file.write_text("# Deposit\n\n" + "The deposit of the lease is fixed in writing. " * 9, "utf-8")
    page.get_by_test_id("upload-input").set_input_files(file)
    expect(page.get_by_test_id("suggestion").first).to_contain_text("What does “lease.md” say about")


def test_a_conversation_is_found_by_the_words_of_its_messages(page: Page, ada: Person) -> None:
    """CHAT-16, WEB-3"""
    ada.ask(QUESTION)
    ada.ask("Who swept the chimney?")
    page.reload()
    page.locator("[data-testid=source-tab][data-tab=conversations]").click()
    expect(page.get_by_test_id("conversation-row")).to_have_count(2)
    page.get_by_test_id("conversation-search").fill("WOOD chips")
    expect(page.get_by_test_id("conversation-row")).to_have_count(1)
    expect(page.get_by_test_id("conversation-excerpt")).to_contain_text("wood chips")
    page.get_by_test_id("conversation-search").fill("zeppelin")
    expect(page.locator("#conversations-empty")).to_have_text("No conversation has these words.")
