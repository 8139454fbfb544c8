"""The settings form in a real browser: drawn from the schema, in the language of the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.local_server import LocalServer, Person

expect.set_options(timeout=30_000)


@pytest.fixture
def admin(server: LocalServer) -> Iterator[Person]:
    with server.person("Grace", admin=True) as person:
        yield person


@pytest.fixture
def page(admin: Person, browser: Browser) -> Iterator[Page]:
    """The page in French, with the settings open."""
    with browser.new_context(locale="fr-FR", viewport={"width": 1280, "height": 900}) as context:
        opened = context.new_page()
        opened.route("**/api/local/token", lambda route: route.fulfill(json={"token": admin.token}))
        opened.goto(admin.server.base_url)
        opened.get_by_test_id("settings-open").click()
        opened.locator("details.experts > summary").click()
        yield opened


def test_the_form_has_groups_labels_and_help_in_french(page: Page) -> None:
    """WEB-5, SET-5"""
    groups = page.get_by_test_id("settings-group").locator("legend")
    expect(groups).to_have_text(["Questions et réponses", "Recherche", "Documents", "Limites et conservation", "Coûts"])
    field = page.locator("[data-key=chunking_strategy]")
    expect(field.locator("label")).to_have_text("Embedding des passages")
    expect(field.locator(".hint")).to_contain_text("vectorisés")


def test_an_administrator_chooses_a_value_from_a_list_and_saves_it(page: Page, admin: Person) -> None:
    """WEB-5"""
    page.get_by_label("Invite").select_option("Compacte")
    page.get_by_label("Constante de la fusion").fill("12")
    page.get_by_test_id("settings-save").click()
    expect(page.get_by_test_id("settings-dialog")).to_be_hidden()
    saved = admin.get("/settings")
    assert (saved["prompt_profile"], saved["rrf_k"]) == ("compact", 12)


def test_a_refused_value_is_explained_beside_its_field(page: Page, admin: Person) -> None:
    """WEB-5, SET-3"""
    before = admin.get("/settings")
    page.get_by_label("Constante de la fusion").fill("0")
    page.get_by_test_id("settings-save").click()
    expect(page.locator("[data-key=rrf_k]").get_by_test_id("setting-fault")).to_be_visible()
    assert admin.get("/settings") == before
