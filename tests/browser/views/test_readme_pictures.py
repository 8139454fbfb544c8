"""Takes the pictures of the README, in .build/pictures/readme; `make pictures` copies them to .github/."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.views import tour
from tests.support import documents
from tests.support.local_server import LocalServer, Person
from tests.support.requirements import REPOSITORY

FOLDER: Final = REPOSITORY / ".build" / "pictures" / "readme"
MAX_BYTES: Final = 120_000
COLOURS: Final = 128
QUESTION: Final = "How much notice ends the lease?"


def open_page(context: BrowserContext, person: Person) -> Page:
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.route("**/api/local/token", lambda route: route.fulfill(json={"token": person.token}))
    page.goto(person.server.base_url)
    return page


def furnish(browser: Browser, person: Person, folder: Path) -> None:
    """The sample document of the page itself, and two more."""
    with browser.new_context(locale="en-US") as context:
        page = open_page(context, person)
        page.get_by_test_id("welcome-sample").click()
        expect(page.get_by_test_id("welcome")).to_have_attribute("data-state", "ready")
    person.add(documents.make_pdf(folder / "Boiler manual.pdf", "Have the boiler serviced every autumn."))
    person.add(
        documents.make_pdf(folder / "Annual report 2025.pdf", *["Revenue rose by 12 % to 41 million euros."] * 4)
    )
    person.ask("When does the lease begin?")


def show_library(page: Page) -> None:
    expect(page.get_by_test_id("document-row")).to_have_count(3)
    expect(page.locator("[aria-busy]")).to_have_count(0)


def show_answer(page: Page) -> None:
    page.get_by_test_id("question").fill(QUESTION)
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("answer")).to_have_attribute("data-state", "done")


def show_source(page: Page) -> None:
    show_answer(page)
    page.get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("page-image")).to_be_visible()


SHOWN: Final[dict[str, tuple[str, Callable[[Page], None]]]] = {
    "library": ("desktop", show_library),
    "answer": ("desktop", show_source),
    "phone": ("phone", show_answer),
}


@pytest.fixture(scope="module")
def reader(browser: Browser, server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    with server.person("Ada") as person:
        furnish(browser, person, tmp_path_factory.mktemp("readme"))
        yield person


@pytest.mark.parametrize("name", list(SHOWN))
def test_a_picture_of_the_readme_is_small(browser: Browser, reader: Person, name: str) -> None:
    """WEB-1"""
    width, show = SHOWN[name]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with browser.new_context(viewport=tour.WIDTHS[width], locale="en-US", reduced_motion="reduce") as context:
        page = open_page(context, reader)
        show(page)
        page.wait_for_function("() => document.getAnimations().length === 0")
        page.screenshot(path=FOLDER / f"{name}.png")
    with Image.open(FOLDER / f"{name}.png") as picture:
        picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS).save(FOLDER / f"{name}.png", optimize=True)
    assert (FOLDER / f"{name}.png").stat().st_size <= MAX_BYTES
