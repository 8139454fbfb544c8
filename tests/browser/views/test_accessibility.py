"""axe-core finds no serious fault on any view: both themes, both widths, both languages."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.views import tour
from tests.support.local_server import Person
from tests.support.requirements import need_axe

SERIOUS = ("serious", "critical")
SETTLED = "() => document.getAnimations().length === 0"  # while something fades in, its colours are others
CHECK = "() => axe.run(document, {resultTypes: ['violations']})"


def find_violations(page: Page) -> list[str]:
    """The rules that are broken on what the page shows, each with the first node that breaks it."""
    page.wait_for_function(SETTLED)
    found: dict[str, Any] = page.evaluate(CHECK)
    serious = [fault for fault in found["violations"] if fault["impact"] in SERIOUS]
    return [
        f"{fault['id']}: {node['html'][:160]} {node['failureSummary']}" for fault in serious for node in fault["nodes"]
    ]


@pytest.mark.parametrize("width", list(tour.WIDTHS))
@pytest.mark.parametrize(("theme", "locale"), [("light", "en-US"), ("dark", "fr-FR")])
def test_no_view_breaks_a_serious_rule(
    browser: Browser, grace: Person, width: str, theme: Literal["light", "dark"], locale: str
) -> None:
    """WEB-1"""
    with browser.new_context(
        viewport=tour.WIDTHS[width], color_scheme=theme, locale=locale, reduced_motion="reduce", bypass_csp=True
    ) as context:
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.route("**/api/local/token", lambda route: route.fulfill(json={"token": grace.token}))
        page.goto(grace.server.base_url)
        page.add_script_tag(path=need_axe())
        assert {view: faults for view in tour.walk(page) if (faults := find_violations(page))} == {}
