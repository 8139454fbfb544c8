"""The settings form in a real browser: drawn from the schema, in the language of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from functions.adapters.postgres import users
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
        yield opened


def open_experts(page: Page, tab: str) -> None:
    page.get_by_role("tab", name=tab).click()
    page.locator("details.experts > summary").locator("visible=true").click()


def test_the_form_has_groups_labels_and_help_in_french(page: Page) -> None:
    """WEB-5, SET-5"""
    tabs = page.get_by_test_id("settings-tab")
    expect(tabs).to_have_text(["Réponses", "Recherche", "Documents", "Limites", "Utilisation"])
    field = page.locator("[data-key=chunking_strategy]")
    expect(field.locator("label")).to_have_text("Embedding des passages")
    expect(field.locator(".hint")).to_contain_text("vectorisés")


def test_an_administrator_chooses_a_value_from_a_list_and_saves_it(page: Page, admin: Person) -> None:
    """WEB-5"""
    open_experts(page, "Réponses")
    page.get_by_label("Invite").select_option("Compacte")
    open_experts(page, "Recherche")
    page.get_by_label("Constante de la fusion").fill("12")
    page.get_by_test_id("settings-save").click()
    expect(page.get_by_test_id("settings-dialog")).to_be_hidden()
    saved = admin.get("/settings")
    assert (saved["prompt_profile"], saved["rrf_k"]) == ("compact", 12)


def test_a_refused_value_is_explained_beside_its_field(page: Page, admin: Person) -> None:
    """WEB-5, SET-3"""
    before = admin.get("/settings")
    open_experts(page, "Recherche")
    page.get_by_label("Constante de la fusion").fill("0")
    page.get_by_role("tab", name="Limites").click()
    page.get_by_test_id("settings-save").click()
    expect(page.locator("[data-key=rrf_k]").get_by_test_id("setting-fault")).to_be_visible()
    assert admin.get("/settings") == before


def test_the_arrow_keys_move_between_the_tabs(page: Page) -> None:
    """WEB-1, WEB-5"""
    page.get_by_role("tab", name="Réponses").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Utilisation")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Utilisation")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tabpanel", name="Réponses")).to_be_visible()


def test_the_usage_is_shown_by_day_with_its_cost(page: Page, admin: Person) -> None:
    """WEB-5, OPS-7"""
    with admin.server.services.database.as_user(admin.user) as connection:
        for cost in (0.5, 1):
            users.count_usage(connection, {"prompt_tokens": 900, "completion_tokens": 100, "cost_usd": cost})
    page.reload()
    page.get_by_role("tab", name="Utilisation").click()
    expect(page.get_by_test_id("usage-facts")).to_have_text(re.compile(r"2 questions · 2\s000 jetons · 1,50\s\$US"))
    expect(page.get_by_test_id("usage").locator("rect:not(.empty)")).to_have_count(1)
