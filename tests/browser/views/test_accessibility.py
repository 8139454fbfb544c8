"""axe-core finds no serious fault on any view: both themes, both widths, both languages.

The pictures of the views are in .build/pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.views import tour
from tests.support.local_server import Person
from tests.support.requirements import REPOSITORY, need_axe

SERIOUS = ("serious", "critical")
SETTLED = "() => document.getAnimations().length === 0"  # while something fades in, its colours are others
CHECK = "() => axe.run(document, {resultTypes: ['violations']})"


PICTURES = REPOSITORY / ".build" / "pictures"


def find_violations(page: Page, picture: Path) -> list[str]:
    """The rules that are broken on what the page shows, each with the first node that breaks it; takes a picture."""
    page.wait_for_function(SETTLED)
    page.screenshot(path=picture)
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
        folder = PICTURES / f"{width}-{theme}-{locale[:2]}"
        found = {view: find_violations(page, folder / f"{view.replace(': ', '-')}.png") for view in tour.walk(page)}
        assert {view: faults for view, faults in found.items() if faults} == {}
