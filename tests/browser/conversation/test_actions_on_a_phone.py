"""What a reader does with an answer, on a phone: one row of large targets that begins where the answer does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.browser.test_library_page import TOO_WIDE, Tab, ask
from tests.browser.views import tour
from tests.support.local_server import Person

LEAST = 44
TOLERANCE = 2


@pytest.fixture
def phone(ada: Person, browser: Browser) -> Iterator[Page]:
    ada.follow(ada.add_bytes("heating.txt", b"The boiler burns wood chips in winter.")["id"])
    yield from Tab(browser, "fr-FR", viewport=tour.WIDTHS["phone"], has_touch=True, is_mobile=True).open(ada)


def places(nodes: Locator) -> list[tuple[float, float, float, float]]:
    boxes = [node.bounding_box() for node in nodes.all()]
    return [(box["x"], box["y"], box["width"], box["height"]) for box in boxes if box]


def test_the_actions_under_an_answer_are_one_row_from_its_start(phone: Page) -> None:
    """WEB-1, WEB-3"""
    answer = ask(phone, "What does the boiler burn in winter?")
    buttons = places(answer.locator(".answer-actions button"))
    assert len(buttons) == 5
    assert len({y for _, y, _, _ in buttons}) == 1
    assert min(min(width, height) for _, _, width, height in buttons) >= LEAST
    [(first, *_), *_] = places(answer.locator(".answer-actions .icon"))
    [(start, *_)] = places(answer.get_by_test_id("answer-text"))
    assert abs(first - start) <= TOLERANCE
    assert phone.evaluate(TOO_WIDE) == 0
