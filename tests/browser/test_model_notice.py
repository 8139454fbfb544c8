"""Administrators, and nobody else, are told that the library can move to another embedding model, and move it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from functions.runtime import policy
from tests.browser.test_library_page import Tab
from tests.support import database as database_servers
from tests.support.fakes.model_server import FakeModelServer, Reply
from tests.support.local_server import LocalServer, Person, run_local_server

OLD: dict[str, Any] = {"embedding_model": "old-model", "embedding_dimensions": 64}
NEW: dict[str, Any] = {"embedding_model": "e5-base-v2", "embedding_dimensions": 64}


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
    """An installation with one document of an older model; its worker waits for the tests."""
    monkeypatch.setattr(policy, "POLICY_SECONDS", 0.0)
    dsn = clusters.get(postgres_major).clone()
    with run_local_server(dsn, tmp_path, openai_base_url=model.base_url, **OLD) as older, older.person() as person:
        person.follow(person.add_bytes("boiler.txt", b"The boiler burns wood chips.")["id"])
    with run_local_server(dsn, tmp_path, openai_base_url=model.base_url, **NEW) as running:
        yield running


@pytest.fixture
def grace(server: LocalServer) -> Iterator[Person]:
    with server.person("Grace", admin=True) as person:
        yield person


@pytest.fixture
def page(grace: Person, browser: Browser) -> Iterator[Page]:
    yield from Tab(browser).open(grace)


def test_an_administrator_moves_the_library_with_one_button(page: Page, server: LocalServer) -> None:
    """WEB-5, LIB-7"""
    notice = page.get_by_test_id("model-notice-text")
    expect(notice).to_contain_text("The library is indexed with old-model, and this installation now has e5-base-v2.")
    with server.worker.paused():
        page.get_by_test_id("model-adopt").click()
        expect(notice).to_have_text("0 of 1 document or note is re-indexed with e5-base-v2.")
        page.get_by_test_id("language-switch").click()
        expect(notice).to_have_text("0 document ou note sur 1 réindexé avec e5-base-v2.")
    expect(notice).to_be_hidden()
    expect(page.get_by_test_id("toast")).to_have_text("La bibliothèque est indexée avec e5-base-v2.")


def test_what_could_not_move_can_be_tried_again(page: Page, server: LocalServer, model: FakeModelServer) -> None:
    """WEB-5, ING-11"""
    with server.worker.paused():
        page.get_by_test_id("model-adopt").click()
        expect(page.get_by_test_id("model-adopt")).to_be_hidden()
        model.script(*[Reply(status=401)] * 9)
    expect(page.get_by_test_id("model-notice")).to_contain_text(
        "1 could not be re-indexed and is still found as before."
    )
    model._replies.clear()
    page.get_by_test_id("model-adopt").click()
    expect(page.get_by_test_id("model-notice")).to_be_hidden()


def test_an_administrator_pauses_resumes_and_cancels(page: Page, server: LocalServer) -> None:
    """WEB-5, SET-6"""
    notice = page.get_by_test_id("model-notice-text")
    with server.worker.paused():
        page.get_by_test_id("model-adopt").click()
        page.get_by_test_id("model-pause").click()
        expect(notice).to_contain_text("Re-indexing is paused.")
    expect(page.get_by_test_id("model-pause")).to_be_hidden()
    with server.worker.paused():
        page.get_by_test_id("model-resume").click()
        expect(notice).not_to_contain_text("paused")
        page.get_by_test_id("model-cancel").click()
        expect(page.get_by_test_id("model-notice")).to_be_hidden()
    expect(page.get_by_test_id("toast")).to_have_count(0)


def test_nobody_else_is_told(server: LocalServer, browser: Browser) -> None:
    """SET-4"""
    with server.person("Ada") as ada:
        for page in Tab(browser).open(ada):
            expect(page.get_by_test_id("library-empty")).to_be_visible()
            expect(page.get_by_test_id("model-notice")).to_be_hidden()


def test_a_model_that_does_not_work_is_shown_with_what_to_set(
    server: LocalServer, grace: Person, browser: Browser, model: FakeModelServer
) -> None:
    """OPS-4, WEB-5"""
    model.script(*[Reply(status=401)] * 2)
    for page in Tab(browser).open(grace):
        expect(page.get_by_test_id("model-notice-text")).to_contain_text(
            "Embedding (old-model): the server refuses the key. OPENAI_API_KEY is not set."
        )


def test_what_the_server_refused_is_indexed_with_one_button(
    server: LocalServer, grace: Person, browser: Browser, model: FakeModelServer
) -> None:
    """OPS-4, WEB-5"""
    with server.worker.paused():
        refused = grace.add_bytes("chimney.txt", b"The chimney is forty metres tall.")["id"]
        model.script(Reply(status=401))
    assert grace.follow(refused)["status"] == "failed"
    for page in Tab(browser).open(grace):
        notice = page.get_by_test_id("model-notice-text")
        expect(notice).to_contain_text("1 document or note could not be indexed because the embedding server failed.")
        page.get_by_test_id("model-retry").click()
        expect(notice).not_to_contain_text("could not be indexed")
        assert grace.follow(refused)["status"] == "indexed"


def test_documents_that_only_their_words_find_are_shown(server: LocalServer, grace: Person, browser: Browser) -> None:
    """OPS-4, WEB-5"""
    with server.services.database.as_worker() as connection:
        connection.execute("update rag.embedding_servers set active = false, is_default = false")
    for page in Tab(browser).open(grace):
        expect(page.get_by_test_id("model-notice-text")).to_contain_text(
            "1 document or note is found by its words alone, because old-model, which indexed it, is switched off."
        )
        page.get_by_test_id("model-reindex").click()
        expect(page.get_by_test_id("toast")).to_have_text("The library is indexed with e5-base-v2.")
        expect(page.get_by_test_id("model-notice")).to_be_hidden()
