"""Embedding servers on the page of administrators: added, tried, changed, switched off, removed, re-indexed with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from functions.runtime import policy
from tests.browser.test_library_page import Tab
from tests.support import database as database_servers
from tests.support.fakes.model_server import FakeModelServer
from tests.support.local_server import LocalServer, Person, run_local_server

expect.set_options(timeout=30_000)


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer(dimensions=64) as running:
        yield running


@pytest.fixture
def server(
    clusters: database_servers.Clusters,
    postgres_major: int,
    tmp_path: Path,
    model: FakeModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LocalServer]:
    monkeypatch.setattr(policy, "POLICY_SECONDS", 0.0)
    dsn = clusters.get(postgres_major).clone()
    config: dict[str, Any] = {"openai_base_url": model.base_url, "embedding_model": "first", "embedding_dimensions": 64}
    with run_local_server(dsn, tmp_path, **config) as running:
        yield running


@pytest.fixture
def grace(server: LocalServer) -> Iterator[Person]:
    with server.person("Grace", admin=True) as person:
        person.follow(person.add_bytes("boiler.txt", b"The boiler burns wood chips.")["id"])
        yield person


@pytest.fixture
def page(grace: Person, browser: Browser) -> Iterator[Page]:
    """The page with the embedding servers open."""
    for page in Tab(browser).open(grace):
        page.get_by_test_id("settings-open").click()
        page.locator("[data-testid=settings-tab][data-key=search]").click()
        page.get_by_test_id("servers-open").click()
        yield page


def add(page: Page, model: FakeModelServer) -> None:
    page.get_by_label("Name", exact=True).fill("Second")
    page.get_by_label("Model", exact=True).fill("second")
    page.get_by_label("Address (http…/v1)").fill(model.base_url)
    page.get_by_test_id("server-save").click()
    expect(page.get_by_test_id("servers-message")).to_have_text("Saved.")


def test_an_administrator_adds_tries_changes_and_removes_a_server(
    page: Page, model: FakeModelServer, grace: Person
) -> None:
    """SET-1, WEB-5"""
    add(page, model)
    second = page.locator("[data-testid=server-row][data-name=Second]")
    second.get_by_test_id("server-try").click()
    expect(page.get_by_test_id("servers-message")).to_contain_text("It works: 64 dimensions")
    second.get_by_test_id("server-edit").click()
    page.get_by_label("Texts in a request").fill("7")
    page.get_by_test_id("server-save").click()
    expect(page.get_by_test_id("servers-message")).to_have_text("Saved.")
    assert {one["name"]: one["batch_size"] for one in grace.get("/embedding-servers")["servers"]}["Second"] == 7
    second.get_by_test_id("server-remove").click()
    page.get_by_test_id("confirm-yes").click()
    expect(second).to_have_count(0)


def test_a_mistake_is_told_and_leaves_the_form_as_it_is(page: Page) -> None:
    """SET-1, WEB-5"""
    page.get_by_label("Name", exact=True).fill("Wrong")
    page.get_by_label("Model", exact=True).fill("wrong")
    page.get_by_label("Address (http…/v1)").fill("not an address")
    page.get_by_test_id("server-save").click()
    expect(page.get_by_test_id("servers-message")).to_contain_text("begins with http:// or https://")
    expect(page.get_by_label("Address (http…/v1)")).to_have_value("not an address")


def test_a_library_is_re_indexed_after_its_estimate_paused_resumed_and_cancelled(
    page: Page, model: FakeModelServer, server: LocalServer
) -> None:
    """SET-6, WEB-5"""
    add(page, model)
    with server.worker.paused():
        page.locator("[data-testid=server-row][data-name=Second]").get_by_test_id("server-reindex").click()
        expect(page.get_by_test_id("confirm-dialog")).to_contain_text("1 documents and 0 notes are embedded again")
        page.get_by_test_id("confirm-yes").click()
        expect(page.get_by_test_id("servers-move")).to_contain_text("1 remain")
        page.get_by_test_id("servers-pause").click()
        page.get_by_test_id("servers-resume").click()
        page.get_by_test_id("servers-cancel").click()
        expect(page.get_by_test_id("servers-move")).to_have_count(0)


def test_switching_off_a_server_that_holds_documents_asks_what_happens_to_them(
    page: Page, model: FakeModelServer, grace: Person
) -> None:
    """SET-1, WEB-5"""
    add(page, model)
    page.locator("[data-testid=server-row][data-name=Second]").get_by_test_id("server-default").click()
    first = page.locator("[data-testid=server-row][data-name=first]")
    first.get_by_test_id("server-switch").click()
    page.get_by_test_id("confirm-words").click()
    expect(first).to_contain_text("switched off")
    assert [one["name"] for one in grace.get("/embedding-servers")["words_alone"]] == ["first"]
