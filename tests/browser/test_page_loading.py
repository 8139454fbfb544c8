"""How the page loads: in few requests, and on a platform that refuses what exceeds its ten slots."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Route, ViewportSize, expect

from functions.local.server import serve
from tests.support import database as database_servers
from tests.support.local_server import LocalServer, run_local_server

SLOTS = 10  # what a new AWS account runs at a time
COLD_START_SECONDS = 0.6
PATIENCE_SECONDS = 30.0
THROTTLED: dict[str, Any] = {"status": 503, "json": {"message": "Service Unavailable"}}

# Notes where the button is in each frame in which it can be used.
WATCH_BUTTON = """
    window.places = [];
    const watch = () => {
      const button = document.getElementById("send");
      const place = button?.getBoundingClientRect().y;
      if (button?.disabled === false && place !== places.at(-1)) places.push(place);
      requestAnimationFrame(watch);
    };
    watch();
"""


class Platform:
    """Stands between a page and the server as a function platform does, and takes all requests at once, as HTTP/2 does.

    A request takes a slot for as long as a container takes to start; one that finds none free gets the gateway's 503.
    """

    def __init__(self, page: Page) -> None:
        self.refused: list[str] = []
        self._page = page
        self._busy: list[tuple[float, Route]] = []
        self._outages: dict[str, int] = {}
        page.route("**/*", self._take)

    def refuse(self, name: str, times: int) -> None:
        """Refuses the next requests for a file, as if other users had taken all slots."""
        self._outages[name] = times

    def run_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"refused: {self.refused}"
            self._page.wait_for_timeout(20)
            self._free(time.monotonic())

    def run_until_idle(self) -> None:
        self.run_until(lambda: not self._busy)

    def _take(self, route: Route) -> None:
        if route.request.resource_type == "document":  # has all slots to itself
            route.continue_()
            return
        name = route.request.url.partition("?")[0].rpartition("/")[2]
        if self._outages.get(name, 0) or len(self._busy) >= SLOTS:
            self._outages[name] = max(0, self._outages.get(name, 0) - 1)
            self.refused.append(name)
            route.fulfill(**THROTTLED)
        else:
            self._busy.append((time.monotonic() + COLD_START_SECONDS, route))

    def _free(self, now: float) -> None:
        started = [taken for taken in self._busy if taken[0] <= now]
        self._busy = [taken for taken in self._busy if taken[0] > now]
        for _, route in started:
            route.continue_()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(locale="en-US") as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        yield page


@pytest.fixture
def platform(page: Page) -> Platform:
    return Platform(page)


def start(platform: Platform, page: Page, address: str) -> None:
    """Opens the page and waits until it shows the state of the library."""
    page.goto(address, wait_until="commit")
    platform.run_until(lambda: page.get_by_test_id("welcome").is_visible())


def test_the_first_load_takes_few_requests_and_bytes(page: Page, server: LocalServer) -> None:
    """WEB-1"""
    requests: list[Request] = []
    page.on("requestfinished", lambda request: requests.append(request))
    page.goto(server.door, wait_until="networkidle")
    expect(page.get_by_test_id("welcome")).to_be_visible()
    sizes = [request.sizes() for request in requests]
    files = [request.url for request in requests if "/api/" not in request.url]
    assert len(files) <= 8
    assert sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes) <= 150_000


def test_the_page_starts_where_ten_requests_run_at_a_time(page: Page, platform: Platform, server: LocalServer) -> None:
    """WEB-1, FIX-4"""
    start(platform, page, server.door)
    expect(page.locator("#starting")).to_have_count(0)


def test_modules_that_are_served_one_by_one_do_not_start_there(
    page: Page,
    platform: Platform,
    clusters: database_servers.Clusters,
    postgres_major: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shows that the platform of these tests refuses as much as a real one."""
    monkeypatch.setattr(serve, "create_local_app", partial(serve.create_local_app, page_sources=True))
    with run_local_server(clusters.get(postgres_major).clone(), tmp_path, worker=False) as sources:
        page.goto(sources.door, wait_until="commit")
        platform.run_until(lambda: bool(platform.refused))
        platform.run_until_idle()
        expect(page.locator("#starting")).to_be_visible(timeout=PATIENCE_SECONDS * 1000)


