"""The owner of a notebook says on the page how answers about it are written, and by which model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_library_page import Tab
from tests.support.local_server import LocalServer, Person

expect.set_options(timeout=30_000)


@pytest.fixture
def ada(server: LocalServer) -> Iterator[Person]:
    with server.person("Ada", admin=True) as person:
        assert person.http.patch("/api/rag/settings", json={"notebook_models": "small, large"}).is_success
        person.post("/notebooks", title="House")
        yield person


@pytest.fixture
def page(ada: Person, browser: Browser) -> Iterator[Page]:
    yield from Tab(browser, viewport={"width": 1280, "height": 900}).open(ada)


def test_the_form_of_a_notebook_saves_its_instructions_and_its_model(page: Page, ada: Person) -> None:
    """CHAT-14, WEB-2"""
    page.get_by_test_id("notebook-row").hover()
    page.get_by_test_id("notebook-answers").click()
    page.get_by_label("How shall answers be written?").fill("briefly, in French")
    page.get_by_label("Language model").select_option("large")
    page.get_by_test_id("notebook-form-save").click()
    expect(page.get_by_test_id("notebook-form-dialog")).to_be_hidden()
    [notebook] = ada.get("/notebooks")["items"]
    assert (notebook["instructions"], notebook["chat_model"]) == ("briefly, in French", "large")
