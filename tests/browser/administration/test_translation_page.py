"""Translations on the page: below the quote, which is the original, and in the details of a document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.acceptance import test_translation as translation
from tests.browser.test_library_page import Tab, see
from tests.support import database as database_servers
from tests.support.fakes.model_server import Body, FakeModelServer, Reply
from tests.support.local_server import Person, run_local_server, wait_until

expect.set_options(timeout=30_000)


class Translator:
    """A model that answers and translates, or refuses to do either."""

    refuses = False

    def respond(self, body: Body) -> Reply:
        return Reply(status=401) if self.refuses else translation.respond(body)


@pytest.fixture
def translator() -> Translator:
    return Translator()


@pytest.fixture
def ada(
    clusters: database_servers.Clusters, postgres_major: int, tmp_path: Path, translator: Translator
) -> Iterator[Person]:
    """An administrator whose one document is translated."""
    dsn = clusters.get(postgres_major).clone()
    with (
        FakeModelServer(dimensions=64, respond=translator.respond) as model,
        run_local_server(
            dsn,
            tmp_path,
            openai_base_url=model.base_url,
            embedding_model="words",
            embedding_dimensions=64,
            translation_model="translator",
        ) as server,
        server.person("Ada", admin=True) as person,
    ):
        switch(person, "en_to_fr")
        document = translation.add_pages(person, tmp_path)
        wait_until(lambda: translation.translation_of(person, document)["status"] == "done", seconds=60)
        yield person


@pytest.fixture
def page(ada: Person, browser: Browser) -> Iterator[Page]:
    yield from Tab(browser, viewport={"width": 1280, "height": 900}).open(ada)


def switch(person: Person, direction: str) -> None:
    assert person.http.patch("/api/rag/settings", json={"translate_documents": direction}).is_success


def open_details(page: Page, name: str) -> Locator:
    """What the details of a document say about its translation."""
    row = see(page, "document-row").filter(has_text=name)
    row.hover()
    row.get_by_test_id("document-info").click()
    return page.get_by_test_id("document-translation")


def test_a_source_shows_the_translation_of_its_passage_folded(page: Page) -> None:
    """LANG-2, WEB-4"""
    page.get_by_test_id("question").fill(translation.QUESTION)
    page.get_by_test_id("question").press("Enter")
    page.get_by_test_id("citation").first.click()
    shown = page.get_by_test_id("source-translation")
    expect(shown.locator("p")).to_be_hidden()
    shown.locator("summary").click()
    expect(shown.locator("p")).to_have_text(translation.TRANSLATIONS[translation.PAGES[1]])
    expect(page.get_by_test_id("source-quote")).to_contain_text("slippers")


def test_a_document_is_translated_again_and_says_how_far_it_is(page: Page, ada: Person) -> None:
    """LANG-2, WEB-2"""
    shown, again = open_details(page, "rules.pdf"), page.get_by_test_id("document-translate")
    expect(shown).to_contain_text("Translated: 3 of 3 passages")
    with ada.server.worker.paused():
        again.click()
        expect(shown).to_have_attribute("data-state", "translating")
        expect(again).to_be_disabled()
    expect(shown).to_have_attribute("data-state", "translated")
    expect(again).to_be_enabled()


def test_a_translation_that_failed_says_why_and_is_asked_for_again(
    page: Page, ada: Person, translator: Translator
) -> None:
    """LANG-2, WEB-2"""
    translator.refuses = True
    document = ada.follow(ada.add_bytes("house.txt", " ".join(translation.PAGES).encode())["id"])
    wait_until(lambda: translation.translation_of(ada, document)["status"] == "failed")
    page.reload()
    shown = open_details(page, "house.txt")
    expect(shown).to_have_attribute("data-state", "failed")
    expect(shown).to_contain_text(translation.translation_of(ada, document)["error"])
    translator.refuses = False
    page.get_by_test_id("document-translate").click()
    expect(shown).to_have_attribute("data-state", "translated")
    expect(shown).to_contain_text("Translated: 1 of 1 passages")


def test_where_translation_was_switched_off_the_button_says_so(page: Page, ada: Person) -> None:
    """LANG-3, WEB-2"""
    shown = open_details(page, "rules.pdf")
    switch(ada, "off")
    page.get_by_test_id("document-translate").click()
    expect(shown).to_contain_text("Documents are no longer translated here.")
