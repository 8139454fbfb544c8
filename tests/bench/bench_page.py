"""Measures the page in Chromium: `python -m tests.bench.bench_page`.

The library holds 500 documents, the conversation 300 messages. Slow 4G is that of Lighthouse: 1.6 Mbit/s, 150 ms for a
round trip. The page is usable when its question box and the first documents are shown. A frame is measured while both
lists scroll. Prints a table and, as the last line, a JSON object.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.report import at_most, print_figures
from tests.browser.sources import long_library
from tests.support import database
from tests.support.local_server import LocalServer, Person, run_local_server
from tests.support.requirements import need_chromium

MOST_NODES: Final = 2500.0
MOST_FRAME_MS: Final = 20.0
MOST_USABLE_SECONDS: Final = 2.5
MOST_REQUESTS: Final = 8.0
MOST_KILOBYTES: Final = 150.0
SLOW_4G: Final = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1.6e6 / 8,
    "uploadThroughput": 0.75e6 / 8,
}
LOADS: Final = 3
FRAMES: Final = 300

_COUNT_FILES = "performance.getEntriesByType('resource').filter((it) => it.name.includes('/static/')).length"
_SCROLL = """async (count) => {
  const lists = ["shelves", "messages"].map((id) => document.getElementById(id));
  for (const list of lists) list.scrollTo({ top: 0, behavior: "instant" });
  const frame = () => new Promise(requestAnimationFrame);
  const times = [];
  let before = await frame();
  for (let at = 0; at < count; at += 1) {
    for (const list of lists) list.scrollBy({ top: 60, behavior: "instant" });
    const now = await frame();
    times.push(now - before);
    before = now;
  }
  return times;
}"""


@contextmanager
def serve() -> Iterator[LocalServer]:
    clusters = database.Clusters()
    try:
        dsn = clusters.get(database.MAJORS[0]).clone()
        with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name, run_local_server(dsn, Path(name)) as server:
            yield server
    finally:
        clusters.close()


def open_page(browser: Browser, person: Person) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.route("**/api/local/token", lambda route: route.fulfill(json={"token": person.token}))
    return page


def measure_load(browser: Browser, person: Person) -> tuple[float, int, float]:
    """Seconds until a new visitor can use the page on slow 4G, and the requests and kB of its files."""
    page = open_page(browser, person)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", SLOW_4G)
    received: list[float] = []
    network.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"] / 1e3))
    started = time.monotonic()
    page.goto(person.server.base_url, wait_until="commit")
    page.get_by_test_id("question").wait_for()
    page.get_by_test_id("document-open").first.wait_for()
    seconds = time.monotonic() - started
    files = page.evaluate(_COUNT_FILES)
    page.context.close()
    return seconds, 1 + files, sum(received)


def measure_scrolling(browser: Browser, person: Person, conversation: str) -> tuple[int, float]:
    """The elements of the page with everything loaded, and the 95th percentile of its frames, in milliseconds."""
    page = open_page(browser, person)
    page.goto(f"{person.server.base_url}/#c={conversation}")
    rows = page.get_by_test_id("document-row")
    page.get_by_test_id("question-text").first.wait_for()
    while rows.count() < long_library.DOCUMENTS:
        page.evaluate("() => { const list = document.getElementById('shelves'); list.scrollTop = list.scrollHeight; }")
        page.wait_for_timeout(100)
    times = page.evaluate(_SCROLL, FRAMES)
    count = page.evaluate("document.querySelectorAll('*').length")
    page.context.close()
    return count, statistics.quantiles(times, n=20)[-1]


def list_figures(server: LocalServer, browser: Browser) -> list[dict[str, Any]]:
    with server.person("reader") as person:
        long_library.add_documents(server, person)
        loads = [measure_load(browser, person) for _ in range(LOADS)]
        count, frame = measure_scrolling(browser, person, long_library.add_conversation(server, person))
    seconds, requests, kilobytes = min(loads)
    return [
        at_most("first load: requests of files", requests, MOST_REQUESTS),
        at_most("first load: kB received, with the first answers of the API", kilobytes, MOST_KILOBYTES),
        at_most("slow 4G: seconds until usable, best of 3", seconds, MOST_USABLE_SECONDS),
        at_most("500 documents and 300 messages: elements", count, MOST_NODES),
        at_most("scrolling both: p95 of a frame, ms", frame, MOST_FRAME_MS),
    ]


def main() -> None:
    with serve() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=need_chromium(), args=["--no-sandbox", "--disable-gpu"])
        print_figures("page", list_figures(server, browser))
        browser.close()


if __name__ == "__main__":
    main()
