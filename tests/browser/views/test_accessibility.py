"""axe-core finds no serious fault on any view: both widths, and every theme in every language.

The pictures of the views are in .build/pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.views import tour
from tests.support.local_server import Person
from tests.support.requirements import REPOSITORY, need_axe

Theme = Literal["light", "dark"]

SERIOUS = ("serious", "critical")
# What fades in has other colours.
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"
# Only rules about films and sounds need what axe preloads.
CHECK = "options => axe.run(document, {resultTypes: ['violations'], preload: false, ...options})"
COLOURS: Final = {"runOnly": ["color-contrast", "link-in-text-block"]}
OTHER: Final[Mapping[Theme, Theme]] = {"light": "dark", "dark": "light"}


PICTURES = REPOSITORY / ".build" / "pictures"


def find_violations(page: Page, options: dict[str, Any]) -> list[str]:
    """The rules that are broken on what the page shows, with each node that breaks one."""
    found: dict[str, Any] = page.evaluate(CHECK, options)
    serious = [fault for fault in found["violations"] if fault["impact"] in SERIOUS]
    return [
        f"{fault['id']}: {node['html'][:160]} {node['failureSummary']}" for fault in serious for node in fault["nodes"]
    ]


def check_views(page: Page, theme: Theme, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """What is broken on each view in `theme`, in which its picture is taken, and in the other one.

    Views differ between themes in their colours alone.
    """
    for view in tour.walk(page):
        page.screenshot(path=folder / f"{view.replace(': ', '-')}.png")
        yield f"{view}, {theme}", find_violations(page, {})
        page.emulate_media(color_scheme=OTHER[theme])
        yield f"{view}, {OTHER[theme]}", find_violations(page, COLOURS)
        page.emulate_media(color_scheme=theme)


@pytest.mark.parametrize("width", list(tour.WIDTHS))
@pytest.mark.parametrize(("theme", "locale"), [("light", "en-US"), ("dark", "fr-FR")])
def test_no_view_breaks_a_serious_rule(browser: Browser, grace: Person, width: str, theme: Theme, locale: str) -> None:
    """WEB-1"""
    with browser.new_context(
        viewport=tour.WIDTHS[width], color_scheme=theme, locale=locale, reduced_motion="reduce", bypass_csp=True
    ) as context:
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.route("**/api/local/token", lambda route: route.fulfill(json={"token": grace.token}))
        page.goto(grace.server.base_url)
        page.add_script_tag(path=need_axe())
        page.add_style_tag(content=STILL)
        found = dict(check_views(page, theme, PICTURES / f"{width}-{theme}-{locale[:2]}"))
        assert {view: faults for view, faults in found.items() if faults} == {}
