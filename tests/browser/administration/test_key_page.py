"""Personal API keys on the page: made with scopes and an expiry, shown once, listed, revoked."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_library_page import Tab
from tests.support.local_server import LocalServer, Person

expect.set_options(timeout=30_000)


@pytest.fixture
def ada(server: LocalServer) -> Iterator[Person]:
    with server.person("Ada") as person:
        yield person


@pytest.fixture
def page(ada: Person, browser: Browser) -> Iterator[Page]:
    """The page of somebody who is no administrator, with the keys open."""
    for page in Tab(browser).open(ada):
        page.get_by_test_id("keys-open").click()
        yield page


def use(page: Page, key: str) -> int:
    answer = httpx.get(f"{page.url.split('#')[0]}api/rag/me", headers={"Authorization": f"Bearer {key}"})
    return answer.status_code


def test_a_key_is_shown_once_works_and_is_revoked(page: Page, ada: Person) -> None:
    """KEY-1, WEB-5"""
    page.get_by_label("What is it for?").fill("Open WebUI")
    page.get_by_label("Ask questions").check()
    page.get_by_label("How long is it valid?").select_option("30 days")
    page.get_by_test_id("key-create").click()
    key = page.get_by_test_id("key-value").input_value()
    assert use(page, key) == 200
    [made] = ada.get("/keys")["items"]
    assert (made["name"], made["scopes"]) == ("Open WebUI", ["read", "ask"])
    row = page.get_by_test_id("key-row")
    expect(row).to_contain_text(made["hint"])
    expect(row).not_to_contain_text(key)
    row.get_by_test_id("key-revoke").click()
    page.get_by_test_id("confirm-yes").click()
    expect(row).to_have_count(0)
    assert use(page, key) == 401


def test_a_key_that_is_refused_says_why(page: Page) -> None:
    """KEY-1, WEB-5"""
    page.get_by_test_id("key-create").click()
    expect(page.get_by_test_id("key-form").get_by_role("alert")).not_to_be_empty()
    expect(page.get_by_test_id("key-row")).to_have_count(0)
