"""The translation of a cited passage on the page: folded below the quote, which is the original."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance import test_translation as translation
from tests.browser.test_library_page import Tab
from tests.support import database as database_servers
from tests.support.fakes.model_server import FakeModelServer
from tests.support.local_server import run_local_server, wait_until

expect.set_options(timeout=30_000)


@pytest.fixture
def page(clusters: database_servers.Clusters, postgres_major: int, tmp_path: Path, browser: Browser) -> Iterator[Page]:
    dsn = clusters.get(postgres_major).clone()
    with (
        FakeModelServer(dimensions=64, respond=translation.respond) as model,
        run_local_server(
            dsn,
            tmp_path,
            openai_base_url=model.base_url,
            embedding_model="words",
            embedding_dimensions=64,
            translation_model="translator",
        ) as server,
        server.person("Ada", admin=True) as ada,
    ):
        assert ada.http.patch("/api/rag/settings", json={"translate_documents": "en_to_fr"}).is_success
        document = translation.add_pages(ada, tmp_path)
        wait_until(lambda: translation.translation_of(ada, document)["status"] == "done", seconds=60)
        yield from Tab(browser, viewport={"width": 1280, "height": 900}).open(ada)


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
