"""Names, notes, documents and models that attack: nothing runs, nothing is loaded, and the page stays in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Route

from tests.acceptance.support import writing
from tests.browser.views import tour
from tests.support import documents
from tests.support.local_server import LocalServer, Person

HOSTILE = (
    "<img src=x onerror=hacked=1>",
    "<script>hacked=1</script>",
    '"><svg onload=hacked=1>',
    "javascript:hacked=1",
    "[run](javascript:hacked=1) ![](https://example.org/spy.png)",
    "[x](data:text/html,<script>hacked=1</script>) <https://example.org>",
    "{{constructor.constructor('hacked=1')()}} ${hacked=1}",
    "\u202efdp.exe \u2067\u200f \u0627\u0644",
    "W" * 120,
    "</textarea></title></dialog><iframe srcdoc='<script>parent.hacked=1</script>'>",
)
TABLE = "\n\n| " + " | ".join(HOSTILE[:3]) + " |\n|---|---|---|\n| =1+1 | " + "W" * 300 + " | @x |\n| a | b | c |"
ACTIVE = ", ".join(
    (
        "#thread :is(img, iframe, script, object, embed, form[action])",
        "dialog :is(iframe, script)",
        "a:is([href^='javascript' i], [href^='data' i])",
    )
)
OVERFLOW = """() => {
    const nodes = [...document.querySelectorAll("button, textarea, select, .modal, .answer")];
    const shown = nodes.filter((node) => node.checkVisibility() && !node.closest(".table, .settings-tabs"));
    const rights = shown.map((node) => node.getBoundingClientRect().right);
    return Math.max(document.documentElement.scrollWidth, ...rights) - innerWidth;
}"""


def furnish(person: Person, folder: Path) -> None:
    """A library of the shape that `tour` walks through, with hostile names and texts."""
    notebook = person.post("/notebooks", title=HOSTILE[0] + HOSTILE[8])["id"]
    pdf = documents.make_pdf(folder / "lease.pdf", *(f"{tour.LEASE[0]} {text}" for text in HOSTILE[:4]))
    person.follow(person.add_bytes(f"lease {HOSTILE[0]}.pdf", pdf.read_bytes(), notebook_id=notebook)["id"])
    person.follow(person.add_bytes(f"{HOSTILE[2]}{HOSTILE[8]}.pdf", b"%PDF-1.7 nothing")["id"])
    person.announce(f"{HOSTILE[7]}.pdf")
    for text in HOSTILE[:-1]:
        writing.save(person, f"# {text}\n\n{text}{TABLE}", title=text)
    conversation = person.ask(f"{tour.QUESTION} {HOSTILE[0]}")["conversation_id"]
    person.ask(f"{HOSTILE[9]} {HOSTILE[8]}", conversation_id=conversation)


def answer_as_an_attacker(route: Route) -> None:
    """Rewrites the saved answers into what a hostile model would say."""
    response = route.fetch()
    body: dict[str, Any] = response.json()
    for message in body["items"]:
        if message["role"] == "assistant":
            message |= {"content": "\n\n".join(HOSTILE) + TABLE, "mode": "model"}
    route.fulfill(response=response, json=body)


def measure(page: Page) -> tuple[bool, int, bool]:
    """Whether something ran, how many active elements there are, and whether something is wider than the window."""
    overflow = float(page.evaluate(OVERFLOW))
    return bool(page.evaluate("'hacked' in window")), page.locator(ACTIVE).count(), overflow > 1


@pytest.mark.parametrize("width", list(tour.WIDTHS))
def test_hostile_text_neither_runs_nor_breaks_the_layout(
    browser: Browser, server: LocalServer, tmp_path: Path, width: str
) -> None:
    """WEB-1, CHAT-8"""
    foreign: list[str] = []

    def note_host(request: Request) -> None:
        if not request.url.startswith((server.base_url, "data:", "blob:")):
            foreign.append(request.url)

    with (
        server.person("Mallory", admin=True) as mallory,
        browser.new_context(viewport=tour.WIDTHS[width], locale="en-US", reduced_motion="reduce") as context,
    ):
        furnish(mallory, tmp_path)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("request", note_host)
        page.on("dialog", lambda dialog: foreign.append(dialog.message))
        page.route("**/api/local/token", lambda route: route.fulfill(json={"token": mallory.token}))
        page.route("**/conversations/*/messages*", answer_as_an_attacker)
        page.goto(server.base_url)
        found = {view: measured for view in tour.walk(page) if (measured := measure(page)) != (False, 0, False)}
    assert (found, foreign) == ({}, [])
