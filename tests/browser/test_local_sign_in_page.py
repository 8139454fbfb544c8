"""SEC-7: the address that a laptop prints opens the page once; the browser that opened it stays signed in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.local_server import LocalServer


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(locale="en-GB") as opened:
        yield opened


@pytest.fixture
def stranger(browser: Browser) -> Iterator[Page]:
    with browser.new_context(locale="en-GB") as opened:
        yield opened.new_page()


def expect_signed_in(page: Page) -> None:
    expect(page.get_by_test_id("settings-open")).to_be_visible()


def test_the_printed_address_signs_in_and_leaves_no_key_in_the_address(
    server: LocalServer, context: BrowserContext
) -> None:
    """FIX-6"""
    page = context.new_page()
    page.goto(server.door)
    expect_signed_in(page)
    assert page.url == f"{server.base_url}/"
    page.reload()
    expect_signed_in(page)
    other_tab = context.new_page()
    other_tab.goto(server.base_url)
    expect_signed_in(other_tab)


def test_the_printed_address_works_again_in_the_browser_that_used_it(
    server: LocalServer, context: BrowserContext
) -> None:
    printed = server.door
    for _ in range(2):
        page = context.new_page()
        page.goto(printed)
        expect_signed_in(page)


def test_an_address_used_elsewhere_does_not_sign_a_browser_out(
    server: LocalServer, context: BrowserContext, stranger: Page
) -> None:
    page = context.new_page()
    page.goto(server.door)
    expect_signed_in(page)
    used = server.door
    stranger.goto(used)
    expect_signed_in(stranger)
    page.goto("about:blank")
    page.goto(used)
    expect_signed_in(page)


@pytest.mark.parametrize("ending", ["", "#key=guessed"])
def test_without_the_key_the_page_says_which_address_to_open(server: LocalServer, stranger: Page, ending: str) -> None:
    stranger.goto(server.base_url + "/" + ending)
    expect(stranger.get_by_test_id("token-key")).to_contain_text("Open the address that Ibid printed last")
    stranger.goto(server.door)  # in the same tab, where only the part after # changes
    expect_signed_in(stranger)


def test_a_pasted_token_signs_in_too(server: LocalServer, stranger: Page) -> None:
    stranger.goto(server.base_url)
    with server.person("ada", admin=True) as ada:
        stranger.get_by_test_id("token-input").fill(ada.token)
    stranger.get_by_test_id("token-submit").click()
    expect_signed_in(stranger)