def test_a_page_whose_script_is_refused_offers_to_load_it_again(
    page: Page, platform: Platform, server: LocalServer
) -> None:
    platform.refuse("app.js", 1)
    page.goto(server.base_url, wait_until="commit")
    platform.run_until(lambda: bool(platform.refused))
    platform.run_until_idle()
    page.locator("#starting a").click(no_wait_after=True)
    platform.run_until(lambda: page.get_by_test_id("token-dialog").is_visible())


def test_a_question_is_not_lost_before_the_page_has_started(
    page: Page, platform: Platform, server: LocalServer
) -> None:
    """WEB-3: the browser itself would send the form, and load the page anew."""
    platform.refuse("app.js", 1)
    page.goto(server.base_url, wait_until="commit")
    platform.run_until(lambda: bool(platform.refused))
    expect(page.get_by_test_id("send")).to_be_disabled()


@pytest.mark.parametrize("is_phone", [False, True], ids=["desktop", "phone"])
def test_the_button_that_sends_stays_in_its_place(browser: Browser, server: LocalServer, is_phone: bool) -> None:
    """WEB-3: what the server tells later must not move it away from a pointer."""
    size: ViewportSize = {"width": 390 if is_phone else 1280, "height": 800}
    with browser.new_context(locale="en-US", viewport=size, has_touch=is_phone, is_mobile=is_phone) as context:
        page = context.new_page()
        page.add_init_script(WATCH_BUTTON)
        page.goto(server.door)
        expect(page.locator("#model-hint")).not_to_be_empty()
        page.wait_for_timeout(100)
        assert page.evaluate("places.length") == 1


def test_reads_that_are_refused_while_the_page_starts_are_repeated(
    page: Page, platform: Platform, server: LocalServer
) -> None:
    refused = {"page.css", "sign-in", "me", "documents", "conversations"}
    for name in refused:
        platform.refuse(name, 1)
    start(platform, page, server.door)
    assert set(platform.refused) == refused
    platform.run_until(lambda: page.evaluate("getComputedStyle(document.body).margin") == "0px")


def test_a_refused_part_is_loaded_again(page: Page, platform: Platform, server: LocalServer) -> None:
    """WEB-5"""
    start(platform, page, server.door)
    platform.run_until(lambda: page.get_by_test_id("settings-open").is_visible())  # once it is known who signed in
    platform.refuse("settings.js", 2)
    page.get_by_test_id("settings-open").click()
    platform.run_until(lambda: page.get_by_test_id("settings-dialog").is_visible())
    assert platform.refused == ["settings.js", "settings.js"]


def test_a_part_that_stays_refused_says_so_and_can_be_opened_later(
    page: Page, platform: Platform, server: LocalServer
) -> None:
    start(platform, page, server.door)
    platform.refuse("attach_dialog.js", 4)
    page.get_by_test_id("attach-open").click()
    platform.run_until(lambda: page.get_by_test_id("toast").is_visible())
    expect(page.get_by_test_id("toast")).to_have_text(re.compile("^This part of the page could not be loaded"))
    page.get_by_test_id("attach-open").click()
    platform.run_until(lambda: page.get_by_test_id("attach-dialog").is_visible())


@pytest.mark.parametrize(("refusals", "words"), [(2, "Choisir des documents"), (4, "Choose documents")])
def test_the_texts_of_the_other_language_are_loaded_or_replaced_by_english(
    browser: Browser, server: LocalServer, refusals: int, words: str
) -> None:
    """WEB-1"""
    with browser.new_context(locale="fr-FR") as context:
        page = context.new_page()
        platform = Platform(page)
        platform.refuse("words_fr.js", refusals)
        start(platform, page, server.door)
        expect(page.get_by_test_id("attach-open")).to_have_text(words)
